"""Sizes of a tier that Kubernetes accepts and hardly anybody means, such as `400m` of memory, which is less than a byte; pure."""

from collections.abc import Mapping, Sequence

from grid.core.quantity import format_bytes, parse_quantity, whole
from grid.core.translation import gettext as _, ngettext

_BYTES = {
    "memory": _("Memory"),
    "memory_limit": _("Memory limit"),
    "shared_memory": _("Shared memory"),
    "ephemeral_storage": _("Ephemeral storage"),
}
_CORES = {"cores": _("Cores"), "cores_limit": _("Core limit")}
SIZES = frozenset(_BYTES | _CORES)
# No program starts with less memory, as container runtimes need some themselves; no machine on sale has as many cores.
_FEW_BYTES, _MANY_CORES = 4 * 2**20, 1000


def odd_sizes(sizes: Mapping[str, str]) -> Sequence[str]:
    """Return a sentence for each size that looks like a slip of the unit; `sizes` are valid quantities by the fields of a tier, "" where
    there is none."""
    sentences = []
    for field, text in sizes.items():
        if not text or not (value := parse_quantity(text)):
            continue
        number = text.strip().rstrip("mkMGTPEinu")
        number = f"{value:f}" if field in _CORES or not number.replace(".", "").isdigit() else number
        if field in _BYTES and value < _FEW_BYTES:
            size = format_bytes(whole(text)) if value >= 1 else _("less than a byte")
            sentences.append(
                _("{field}: {text} is {size}. {number}Mi or {number}Gi may be meant.").format(
                    field=_BYTES[field], text=text, size=size, number=number
                )
            )
        elif field in _CORES and value >= _MANY_CORES:
            cores = ngettext("{count:,} core", "{count:,} cores", int(value))
            sentences.append(
                _("{field}: {text} is {cores}. {number}m, which is {fewer}, may be meant.").format(
                    field=_CORES[field], text=text, cores=cores, number=number, fewer=f"{value / 1000:f}"
                )
            )
    return sentences
