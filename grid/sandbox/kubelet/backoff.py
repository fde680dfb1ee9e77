"""Back-off before a restart or pull: none the first time, then 10 s doubling to 5 minutes, as in Kubernetes.

It is reset after a container has run for twice the longest delay. Pure: the caller passes the time.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Delays:
    first: float = 10.0
    longest: float = 300.0


@dataclass(slots=True)
class RestartBackoff:
    """The back-off of one container."""

    delays: Delays = field(default_factory=Delays)
    seconds: float = 0.0
    _updated: datetime | None = None

    def ready_at(self, ended: datetime) -> datetime:
        """Return when a container that ended at `ended` may start again."""
        if self._updated is None or ended - self._updated > timedelta(seconds=2 * self.delays.longest):
            return ended
        return ended + timedelta(seconds=self.seconds)

    def started(self, ended: datetime, now: datetime) -> None:
        """Record a restart: the next delay is twice as long, or the shortest after a long good run."""
        forgiven = self._updated is None or ended - self._updated > timedelta(seconds=2 * self.delays.longest)
        self.seconds = self.delays.first if forgiven else min(self.delays.longest, self.seconds * 2)
        self._updated = now


def spell(seconds: float) -> str:
    """Return a duration as Go prints it: 10s, 1m20s, 5m0s, 1.5s."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    tail = f"{rest:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{tail}"
    return f"{minutes}m{tail}" if minutes else tail
