"""The stored values that only one kind of execution has, and the words that depend on them; pure."""

from decimal import Decimal
from typing import ClassVar

from dashboard.usage.viewmodels.usage import price_words
from grid.core.translation import gettext as _
from grid.core.wording import plural


class KindRecord:
    """The base, and the record of a kind that runs in one pod and stores nothing more. The room of another kind has a subclass."""

    __slots__ = ()
    has_members: ClassVar[bool] = False  # it runs in several pods: a head and workers

    @property
    def words(self) -> str:
        """What it is, where that says more than the name of its kind; else ""."""
        return ""

    @property
    def open_word(self) -> str:
        return _("Open")

    @property
    def head(self) -> tuple[str, str]:
        """The name of the head's tier and its size; ("", "") without a head."""
        return "", ""

    def prices(self, cost_per_hour: Decimal, *, workers: int, has_started: bool) -> tuple[str, str]:
        """Return the price of an hour now, with so many `workers` that hold a node, and its bounds where it varies, else ""."""
        return price_words(cost_per_hour), ""

    def slots_words(self, slots: int) -> str:
        return plural(slots, "slot", "slots") if slots > 1 else ""
