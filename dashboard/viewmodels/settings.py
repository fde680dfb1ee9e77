"""Puts the central configuration into words: each setting with its value in force, in groups; pure.

The settings of one framework are a group of their own; where such a setting is not set, its row shows the inherited value.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from dashboard.viewmodels.administration import amount, number

# Titles by the second-to-last part of a key, its topic.
_TOPICS = {
    "sagaStateTimeouts": "Time limits of executions",
    "userExecutionsQuota": "Slots and queue",
    "homes": "Homes of people",
    "nodes": "Nodes and the autoscaler",
    "sessions": "Sessions of the dashboard",
    "logins": "Logins",
    "retention": "What is kept, and for how long",
    "clusters": "Clusters",
    "dask": "Dask clusters, where they differ",
    "ray": "Ray clusters, where they differ",
    "spark": "Spark clusters, where they differ",
}


class SettingLike(Protocol):
    """The part of `grid.centralconfig.Setting` that is used here."""

    @property
    def key(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def default(self) -> int: ...
    @property
    def minimum(self) -> int: ...
    @property
    def maximum(self) -> int: ...
    @property
    def unit(self) -> str: ...
    @property
    def meaning(self) -> str: ...
    @property
    def is_switch(self) -> bool: ...
    @property
    def general(self) -> str: ...
    @property
    def framework(self) -> str: ...
    def written(self, value: int) -> str: ...


@dataclass(frozen=True, slots=True)
class Typed:
    """A rejected input for one setting."""

    key: str
    text: str
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting. `value` is the field's text: "" when it is not set for its framework, and `inherited` then gives the value used."""

    key: str
    title: str
    meaning: str
    unit: str
    is_switch: bool
    value: str
    inherited: str
    help: str
    now: str
    back: str
    errors: tuple[str, ...]
    set_by: str
    set_at: object


@dataclass(frozen=True, slots=True)
class SettingGroup:
    """A group of settings. A collapsible one (`is_closed`) starts open when a setting in it is set or wrong; `note` sums it up."""

    title: str
    rows: tuple[SettingRow, ...]
    is_closed: bool = False
    is_open: bool = False
    note: str = ""


class RecordLike(Protocol):
    """The part of a stored override that is used here."""

    @property
    def updated_by(self) -> str: ...
    @property
    def updated_at(self) -> object: ...


def in_force(setting: SettingLike, value: int) -> str:
    """Return a value in words: "25 slots", "5400 seconds (1 h 30 min)", "on"."""
    return setting.written(value) if setting.is_switch else amount(value, setting.unit)


def setting_groups(
    settings: Iterable[SettingLike], values: Mapping[str, int], records: Mapping[str, RecordLike], typed: Typed
) -> list[SettingGroup]:
    """Return the settings in groups; `values` are the values in force, `records` the overrides, both by key."""
    found: dict[tuple[str, str], list[SettingRow]] = {}
    for setting in settings:
        topic = _TOPICS.get(setting.key.split(".")[-2], "Other")
        row = _row(setting, values, records.get(setting.key), typed)
        found.setdefault((topic, setting.framework), []).append(row)
    return [_group(topic, framework, tuple(rows)) for (topic, framework), rows in found.items()]


def _group(title: str, framework: str, rows: tuple[SettingRow, ...]) -> SettingGroup:
    if not framework:
        return SettingGroup(title, rows)
    changed = sum(1 for row in rows if row.set_by)
    note = f"{changed} of {len(rows)} differ from all frameworks." if changed else "All as for all frameworks."
    is_open = any(row.set_by or row.errors for row in rows)
    return SettingGroup(title, rows, is_closed=True, is_open=is_open, note=note)


def _row(setting: SettingLike, values: Mapping[str, int], record: RecordLike | None, typed: Typed) -> SettingRow:
    now = values[setting.key]
    is_wrong = setting.key == typed.key
    own = "" if setting.general and record is None else setting.written(now)
    return SettingRow(
        key=setting.key,
        title=setting.title,
        meaning="" if setting.general else setting.meaning,  # shown at the setting for all frameworks
        unit=setting.unit,
        is_switch=setting.is_switch,
        value=typed.text if is_wrong else own,
        inherited=f"as for all frameworks ({_short(setting, values[setting.general])})" if setting.general else "",
        help=_help(setting, values),
        now=in_force(setting, now),
        back="Do as for all frameworks" if setting.general else "Back to the default",
        errors=typed.errors if is_wrong else (),
        set_by=(record.updated_by or "somebody") if record else "",
        set_at=record.updated_at if record else None,
    )


def _help(setting: SettingLike, values: Mapping[str, int]) -> str:
    bounds = "On or off" if setting.is_switch else f"{setting.minimum} to {number(setting.maximum, setting.unit)}"
    if setting.general:
        return f"{bounds}; not set, it is as for all frameworks ({_short(setting, values[setting.general])})."
    return f"{bounds}; the default is {_short(setting, setting.default)}."


def _short(setting: SettingLike, value: int) -> str:
    return setting.written(value) if setting.is_switch else number(value, setting.unit)
