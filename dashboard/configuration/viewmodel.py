"""Puts the central configuration into words: each setting with its value in force, in sections, and a change of several; pure.

The settings of one framework are a section of their own; where such a setting is not set, its row shows the inherited value.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from dashboard.administration.viewmodel import amount, number
from dashboard.configuration.setting_effects import Consequence
from grid.configuration import Setting, SettingChange, SettingTopic
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.models import ConfigRecord


@dataclass(frozen=True, slots=True)
class Typed:
    """What an admin has typed and not saved, and what is wrong with it, both by key."""

    texts: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SettingFilter:
    """Which settings the page shows: those with every word of `words`, and only changed ones if `is_changed_only`."""

    words: str = ""
    is_changed_only: bool = False

    def finds(self, text: str) -> bool:
        text = text.casefold()
        return all(word in text for word in self.words.casefold().split())


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting. `value` is the field's text, `placeholder` what applies while it is empty; a switch offers that as `fallback`."""

    setting: Setting
    meaning: str
    value: str
    placeholder: str
    fallback: str
    has_fallback: bool
    help: str
    back: str
    errors: tuple[str, ...]
    is_typed: bool
    is_changed: bool
    is_shown: bool
    record: ConfigRecord | None


@dataclass(frozen=True, slots=True)
class SettingSection:
    """`changed` settings of it are set. A collapsible one starts open when a setting is set, wrong or searched for; `note` sums it up."""

    anchor: str
    title: str
    short_title: str
    rows: tuple[SettingRow, ...]
    changed: int
    is_shown: bool
    is_closed: bool = False
    is_open: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class ReviewLine:
    """A change before it is saved: the text that the form sends, the values in words, and what saving does."""

    change: SettingChange
    text: str
    old: str
    new: str
    default_word: str
    consequence: Consequence


def in_force(setting: Setting, value: int) -> str:
    """Return a value in words: "25 slots", "5400 seconds (1 h 30 min)", "on"."""
    return setting.written(value) if setting.is_switch else amount(value, setting.range.unit)


def own_text(setting: Setting, stored: Mapping[str, str]) -> str:
    """Return what the field of a setting shows with these overrides; "" when it is not set for its framework. Raise ValueError for an
    override that the setting does not allow."""
    text = stored.get(setting.key)
    if text is None:
        return "" if setting.general else setting.written(setting.default)
    return setting.written(setting.parse(text))


def setting_sections(
    settings: Iterable[Setting],
    values: Mapping[str, int],
    records: Mapping[str, ConfigRecord],
    typed: Typed,
    shown: SettingFilter,
) -> list[SettingSection]:
    """Return the settings in sections; `values` are the values in force, `records` the overrides, both by key."""
    rows: dict[SettingTopic, list[SettingRow]] = {}
    for setting in settings:
        row = _row(setting, values, records.get(setting.key), typed, shown)
        rows.setdefault(setting.topic, []).append(row)
    return [_section(topic, tuple(rows_of_topic), shown) for topic, rows_of_topic in rows.items()]


def review_lines(changes: Iterable[SettingChange], effects: Mapping[str, Consequence]) -> list[ReviewLine]:
    return [
        ReviewLine(
            change=change,
            text="" if change.wanted is None else change.setting.written(change.after),
            old=in_force(change.setting, change.before),
            new=in_force(change.setting, change.after),
            default_word=_as_what(change.setting),
            consequence=effects[change.setting.key],
        )
        for change in changes
    ]


def saved_sentence(changes: Iterable[SettingChange]) -> str:
    lines = list(changes)
    if len(lines) > 1:
        return _("{settings} changed; they are in force already.", settings=plural(len(lines), "setting", "settings"))
    (change,) = lines
    setting, now = change.setting, in_force(change.setting, change.after)
    if change.wanted is not None:
        return _("{title} is now {value}; it is in force already.", title=setting.title, value=now)
    if setting.general:
        return _("{title} is {as_what}, {value}.", title=setting.title, as_what=_as_what(setting), value=now)
    return _("{title} is back to the default of {value}.", title=setting.title, value=now)


def overtaken_sentence(setting: Setting, value: int, who: str, at: datetime | None) -> str:
    """Return who changed a setting to `value` since an admin opened the page, and when; `who` is "" when nobody knows."""
    when = _(" on {at:%Y-%m-%d at %H:%M:%S} UTC", at=at) if at is not None else ""
    sentence = _("{who} changed this to {value}{when}. Review again to save your value instead.")
    return sentence.format(who=who or _("Somebody"), value=in_force(setting, value), when=when)


def _section(topic: SettingTopic, rows: tuple[SettingRow, ...], shown: SettingFilter) -> SettingSection:
    changed = sum(row.record is not None for row in rows)
    title, is_shown = topic.title, any(row.is_shown for row in rows)
    section = SettingSection(f"settings-{topic.name}", title, title.partition(",")[0], rows, changed, is_shown)
    if not topic.framework:
        return section
    note = _("No value differs from those for all frameworks.")
    if changed:
        note = _("{changed} of {rows} differ from all frameworks.", changed=changed, rows=len(rows))
    is_open = any(row.is_changed or row.errors for row in rows) or bool(shown.words)
    return replace(section, is_closed=True, is_open=is_open, note=note)


def _row(
    setting: Setting, values: Mapping[str, int], record: ConfigRecord | None, typed: Typed, shown: SettingFilter
) -> SettingRow:
    now = values[setting.key]
    own = own_text(setting, {setting.key: record.value} if record else {})
    text, errors = typed.texts.get(setting.key, own), typed.errors.get(setting.key, ())
    meaning = "" if setting.general else setting.meaning  # shown at the setting for all
    back = _("Use the value for all frameworks") if setting.topic.framework else _("Use the value for all levels")
    is_typed = text != own
    is_changed = is_typed or record is not None
    is_found = shown.finds(f"{setting.topic.title} {setting.title} {meaning} {setting.key}")
    return SettingRow(
        setting=setting,
        meaning=meaning,
        value=text,
        placeholder=_inherited(setting, values),
        fallback=_fallback(setting, values),
        has_fallback=bool(setting.general or record or not text),
        help=_help(setting, values),
        back=back if setting.general else _("Back to the default"),
        errors=tuple(_("{error} In force is {value}.", error=error, value=in_force(setting, now)) for error in errors),
        is_typed=is_typed,
        is_changed=is_changed,
        is_shown=bool(errors) or (is_found and (is_changed or not shown.is_changed_only)),
        record=record,
    )


def _fallback(setting: Setting, values: Mapping[str, int]) -> str:
    return f"{_as_what(setting)}: {_inherited(setting, values)}"


def _as_what(setting: Setting) -> str:
    """Return what the setting is while it is not set itself: as another one, or the default."""
    if not setting.general:
        return _("default")
    return _("as for all frameworks") if setting.topic.framework else _("as for all levels")


def _inherited(setting: Setting, values: Mapping[str, int]) -> str:
    return _short(setting, values[setting.general] if setting.general else setting.default)


def _help(setting: Setting, values: Mapping[str, int]) -> str:
    bounds, range = _("On or off"), setting.range
    if not setting.is_switch:
        maximum = number(range.maximum, range.unit)
        bounds = _("{minimum} to {maximum}", minimum=range.minimum, maximum=maximum)
    if setting.general:
        return _("{bounds}; not set, it is {value}.", bounds=bounds, value=_fallback(setting, values))
    return _("{bounds}; the default is {value}.", bounds=bounds, value=_short(setting, setting.default))


def _short(setting: Setting, value: int) -> str:
    return setting.written(value) if setting.is_switch else number(value, setting.range.unit)
