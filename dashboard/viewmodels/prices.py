"""What was spent, and amounts of money in words, in the installation's currency (environment variable `GRID_CURRENCY`); pure."""

import os
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

CURRENCY = os.environ.get("GRID_CURRENCY", "$")
_CENT = Decimal("0.01")
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Spending:
    """What pods cost for the time for which they hold a node. `ended`: the price an hour of those that hold it no more, with their
    seconds; `running`: the price of each that does, and since when."""

    ended: tuple[tuple[Decimal, int], ...] = ()
    running: tuple[tuple[Decimal, datetime], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ended or self.running)

    def until(self, moment: datetime) -> Decimal:
        """The cost until then, by the second."""
        so_far = sum((price * seconds for price, seconds in self.ended), Decimal(0))
        for price, since in self.running:
            so_far += price * max(0, int((moment - since).total_seconds()))
        return so_far / _HOUR


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
