"""Times in which nobody could look after the executions, as a line in the history of each: the controller was away, or the cluster.

What runs is touched by neither; what waits, grows, drains or ends goes on when it is over.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from grid.launch.ledger import Noted
from grid.watch.store import Freshness

LEAST = timedelta(seconds=5)  # what is shorter delays nothing that anybody notices
_SENTENCES = {
    "controller": "nobody looked after executions, because the controller was not running.",
    "cluster": "the cluster did not answer the controller.",
}


@dataclass(frozen=True, slots=True)
class Absence:
    """Of whom, and when."""

    of: Literal["controller", "cluster"]
    since: datetime
    until: datetime

    @property
    def is_told(self) -> bool:
        return self.until - self.since >= LEAST


class Outage:
    """Notices that a cache which was up to date is cut off from the cluster, and that it is so no more."""

    def __init__(self) -> None:
        self._since: datetime | None = None

    def ended(self, freshness: Freshness, now: datetime) -> Absence | None:
        """To be asked every second or so; the outage that is over since the last time."""
        if freshness.error and freshness.synced:
            self._since = self._since or now
        elif self._since is not None and not freshness.error:
            found, self._since = Absence("cluster", self._since, now), None
            return found
        return None


def line(absence: Absence) -> Noted:
    """The same for the same absence, whoever tells it and however often."""
    since, until = absence.since.astimezone(UTC), absence.until.astimezone(UTC)
    when = f"{until:%H:%M:%S}" if since.date() == until.date() else f"{until:%H:%M:%S on %-d %B}"
    return Noted(
        uid=f"{absence.of}-away/{int(since.timestamp())}",
        at=absence.since,
        object="",
        level="Warning",
        reason=f"{absence.of}_away",
        message=f"Until {when} UTC {_SENTENCES[absence.of]} Programs ran on; what had begun goes on from where it was.",
        count=1,
    )
