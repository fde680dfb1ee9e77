"""Costs, and prices in words; pure."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from dashboard.shell.viewmodels.format import price_number
from grid.core.translation import gettext as _
from grid.core.wording import CURRENCY

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


def price_words(cost_per_hour: Decimal) -> str:
    """Return "$0.40 an hour" for 0.4000, "$0.0125 an hour" where two places are not enough, "free" for 0."""
    return (
        _("{currency}{cost_per_hour} an hour", currency=CURRENCY, cost_per_hour=price_number(cost_per_hour))
        if cost_per_hour
        else _("free")
    )
