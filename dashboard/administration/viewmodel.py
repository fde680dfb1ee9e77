"""Puts into words what admins edit: how much uses it, settings, and old and new values in the history; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

from dashboard.shell.viewmodels.format import price_number
from grid.core.translation import gettext as _
from grid.core.translation import ngettext

_SPANS = ((24 * 60 * 60, "d"), (60 * 60, "h"), (60, "min"))
_PRICES = frozenset({"cost_per_hour"})  # stored as text with all decimal places


class EntryLike(Protocol):
    """A stored entry of the audit log."""

    @property
    def pk(self) -> Any: ...
    @property
    def at(self) -> datetime: ...
    @property
    def actor_name(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def object_id(self) -> str: ...
    @property
    def object_name(self) -> str: ...
    @property
    def changes(self) -> Any: ...
    def get_action_display(self) -> str: ...


@dataclass(frozen=True, slots=True)
class FieldChange:
    """The change of one field. For a list only the removed and added entries are given, and `old` and `new` are empty."""

    label: str
    old: str = ""
    new: str = ""
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryLine:
    entry_id: Any
    at: datetime
    who: str
    action: str
    object_id: str
    object_name: str
    changes: tuple[FieldChange, ...]
    is_new: bool
    can_be_taken_back: bool


def in_use_sentence(count: int) -> str:
    """Return a sentence about the active executions that use the object; "" without any."""
    if not count:
        return ""
    return ngettext(
        "{count:,} active execution uses it. It keeps the values that it was launched with; changes apply to new launches.",
        "{count:,} active executions use it. They keep the values that they were launched with; changes apply to new launches.",
        count,
    )


def history_lines(entries: Iterable[EntryLike], labels: Mapping[str, str], *, is_reversible: bool) -> list[HistoryLine]:
    """Return the entries in words; `labels` are the form's labels by field name."""
    return [
        HistoryLine(
            entry_id=entry.pk,
            at=entry.at,
            who=entry.actor_name,
            action=entry.get_action_display(),
            object_id=entry.object_id,
            object_name=entry.object_name,
            changes=()
            if entry.action == "created"
            else tuple(_change(name, labels.get(name, name), old, new) for name, (old, new) in entry.changes.items()),
            is_new=entry.action == "created",
            can_be_taken_back=is_reversible and entry.action != "created",
        )
        for entry in entries
    ]


def amount(value: int, unit: str) -> str:
    """Return for example "25 slots"; seconds are also given in larger units: "5400 seconds (1 h 30 min)"."""
    return _with_span(f"{value} {unit}", value, unit)


def number(value: int, unit: str) -> str:
    """Return the same without the unit: "25", "5400 (1 h 30 min)"."""
    return _with_span(str(value), value, unit)


def _with_span(text: str, value: int, unit: str) -> str:
    span = _span(value) if unit == "seconds" else ""
    return f"{text} ({span})" if span else text


def _span(seconds: int) -> str:
    """Return the exact time in larger units, such as "1 h 30 min"; "" when seconds would be left over."""
    parts = []
    for size, unit in _SPANS:
        if seconds >= size:
            parts.append(f"{seconds // size} {unit}")
            seconds %= size
    return " ".join(parts) if not seconds else ""


def _change(name: str, label: str, old: Any, new: Any) -> FieldChange:
    if name in _PRICES:
        return FieldChange(label, _price_word(old), _price_word(new))
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        return FieldChange(label, _word(old), _word(new))
    removed = tuple(line for line in before if line not in after)
    added = tuple(line for line in after if line not in before)
    if not removed and not added:
        return FieldChange(label, ", ".join(before), ", ".join(after))
    return FieldChange(label, removed=removed, added=added)


def _lines(value: Any) -> list[str] | None:
    """Return the entries of a list or mapping as texts; None for any other value."""
    if isinstance(value, dict):
        return [f"{name}={text}" for name, text in sorted(value.items())]
    if isinstance(value, list):
        return [" ".join(map(str, one.values())) if isinstance(one, dict) else str(one) for one in value]
    return None


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return _("empty") if value is None or value == "" else str(value)


def _price_word(value: Any) -> str:
    try:
        return price_number(Decimal(str(value)))
    except InvalidOperation:
        return _word(value)
