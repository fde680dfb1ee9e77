"""When launches are refused for maintenance, and in which words; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from grid.core.reasons import Reader, Reason, Sentence
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import as_sentence, listed_up_to, moment_words

MAINTENANCE = "maintenance"
_NEVER = datetime.max.replace(tzinfo=UTC)
_NAMED = 5  # executions in a notification


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Nothing is launched from `starts_at` until before `ends_at`, or until an operator ends it; `text` is the operator's."""

    announcement_id: str
    starts_at: datetime
    ends_at: datetime | None
    text: str

    def holds(self, now: datetime) -> bool:
        return self.starts_at <= now and not self.is_over(now)

    def is_over(self, now: datetime) -> bool:
        return self.ends_at is not None and self.ends_at <= now


def in_force(known: Iterable[Maintenance], now: datetime) -> Maintenance | None:
    """Return the maintenance that refuses launches now; of several the one that ends last, because it decides when they are taken."""
    holding = [maintenance for maintenance in known if maintenance.holds(now)]
    return max(holding, key=lambda maintenance: maintenance.ends_at or _NEVER, default=None)


def next_one(known: Iterable[Maintenance], now: datetime) -> Maintenance | None:
    """Return the maintenance that is announced to start first."""
    coming = [maintenance for maintenance in known if maintenance.starts_at > now and not maintenance.is_over(now)]
    return min(coming, key=lambda maintenance: maintenance.starts_at, default=None)


def reason_of(maintenance: Maintenance) -> Reason:
    """Return the reason of what it refuses, and of what waits for its end."""
    ends_at = maintenance.ends_at
    values = {"text": maintenance.text, "until": ends_at.isoformat() if ends_at else None}
    return Reason(MAINTENANCE, values, ends_at)


def waiting_sentence(values: Mapping[str, Any], reader: Reader) -> str:
    """Return why something queued waits."""
    return _("Maintenance {until}: {text} It starts by itself afterwards.", **_texts(values))


def refused_sentence(values: Mapping[str, Any]) -> str:
    """Return why a launch is refused, and until when."""
    return _("Maintenance {until}: {text} No new launches before it ends.", **_texts(values))


SENTENCES: dict[str, Sentence] = {MAINTENANCE: waiting_sentence}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    ends_at = datetime.fromisoformat(values["until"]) if values["until"] else None
    return {"until": _until(ends_at), "text": as_sentence(values["text"])}


def coming_sentence(maintenance: Maintenance) -> str:
    """Return what somebody is told who is about to launch before it."""
    return _(
        "No new launches from {start}, {until}: {text}",
        start=moment_words(maintenance.starts_at),
        until=_until(maintenance.ends_at),
        text=as_sentence(maintenance.text),
    )


def told_sentence(maintenance: Maintenance, executions: Sequence[str]) -> str:
    """Return what the owner of these running executions is notified of."""
    continuing = ngettext(
        "{count:,} running execution of yours continues: {executions}. "
        "Once it has stopped, it cannot be launched again before it ends.",
        "{count:,} running executions of yours continue: {executions}. "
        "Once they have stopped, they cannot be launched again before it ends.",
        len(executions),
        executions=listed_up_to(_NAMED, executions),
    )
    return f"{coming_sentence(maintenance)} {continuing}"


def _until(ends_at: datetime | None) -> str:
    return _("until {until}", until=moment_words(ends_at)) if ends_at else _("until an operator ends it")
