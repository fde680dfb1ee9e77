"""The fragments of the page *Alerts*, and the line about critical alerts on all pages of those who operate; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard.alerts.viewmodels.alerts import AlertLine
from dashboard.shell.viewmodels.live import Fragment
from grid.core.translation import gettext as _
from grid.models import AlertSilence

SHOWN_LINES = 3


@dataclass(frozen=True, slots=True)
class FiringView:
    """What fires; `more` are not shown."""

    lines: tuple[AlertLine, ...] = ()
    more: int = 0
    may_silence: bool = False


@dataclass(frozen=True, slots=True)
class SilenceLine:
    """A silence that is in force, or that Alertmanager still has though it was ended; `state` says where it holds."""

    id: int
    name: str
    labels: str
    reason: str
    author: str
    until_at: datetime
    state: str
    is_in_force: bool


@dataclass(frozen=True, slots=True)
class SilencesView:
    lines: tuple[SilenceLine, ...] = ()
    may_silence: bool = False


@dataclass(frozen=True, slots=True)
class EndedView:
    """A page of what is over; `older` leads to the next one, "" for the last."""

    lines: tuple[AlertLine, ...] = ()
    older: str = ""
    is_later_page: bool = False
    is_unknown_page: bool = False


@dataclass(frozen=True, slots=True)
class CriticalView:
    """The critical alerts that fire and that nobody has silenced; `more` are not shown."""

    lines: tuple[AlertLine, ...] = ()
    more: int = 0


def silence_line(silence: AlertSilence, now: datetime, *, has_alertmanager: bool) -> SilenceLine:
    labels = ", ".join(f"{name}={value}" for name, value in sorted(silence.matchers.items()) if name != "alertname")
    return SilenceLine(
        id=silence.pk,
        name=silence.name,
        labels=labels,
        reason=silence.reason,
        author=silence.author_name,
        until_at=silence.until_at,
        state=_state(silence, now, has_alertmanager=has_alertmanager),
        is_in_force=silence.until_at > now,
    )


def _state(silence: AlertSilence, now: datetime, *, has_alertmanager: bool) -> str:
    """Return where a silence holds, as a sentence."""
    problem = silence.alertmanager_problem
    values = {"ended_by_name": silence.ended_by_name, "problem": problem}
    if silence.until_at <= now and not has_alertmanager:
        return _(
            "Ended here by {ended_by_name}. Alertmanager may still have it, and no Alertmanager is set that could be asked: end it there.",
            **values,
        )
    if silence.until_at <= now:
        return _(
            "Ended here by {ended_by_name}. Alertmanager still has it, and is asked again. {problem}", **values
        ).strip()
    if not has_alertmanager:
        return _("Here only: no Alertmanager is set, so what it sends itself continues.")
    if silence.alertmanager_id:
        return _("Here and in Alertmanager. {problem}", problem=problem).strip()
    if problem:
        return _("Here only, and what Alertmanager sends itself continues. {problem} It is asked again.", **values)
    return _("Here; Alertmanager is asked within seconds, while a controller runs.")


def alert_fragments(firing: FiringView, silences: SilencesView, ended: EndedView) -> list[Fragment]:
    return [
        Fragment("alert-silences", "alerts/fragments/alert_silences.html", silences),
        Fragment("alerts-firing", "alerts/fragments/alerts_firing.html", firing),
        Fragment("alerts-ended", "alerts/fragments/alerts_ended.html", ended),
    ]


def critical_fragment(lines: Sequence[AlertLine]) -> Fragment:
    """Return the line of all pages: the alerts that began last, and how many more there are."""
    shown = CriticalView(tuple(lines[:SHOWN_LINES]), max(0, len(lines) - SHOWN_LINES))
    return Fragment("alert-lines", "alerts/fragments/alert_lines.html", shown)
