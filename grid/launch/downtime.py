"""Times in which nobody could look after the executions, as a line in the history of each: the controller was away, or the cluster.

What runs is touched by neither; what waits, grows, drains or ends goes on when it is over.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from grid.launch.ledger import EventRecord
from grid.watch.store import Freshness

LEAST = timedelta(seconds=5)  # what is shorter delays nothing that anybody notices
_SENTENCES = {
    "controller": "nobody looked after executions, because the controller was not running.",
    "cluster": "the cluster did not answer the controller.",
}


@dataclass(frozen=True, slots=True)
class Downtime:
    """A period in which the controller or the cluster was unavailable."""

    of: Literal["controller", "cluster"]
    since: datetime
    until: datetime

    @property
    def is_long_enough(self) -> bool:
        return self.until - self.since >= LEAST


class Outage:
    """Notices that a cache which was up to date is cut off from the cluster, and that it is so no more."""

    def __init__(self) -> None:
        self._since: datetime | None = None

    def ended(self, freshness: Freshness, now: datetime) -> Downtime | None:
        """To be asked every second or so; the outage that is over since the last time."""
        if freshness.error and freshness.synced:
            self._since = self._since or now
        elif self._since is not None and not freshness.error:
            found, self._since = Downtime("cluster", self._since, now), None
            return found
        return None


def history_entry(downtime: Downtime) -> EventRecord:
    """Build the history entry; its uid is deterministic, so recording it twice is a no-op."""
    since, until = downtime.since.astimezone(UTC), downtime.until.astimezone(UTC)
    when = f"{until:%H:%M:%S}" if since.date() == until.date() else f"{until:%H:%M:%S on %-d %B}"
    return EventRecord(
        uid=f"{downtime.of}-away/{int(since.timestamp())}",
        at=downtime.since,
        object="",
        level="Warning",
        reason=f"{downtime.of}_away",
        message=f"Until {when} UTC {_SENTENCES[downtime.of]} Programs ran on; what had begun goes on from where it was.",
        count=1,
    )
