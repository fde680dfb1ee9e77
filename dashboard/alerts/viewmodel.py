"""Alerts and silences as pages show them, and what to do about them from `docs/alerts.md`; pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape

from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import StatusLine
from grid.core.regexes import Expression, RepeatedExpression
from grid.core.translation import gettext as _
from grid.models import Alert, AlertSilence

# Alertmanager tells again of what fires after repeat_interval, four hours by default.
SILENT = timedelta(hours=5)
_SEVERITIES = {
    "page": StatusLine("problem", _("Now")),
    "critical": StatusLine("problem", _("Now")),
    "ticket": StatusLine("wait", _("Within days")),
    "warning": StatusLine("wait", _("Within days")),
}
URGENT = tuple(name for name, status in _SEVERITIES.items() if status.severity == "problem")
_HEADING = RepeatedExpression(r"(?m)^## (.+)$")
_INLINE = (
    (RepeatedExpression(r"`([^`\n]+)`"), r"<code>\1</code>"),
    (RepeatedExpression(r"\*\*([^*\n]+)\*\*"), r"<b>\1</b>"),
    (RepeatedExpression(r"\*([^*\n]+)\*"), r"<em>\1</em>"),
    (RepeatedExpression(r"\[([^\]\n]+)\]\([^)\n]*\)"), r"\1"),
)
_NOT_IN_AN_ANCHOR = RepeatedExpression(r"[^a-z0-9 -]")
_SLUG = Expression(r"[a-z0-9-]{1,100}")
_ID = Expression(r"[a-z0-9]{1,16}")  # of an execution
_LABEL_VALUE = Expression(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
# As kube-state-metrics and our own metrics name the pool of a node.
_POOL_LABELS = ("pool", "node_pool", "nodepool", "label_dominodatalab_com_node_pool")
_NAME = Expression(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class AlertPlace:
    """A page that the labels lead to: `kind` is execution, pod, node or pool."""

    kind: str
    name: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class AlertLine:
    """`runbook` is the section about what to do; `silenced` says until when nobody is told of it, and who wants that why."""

    id: int
    name: str
    status: StatusLine
    summary: str
    description: str
    started_at: datetime
    ended_at: datetime | None
    silent_since: datetime | None
    runbook: str
    places: tuple[AlertPlace, ...]
    silenced: str = ""


def alert_line(alert: Alert, now: datetime, *, silenced: str = "") -> AlertLine:
    runbook = alert.annotations.get("runbook", "")
    is_silent = alert.ended_at is None and now - alert.heard_at > SILENT
    status = _SEVERITIES.get(alert.severity, StatusLine("neutral", alert.severity or _("Not said")))
    return AlertLine(
        id=alert.pk,
        name=alert.name,
        status=status if alert.ended_at is None else StatusLine("neutral", status.word),  # when somebody was needed
        summary=alert.annotations.get("summary", ""),
        description=alert.annotations.get("description", ""),
        started_at=alert.started_at,
        ended_at=alert.ended_at,
        silent_since=alert.heard_at if is_silent else None,
        runbook=runbook if _SLUG.fullmatch(runbook) else "",
        places=tuple(_places(alert.labels)),
        silenced=silenced,
    )


def _places(labels: Mapping[str, str]) -> Iterator[AlertPlace]:
    """Yield the pages of the execution, pod, node and pool that the labels name; what is no name of Kubernetes leads nowhere."""
    named = {name: value for name, value in labels.items() if _NAME.fullmatch(value)}
    if _ID.fullmatch(execution := named.get("execution", "")):
        yield AlertPlace("execution", execution)
    if named.keys() >= {"namespace", "pod"}:
        yield AlertPlace("pod", named["pod"], named["namespace"])
    if node := named.get("node"):
        yield AlertPlace("node", node)
    pool = next((labels[name] for name in _POOL_LABELS if name in labels), "")
    if _LABEL_VALUE.fullmatch(pool):
        yield AlertPlace("pool", pool)


def section_of(document: str, slug: str) -> tuple[str, str]:
    """Return the title and the text of the section whose heading has this anchor; "" twice when there is none."""
    parts = _HEADING.split(document)
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        if _NOT_IN_AN_ANCHOR.sub("", title.lower()).replace(" ", "-") == slug:  # as code hosts make the anchor
            return title, text.strip()
    return "", ""


def runbook_html(text: str) -> str:
    """Return a section as HTML in which each line is escaped: paragraphs, lists, code, bold and emphasis."""
    return "".join(_blocks(text))


def _blocks(text: str) -> Iterator[str]:
    items: list[str] = []
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("- "):
            items.append(line[2:])
        elif line.strip() and items:
            items[-1] += f" {line.strip()}"
        elif line.strip():
            lines.append(line.strip())
        if not line.strip() or (items and lines):
            if lines:
                yield f"<p>{_inline(' '.join(lines))}</p>"
                lines = []
            if items and not line.strip():
                yield f"<ul>{''.join(f'<li>{_inline(item)}</li>' for item in items)}</ul>"
                items = []


def _inline(text: str) -> str:
    shown = escape(text)
    for pattern, instead in _INLINE:
        shown = pattern.sub(instead, shown)
    return shown


SHOWN_LINES = 3
_NOT_ASKED = _(
    "Ended here by {ended_by_name}. Alertmanager may still have it, and no Alertmanager is set that could be asked: end it there."
)


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


def silence_line(silence: AlertSilence, now: datetime, *, has_alertmanager: bool) -> SilenceLine:
    labels = ", ".join(f"{name}={value}" for name, value in sorted(silence.matchers.items()) if name != "alertname")
    about = (silence.pk, silence.name, labels, silence.reason, silence.author_name, silence.until_at)
    state = _state(silence, now, has_alertmanager=has_alertmanager)
    return SilenceLine(*about, state, is_in_force=silence.until_at > now)


def _state(silence: AlertSilence, now: datetime, *, has_alertmanager: bool) -> str:
    problem = silence.alertmanager_problem
    values = {"ended_by_name": silence.ended_by_name, "problem": problem}
    if silence.until_at <= now:
        ended = _("Ended here by {ended_by_name}. Alertmanager still has it, and is asked again. {problem}")
        return (ended if has_alertmanager else _NOT_ASKED).format(**values).strip()
    if not has_alertmanager:
        return _("Here only: no Alertmanager is set, so what it sends itself continues.")
    if silence.alertmanager_id:
        return _("Here and in Alertmanager. {problem}", problem=problem).strip()
    if problem:
        return _("Here only, and what Alertmanager sends itself continues. {problem} It is asked again.", **values)
    return _("Here; Alertmanager is asked within seconds, while a controller runs.")


def critical_fragment(lines: Sequence[AlertLine]) -> Fragment:
    """Return the line of all pages: the alerts that began last, and how many more there are."""
    shown = FiringView(tuple(lines[:SHOWN_LINES]), max(0, len(lines) - SHOWN_LINES))
    return Fragment("alert-lines", "alerts/fragments/alert_lines.html", shown)
