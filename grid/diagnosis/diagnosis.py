"""A diagnosis: why something waits or failed, in the words of the person who waits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from grid.kube.objects import Event

Severity = Literal["ok", "wait", "problem"]
Who = Literal["", "you", "admin", "operator"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The reason why something waits or failed. `who` can repair it, `next_step` says how, and `evidence` is Kubernetes' own text."""

    code: str
    sentence: str
    severity: Severity
    who: Who
    next_step: str = ""
    evidence: tuple[str, ...] = ()


def latest(events: Sequence[Event], *reasons: str) -> Event | None:
    """Return the newest event with one of the reasons; `events` are oldest first."""
    return next((event for event in reversed(events) if event.reason in reasons), None)


def quoted(*texts: str) -> tuple[str, ...]:
    """Return the texts as evidence, without empty ones and duplicates."""
    return tuple(dict.fromkeys(text.strip() for text in texts if text.strip()))


def since(moment: datetime | None, now: datetime) -> timedelta:
    """Return the time since `moment`, never negative, because the clocks of nodes differ; zero for None."""
    return max(timedelta(0), now - moment) if moment else timedelta(0)
