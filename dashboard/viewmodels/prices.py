"""Amounts of money in words, in the installation's currency (environment variable `GRID_CURRENCY`); pure."""

import os
from decimal import Decimal

CURRENCY = os.environ.get("GRID_CURRENCY", "$")
_CENT = Decimal("0.01")


def money(amount: Decimal) -> str:
    """Two digits behind the point; a price below a cent is not shown as free."""
    if 0 < amount < _CENT:
        return f"less than {CURRENCY}{_CENT}"
    return f"{CURRENCY}{amount.quantize(_CENT):,}"


def price_words(cost_per_hour: Decimal) -> str:
    """ "$0.40 an hour" of 0.4000, "$0.0125 an hour" where two places are not enough, "free" of 0."""
    return f"{CURRENCY}{price_number(cost_per_hour)} an hour" if cost_per_hour else "free"


def price_number(cost: Decimal) -> str:
    exact = f"{cost.normalize():f}"
    return exact if len(exact.partition(".")[2]) > 2 else f"{cost:,.2f}"
