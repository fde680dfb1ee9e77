"""Costs, and amounts of money in words, in the installation's currency (environment variable `GRID_CURRENCY`); pure."""

import os
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

CURRENCY = os.environ.get("GRID_CURRENCY", "$")
_CENT = Decimal("0.01")
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Spending:
    """The cost of pods while they hold a node. `ended` pairs a price per hour with the seconds of pods that have released their node;
    `running` pairs the price per hour of a pod with the time since which it holds a node."""

    ended: tuple[tuple[Decimal, int], ...] = ()
    running: tuple[tuple[Decimal, datetime], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ended or self.running)

    def until(self, moment: datetime) -> Decimal:
        """Return the cost until then, by the second."""
        so_far = sum((price * seconds for price, seconds in self.ended), Decimal(0))
        for price, since in self.running:
            so_far += price * max(0, int((moment - since).total_seconds()))
        return so_far / _HOUR


def money(amount: Decimal) -> str:
    """Return the amount with two decimal places, or "less than" a cent instead of zero."""
    if 0 < amount < _CENT:
        return f"less than {CURRENCY}{_CENT}"
    return f"{CURRENCY}{amount.quantize(_CENT):,}"


def price_words(cost_per_hour: Decimal) -> str:
    """Return "$0.40 an hour" for 0.4000, "$0.0125 an hour" where two places are not enough, "free" for 0."""
    return f"{CURRENCY}{price_number(cost_per_hour)} an hour" if cost_per_hour else "free"


def price_number(cost: Decimal) -> str:
    exact = f"{cost.normalize():f}"
    return exact if len(exact.partition(".")[2]) > 2 else f"{cost:,.2f}"
