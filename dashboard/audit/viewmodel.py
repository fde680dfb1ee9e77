"""The page of the audit log: its filter, its entries in the words of the objects' own histories, and a file for spreadsheets; pure."""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

from dashboard.administration.viewmodel import FieldChange, HistoryLine, history_line
from dashboard.shell.viewmodels.format import spreadsheet_text
from dashboard.shell.viewmodels.listing import FilterChip
from grid.core.translation import gettext as _, ngettext
from grid.models import AuditEntry

_LONGEST = 200
# By object type. A kind that is missing here is shown as it is stored.
KINDS = {
    "hardwaretier": _("Tier"),
    "environment": _("Environment"),
    "project": _("Project"),
    "projectbudget": _("Budget"),
    "user": _("Person"),
    "group": _("Group"),
    "login": _("Login"),
    "setting": _("Setting"),
    "knowledgeentry": _("Knowledge entry"),
    "execution": _("Execution"),
    "workspace": _("Workspace"),
    "job": _("Job"),
    "announcement": _("Announcement"),
    "message": _("Message"),
    "nodetask": _("Node"),
    "nodepool": _("Node pool"),
    "apicheckrun": _("API check"),
    "queuetakeover": _("Queue"),
    "verboselogging": _("Verbose logs"),
    "alertsilence": _("Silence"),
    "rushplan": _("Rush plan"),
}
_CHIPS = {
    "who": _("Who: {value}"),
    "kind": _("Object: {value}"),
    "action": _("Action: {value}"),
    "text": "“{value}”",
    "since": _("From {value}"),
    "until": _("Until {value}"),
}
_VALUES_HIDDEN = frozenset({"variables"})  # environment variables: the names are shown, the values may be secret


@dataclass(frozen=True, slots=True)
class AuditPosition:
    """The place of an entry in the order of time; entries of the same moment are in the order of their ids."""

    at: datetime
    id: int

    def __str__(self) -> str:
        return f"{self.at.isoformat()}~{self.id}"

    @classmethod
    def parse(cls, text: str) -> "AuditPosition | None":
        """Parse the text that `str` wrote; None when it is invalid."""
        at, _, id = text.partition("~")
        try:
            moment = datetime.fromisoformat(at)
            if moment.tzinfo is None or not (id.isascii() and id.isdigit()) or len(id) > 18:
                return None
            return cls(moment.astimezone(UTC), int(id))
        except (ValueError, OverflowError):
            return None


@dataclass(frozen=True, slots=True)
class AuditView:
    """What of the audit log is shown; "" and None leave a condition out. `until` is a whole day (UTC), `before` where the page begins."""

    who: str = ""
    kind: str = ""
    action: str = ""
    text: str = ""
    since: date | None = None
    until: date | None = None
    before: AuditPosition | None = None

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> "AuditView":
        """Parse an address; what is not valid is no condition."""
        texts = {name: query.get(name, "").replace("\0", "").strip()[:_LONGEST] for name in _CHIPS}
        since, until = _day(texts.pop("since")), _day(texts.pop("until"))
        return cls(**texts, since=since, until=until, before=AuditPosition.parse(query.get("before", "")))

    @property
    def first_moment(self) -> datetime | None:
        return datetime.combine(self.since, time(), UTC) if self.since else None

    @property
    def end(self) -> datetime | None:
        """The moment after the last day; None at the end of the calendar, too."""
        if self.until is None or self.until == date.max:
            return None
        return datetime.combine(self.until + timedelta(days=1), time(), UTC)

    @property
    def query(self) -> str:
        """The conditions as a query string, without the page."""
        return self._query()

    def _query(self, leaving_out: str = "") -> str:
        values = {name: str(getattr(self, name) or "") for name in _CHIPS if name != leaving_out}
        given = urlencode({name: value for name, value in values.items() if value})
        return f"?{given}" if given else ""

    def page_at(self, position: str) -> str:
        return f"{self.query or '?'}{'&' if self.query else ''}{urlencode({'before': position})}"

    def chips(self, actions: Mapping[str, str]) -> list[FilterChip]:
        """Return each condition, with the way to drop it alone; `actions` are the titles."""
        chips = []
        for name, words in _CHIPS.items():
            if value := str(getattr(self, name) or ""):
                titles = {"kind": KINDS, "action": actions}.get(name, {})
                chips.append(FilterChip(words.format(value=titles.get(value, value)), self._query(leaving_out=name)))
        return chips


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One entry in words. `url` is the object's page, "" when it is gone or has none that the viewer may open."""

    line: HistoryLine
    kind: str
    url: str


def audit_lines(
    entries: Iterable[AuditEntry], labels: Mapping[str, Mapping[str, str]], urls: Mapping[Any, str]
) -> list[AuditLine]:
    """Return the entries in words; `labels` are those of fields by object type, `urls` the objects' pages by entry."""
    return [
        AuditLine(_line(entry, labels), KINDS.get(entry.object_type, entry.object_type), urls.get(entry.pk, ""))
        for entry in entries
    ]


def sealing_sentence(unsealed: int, most: int) -> str:
    """Say how many entries are not sealed; above `most` they were not counted further."""
    if not unsealed:
        return _("All entries are sealed.")
    counted = _("More than {most:,} entries are not sealed yet", most=most)
    if unsealed <= most:
        counted = ngettext("{count:,} entry is not sealed yet", "{count:,} entries are not sealed yet", unsealed)
    return _("{counted}: the controller seals new ones every ten seconds.", counted=counted)


def audit_rows(
    entries: Iterable[AuditEntry], labels: Mapping[str, Mapping[str, str]], *, has_head: bool = False
) -> str:
    """Return the entries as rows of a CSV file. A text that a spreadsheet would compute is quoted with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text)
    if has_head:
        writer.writerow(("number", "time", "who", "action", "kind", "object_id", "object", "change", "hash"))
    for entry in entries:
        texts = (
            entry.actor_name or _("not logged in"),
            entry.get_action_display(),
            KINDS.get(entry.object_type, entry.object_type),
            entry.object_id,
            entry.object_name,
            "; ".join(map(_change_text, _line(entry, labels).changes)),
        )
        writer.writerow((entry.number, entry.at.astimezone(UTC).isoformat(), *map(spreadsheet_text, texts), entry.hash))
    return text.getvalue()


def _line(entry: AuditEntry, labels: Mapping[str, Mapping[str, str]]) -> HistoryLine:
    line = history_line(entry, labels.get(entry.object_type, {}))
    changes = tuple(
        _names_only(change.label, *entry.changes[name]) if name in _VALUES_HIDDEN else change
        for name, change in zip(entry.changes, line.changes, strict=False)
    )
    return replace(line, changes=changes)


def _names_only(label: str, old: Any, new: Any) -> FieldChange:
    """Return which environment variables came, went or got another value, without any value."""
    before, after = (dict(value) if isinstance(value, dict) else {} for value in (old, new))
    changed = [name for name in sorted(before) if name in after and after[name] != before[name]]
    removed = (*sorted(before.keys() - after), *(_("{name} (old value)", name=name) for name in changed))
    added = (*sorted(after.keys() - before), *(_("{name} (new value)", name=name) for name in changed))
    return FieldChange(label, removed=removed, added=added)


def _change_text(change: FieldChange) -> str:
    words = f"{change.old} → {change.new}"
    if change.removed or change.added:
        words = ", ".join([*(f"-{text}" for text in change.removed), *(f"+{text}" for text in change.added)])
    return f"{change.label}: {words}" if change.label else words


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
