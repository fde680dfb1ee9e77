"""Downtimes of the controller or the cluster, as an entry in the history of each execution.

Running programs are not affected; what waits, scales, drains or ends continues afterwards.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from grid.core.translation import gettext as _
from grid.core.wording import day_words
from grid.executions.ledger import EventRecord
from grid.kube.store import Freshness

LEAST = timedelta(seconds=5)  # nobody notices a shorter delay
_SENTENCES = {
    "controller": _(
        "Until {when} UTC executions were not managed, because the controller was not running. "
        "Running programs continued; unfinished steps are resumed."
    ),
    "cluster": _(
        "Until {when} UTC the cluster did not answer the controller. Running programs continued; unfinished steps are resumed."
    ),
}


@dataclass(frozen=True, slots=True)
class Downtime:
    """A period in which the controller or the cluster was unavailable."""

    of: Literal["controller", "cluster"]
    since: datetime
    until: datetime


class DowntimeLog:
    """The downtimes of one term that are still to be recorded; `away` is the time for which nobody led before it."""

    def __init__(self, away: Downtime | None) -> None:
        self._cut_off_since: datetime | None = None
        self._unrecorded: list[Downtime] = []
        if away is not None:
            self._add(away)

    def notice(self, freshness: Freshness, now: datetime) -> None:
        """Notice when a synced cache is cut off from the cluster, and when that is over; called about once a second."""
        if freshness.error and freshness.synced:
            self._cut_off_since = self._cut_off_since or now
        elif self._cut_off_since is not None and not freshness.error:
            self._add(Downtime("cluster", self._cut_off_since, now))
            self._cut_off_since = None

    def _add(self, downtime: Downtime) -> None:
        if downtime.until - downtime.since >= LEAST:
            self._unrecorded.append(downtime)

    async def record(self, write: Callable[[EventRecord], Awaitable[object]]) -> None:
        """Write what is not recorded yet; what fails is written by the next call."""
        while self._unrecorded:
            await write(history_entry(self._unrecorded[0]))
            del self._unrecorded[0]


def history_entry(downtime: Downtime) -> EventRecord:
    """Build the history entry; its uid is deterministic, so recording it twice is a no-op."""
    since, until = downtime.since.astimezone(UTC), downtime.until.astimezone(UTC)
    when = f"{until:%H:%M:%S}"
    if since.date() != until.date():
        when = _("{time:%H:%M:%S} on {day}", time=until, day=day_words(until))
    uid = f"{downtime.of}-away/{int(since.timestamp())}"
    message = _SENTENCES[downtime.of].format(when=when)
    return EventRecord(uid, downtime.since, "", "Warning", f"{downtime.of}_away", message, 1)
