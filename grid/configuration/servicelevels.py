"""The settings of the service levels, made from their definitions: objectives, thresholds where a level has one, and windows."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from grid.configuration.setting import Setting, SettingTopic, ValueRange
from grid.core.translation import gettext as _
from grid.servicelevels import levels

_UNITS = {"seconds": _("seconds"), "milliseconds": _("milliseconds"), "executions": _("executions")}
_LEVELS = SettingTopic("com.cerebro.computegrid.serviceLevels", _("Service levels"))
_MEASURED = _(
    "The page Service levels is measured by it within minutes, back to the beginning of its window. Alerts follow when the rules are "
    "generated again: manage.py monitoring."
)


def _name(level: levels.ServiceLevel, what: str) -> str:
    return f"{level.name[0].lower()}{level.name[1:]}{what}"


def _objective(level: levels.ServiceLevel) -> Setting:
    meaning = _("How many of 10,000 {counted} are to keep the promise; 9,950 is 99.5 percent. {explained}")
    return Setting(
        topic=_LEVELS,
        name=_name(level, "ObjectivePerTenThousand"),
        title=_("{level}: objective", level=level.title),
        range=ValueRange(
            level.objective, _("of 10,000"), minimum=levels.LEAST_OBJECTIVE, maximum=levels.HIGHEST_OBJECTIVE
        ),
        meaning=meaning.format(counted=level.counted, explained=level.explained),
        effect=_MEASURED,
    )


def _threshold(level: levels.ServiceLevel) -> Setting:
    measured, minimum, maximum = "", 0, level.highest_threshold
    if level.steps:
        shown = ", ".join(f"{step:,}" for step in level.steps)
        measured = _(" Measured are {steps}: between two of them the smaller one counts.", steps=shown)
        minimum, maximum = level.steps[0], level.steps[-1]
    return Setting(
        topic=_LEVELS,
        name=_name(level, f"Threshold{level.unit.capitalize()}"),
        title=_("{level}: threshold", level=level.title),
        range=ValueRange(level.threshold, _UNITS[level.unit], minimum, maximum),
        meaning=_("What exceeds it breaks the promise.{measured}", measured=measured),
        effect=_MEASURED,
    )


OBJECTIVES = {level.id: _objective(level) for level in levels.LEVELS}
THRESHOLDS = {level.id: _threshold(level) for level in levels.LEVELS if level.unit}
LEVEL_WINDOW = Setting(
    topic=_LEVELS,
    name="windowDays",
    title=_("Service levels: window"),
    range=ValueRange(levels.WINDOW_DAYS, _("days"), minimum=levels.SHORTEST_WINDOW, maximum=levels.LONGEST_WINDOW),
    meaning=_(
        "For how long objectives and error budgets are added up, for each level without a window of its own. Keep Prometheus' own "
        "retention longer, which is 15 days by default."
    ),
    effect=_MEASURED,
)
_OF_ALL = replace(LEVEL_WINDOW, general=LEVEL_WINDOW.key)
WINDOWS = {
    level.id: replace(_OF_ALL, name=_name(level, "WindowDays"), title=_("{level}: window", level=level.title))
    for level in levels.LEVELS
}
_SETTINGS = [(OBJECTIVES[level.id], THRESHOLDS.get(level.id), WINDOWS[level.id]) for level in levels.LEVELS]
SERVICE_LEVEL_SETTINGS = (LEVEL_WINDOW, *filter(None, chain.from_iterable(_SETTINGS)))


def targets_from(values: Mapping[str, int]) -> tuple[levels.LevelTarget, ...]:
    """Return all service levels with the values in force, by key."""
    return tuple(
        levels.LevelTarget(
            level,
            objective=values[OBJECTIVES[level.id].key],
            threshold=values[THRESHOLDS[level.id].key] if level.id in THRESHOLDS else 0,
            window_days=values[WINDOWS[level.id].key],
        )
        for level in levels.LEVELS
    )
