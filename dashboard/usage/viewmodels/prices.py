"""Costs, and prices in words; pure."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from dashboard.shell.viewmodels.format import price_number
from grid.core.translation import gettext as _
from grid.core.wording import CURRENCY


@dataclass(frozen=True, slots=True)
class Spending:
    """The cost of pods while they hold a node: the price per hour of each that has `ended` with its seconds, or of each that is `running`
    with the time since which it holds a node."""

    ended: tuple[tuple[Decimal, int], ...] = ()
    running: tuple[tuple[Decimal, datetime], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ended or self.running)

    def until(self, moment: datetime) -> Decimal:
        """Return the cost until then, by the second."""
        so_far = sum((price * seconds for price, seconds in self.ended), Decimal(0))
        for price, since in self.running:
            so_far += price * max(0, int((moment - since).total_seconds()))
        return so_far / 3600


def price_words(cost_per_hour: Decimal) -> str:
    """Return "$0.40 an hour" for 0.4000, "$0.0125 an hour" where two places are not enough, "free" for 0."""
    if not cost_per_hour:
        return _("free")
    return _("{currency}{price} an hour", currency=CURRENCY, price=price_number(cost_per_hour))
