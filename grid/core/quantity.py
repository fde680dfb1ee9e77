"""Kubernetes quantities: parsed into exact numbers, and formatted for people.

CPU is counted in whole millicores and everything else in whole units (bytes, GPUs), rounded up as Kubernetes does, so sums and comparisons
are exact integers. Syntax and suffixes: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

from grid.core.regexes import Expression
from grid.core.translation import gettext as _

_SUFFIXES = {
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate(("n", "u", "m", "", *"kMGTPE"), -3)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}
_PATTERN = Expression(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:[eE]([+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
# Kubernetes' own bound: https://pkg.go.dev/k8s.io/apimachinery/pkg/api/resource#Quantity
LARGEST = 2**63 - 1
_LONGEST = 100


class QuantityTooLarge(ValueError):
    """The number is larger than Kubernetes counts; it keeps its largest one in the place of such a number."""


# Names that device plugins give to GPUs and what is like them: NVIDIA's (whole, shared, slices of MIG), AMD's, Intel's, Google's, Habana's,
# AWS's. Sources: their device plugins' READMEs.
_GPU = Expression(
    r"(?i).*/(?:gpu|vgpu|rocm-gpu|dcu)(?:\.\w+)*|nvidia\.com/mig-.+|gpu\.intel\.com/(?:i915|xe)|amd\.com/[cgsd]px_.+|"
    r"(?:cloud-tpus\.)?google\.com/(?:tpu|v\d).*|habana\.ai/gaudi\d*|aws\.amazon\.com/neuron"
)
# These end like a GPU's name, and count its memory or its cores.
_PARTS_OF_A_GPU = Expression(
    r"(?i).*(?:mem|memory|memory-percentage|core|cores|core\.percentage|millicores|monitoring)"
)


@lru_cache(maxsize=1024)
def is_gpu(resource: str) -> bool:
    """Return whether a resource of Kubernetes counts GPUs, or accelerators that people ask for in their place."""
    return _GPU.fullmatch(resource) is not None and _PARTS_OF_A_GPU.fullmatch(resource) is None


def parse_quantity(text: object) -> Decimal:
    """Return the exact value in base units (cores, bytes, GPUs) of what a server sent. Raise ValueError with a sentence for its reader."""
    return _parsed(str(text).strip())


@lru_cache(maxsize=4096)  # the same few sizes are read again and again
def _parsed(written: str) -> Decimal:
    match = _PATTERN.fullmatch(written) if len(written) <= _LONGEST else None
    if match is None:
        shown = written[:_LONGEST]
        raise ValueError(_("“{text}” is not a quantity; write for example 500m, 2, 512Mi or 4Gi", text=shown))
    number, exponent, suffix = match.groups()
    unit = _SUFFIXES[suffix or ""] if exponent is None else Decimal(10) ** int(exponent)
    value = Decimal(number) * unit
    if abs(value) > LARGEST:
        words = _("“{text}” is too large; Kubernetes counts to {largest}", text=written, largest=LARGEST)
        raise QuantityTooLarge(words)
    return value


def millicores(text: str | int | float) -> int:
    """Return CPU in thousandths of a core, rounded up."""
    return int((parse_quantity(text) * 1000).to_integral_value(ROUND_CEILING))


def whole(text: str | int | float) -> int:
    """Return bytes or GPUs, rounded up to a whole number."""
    return int(parse_quantity(text).to_integral_value(ROUND_CEILING))


def format_cores(milli: int) -> str:
    """Return cores for people: 500 -> "0.5", 8000 -> "8", 1234567 -> "1,234.57"."""
    return f"{milli / 1000:,.2f}".rstrip("0").rstrip(".")


def format_bytes(count: int) -> str:
    """Return bytes in binary units for people, with at most one decimal: 4294967296 -> "4 GiB"."""
    for suffix, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if abs(count) >= size:
            return f"{count / size:.1f}".removesuffix(".0") + f" {suffix}B"
    return f"{count} B"
