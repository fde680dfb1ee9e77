"""Quantities as the API server prints them."""

from decimal import Decimal

_BINARY = (("Ei", 2**60), ("Pi", 2**50), ("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def canonical(amount: Decimal) -> str:
    """The shortest exact form: 600m, 1, 256Mi."""
    if amount != amount.to_integral_value():
        milli = amount * 1000
        if milli == milli.to_integral_value():
            return f"{int(milli)}m"
        return f"{int((amount * 10**9).to_integral_value())}n"
    whole = int(amount)
    for suffix, size in _BINARY:
        if whole and whole % size == 0:
            return f"{whole // size}{suffix}"
    return str(whole)
