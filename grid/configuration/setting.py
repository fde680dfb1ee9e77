"""One setting of the central configuration: a whole number within bounds, or a switch."""

from collections.abc import Mapping
from dataclasses import dataclass

from grid.core.translation import gettext as _


@dataclass(frozen=True, slots=True)
class SettingTopic:
    """The settings whose keys begin with `prefix`, a section of the page; those of one framework are a topic of their own."""

    prefix: str
    title: str
    framework: str | None = None

    @property
    def name(self) -> str:
        return self.prefix.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Whole numbers from `minimum` to `maximum`, both included, of which one is the default."""

    default: int
    unit: str
    minimum: int
    maximum: int


ON = ValueRange(1, "", minimum=0, maximum=1)


@dataclass(frozen=True, slots=True)
class Setting:
    """A key with a whole-number value; a switch, whose range has no unit, is 1 or 0, shown as on or off.
    `effect` is a sentence, shown before a change is saved: what it does at once. None: `dashboard.configuration.setting_effects` counts it.
    `general` is the key of the setting that applies where this one is not set: a setting for one framework falls back to the one for all
    frameworks, and the window of a service level to that of all levels. The default applies when neither is set."""

    topic: SettingTopic
    name: str
    title: str
    range: ValueRange
    meaning: str
    effect: str | None = None
    general: str | None = None

    @property
    def default(self) -> int:
        return self.range.default

    @property
    def is_switch(self) -> bool:
        return not self.range.unit

    @property
    def key(self) -> str:
        return f"{self.topic.prefix}.{self.name}"

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys whose overrides apply, its own first."""
        return (self.key, self.general) if self.general else (self.key,)

    def parse(self, text: str) -> int:
        """Return the value of what the admin typed. Raise ValueError with a sentence for the admin when it is not allowed."""
        if self.is_switch:
            if (switched := {"on": 1, "1": 1, "off": 0, "0": 0}.get(text.strip().lower())) is None:
                raise ValueError(_("“{text}” is neither “on” nor “off”.", text=text))
            return switched
        minimum, maximum, unit = self.range.minimum, self.range.maximum, self.range.unit
        try:
            value = int(text.strip())
        except ValueError:
            raise ValueError(_("“{text}” is not a whole number of {unit}.", text=text, unit=unit)) from None
        if not minimum <= value <= maximum:
            bounds = _("Must be between {minimum} and {maximum} {unit}.", minimum=minimum, maximum=maximum, unit=unit)
            raise ValueError(bounds)
        return value

    def written(self, value: int) -> str:
        """Return the value as an admin types it; `parse` reads it back."""
        return ("on" if value else "off") if self.is_switch else str(value)


def declared_in(names: Mapping[str, object]) -> tuple[Setting, ...]:
    """Return the settings among a module's names, in the order of their declaration."""
    return tuple(value for value in names.values() if isinstance(value, Setting))
