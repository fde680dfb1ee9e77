"""Puts into words what admins edit: how much uses it, settings, and old and new values in the history; pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from dashboard.shell.viewmodels.format import UNITS, price_number
from grid.core.translation import gettext as _, ngettext
from grid.models import AuditEntry


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
    entry: AuditEntry
    changes: tuple[FieldChange, ...]
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


def history_lines(entries: Iterable[AuditEntry], labels: Mapping[str, str]) -> list[HistoryLine]:
    """Return the entries in words; `labels` are the form's labels by field name."""
    return [history_line(entry, labels) for entry in entries]


def history_line(entry: AuditEntry, labels: Mapping[str, str], *, is_reversible: bool = False) -> HistoryLine:
    if entry.action == AuditEntry.Action.CREATED:
        return HistoryLine(entry, (), can_be_taken_back=False)
    changes = (_change(name, labels.get(name, name), old, new) for name, (old, new) in entry.changes.items())
    return HistoryLine(entry, tuple(changes), is_reversible)


def amount(value: int, unit: str) -> str:
    """Return for example "25 slots"; seconds are also given in larger units: "5400 seconds (1 h 30 min)"."""
    return f"{value} {unit}{_span(value, unit)}"


def number(value: int, unit: str) -> str:
    """Return the same without the unit: "25", "5400 (1 h 30 min)"."""
    return f"{value}{_span(value, unit)}"


def _span(value: int, unit: str) -> str:
    """Return a number of seconds in larger units, unless seconds would be left over."""
    if unit != "seconds" or value < 60 or value % 60:
        return ""
    parts = []
    for size, larger_unit in UNITS:
        if value >= size:
            parts.append(f"{value // size} {larger_unit}")
            value %= size
    return f" ({' '.join(parts)})"


def _change(name: str, label: str, old: Any, new: Any) -> FieldChange:
    if name == "cost_per_hour":  # stored as text with all decimal places
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
    if isinstance(value, dict):
        return [f"{name}={text}" for name, text in sorted(value.items())]
    if isinstance(value, list):
        return [" ".join(map(str, entry.values())) if isinstance(entry, dict) else str(entry) for entry in value]
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
