"""Quantities as the API server prints them: each value has one canonical form in its family of suffixes."""

from decimal import ROUND_CEILING, Decimal

from grid.core.quantity import parse_quantity

_BINARY = (("Ei", 2**60), ("Pi", 2**50), ("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_DECIMAL = (
    ("E", Decimal("1e18")),
    ("P", Decimal("1e15")),
    ("T", Decimal("1e12")),
    ("G", Decimal("1e9")),
    ("M", Decimal("1e6")),
    ("k", Decimal("1e3")),
    ("", Decimal(1)),
    ("m", Decimal("1e-3")),
    ("u", Decimal("1e-6")),
)
_NANO = Decimal("1e-9")


def canonical_text(text: str) -> str:
    """Return the canonical form: 0.5 as 500m, 1024Mi as 1Gi, 1000 as 1k. Raise ValueError for what is not a quantity."""
    text = text.strip()
    amount = parse_quantity(text)
    return canonical(amount, binary=text.endswith("i"))


def canonical(amount: Decimal, *, binary: bool = False) -> str:
    """Return the form with the largest suffix that leaves a whole number."""
    if amount == 0:
        return "0"
    if binary and amount == amount.to_integral_value() and abs(amount) >= 1024:
        whole = int(amount)
        for suffix, size in _BINARY:
            if whole % size == 0:
                return f"{whole // size}{suffix}"
        return str(whole)
    for suffix, scale in _DECIMAL:
        scaled = amount / scale
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}{suffix}"
    return f"{int((amount / _NANO).to_integral_value(ROUND_CEILING))}n"


def is_binary(resource: str) -> bool:
    """Return True when amounts of a resource are usually counted in powers of 1024."""
    return any(word in resource for word in ("memory", "storage", "hugepages"))
