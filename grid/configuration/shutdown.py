"""The settings that say when workspaces and apps are stopped by themselves: after a maximum lifetime, or when idle."""

from grid.configuration.setting import Setting, SettingTopic, ValueRange, declared_in
from grid.core.translation import gettext as _
from grid.models.fields import LONGEST_IDLE_MINUTES, LONGEST_LIFETIME_HOURS

_SHUTDOWN = SettingTopic("com.cerebro.computegrid.shutdown", _("Idle shut-down and lifetime"))
_ANNOUNCED = _("Applies to running executions too. Nothing stops at once: each stop is announced before.")


def _hours(name: str, title: str, default: int, meaning: str, *, minimum: int = 0) -> Setting:
    return Setting(
        _SHUTDOWN, name, title, ValueRange(default, _("hours"), minimum, LONGEST_LIFETIME_HOURS), meaning, _ANNOUNCED
    )


def _minutes(name: str, title: str, default: int, meaning: str, *, minimum: int = 0) -> Setting:
    return Setting(
        _SHUTDOWN, name, title, ValueRange(default, _("minutes"), minimum, LONGEST_IDLE_MINUTES), meaning, _ANNOUNCED
    )


WORKSPACE_IDLE = _minutes(
    "workspaceIdleMinutes",
    _("Idle time of workspaces"),
    0,
    _(
        "A workspace that was idle for this long is stopped, with its cluster; 0 turns this off. Idle means: "
        "no kernel is busy, no terminal "
        "is active, the CPU is below the limit for idleness, and nobody uses it. A tier or a project may say otherwise."
    ),
)
APP_IDLE = _minutes(
    "appIdleMinutes",
    _("Idle time of apps"),
    0,
    _(
        "An app that was idle for this long is stopped; 0 turns this off. Idle means: nobody uses it, and the CPU is below the limit for "
        "idleness."
    ),
)
IDLE_CPU = Setting(
    topic=_SHUTDOWN,
    name="idleCpuPercent",
    title=_("CPU limit for idleness"),
    range=ValueRange(1, _("percent"), minimum=1, maximum=100),
    meaning=_("An execution is in use while its average CPU over five minutes is at or above this share of one core."),
    effect=_ANNOUNCED,
)
WORKSPACE_LIFETIME = _hours(
    "workspaceLifetimeHours",
    _("Maximum lifetime of workspaces"),
    0,
    _(
        "A workspace is stopped this long after it started to run, with its cluster, also while it is in use; 0 turns this off. It can be "
        "resumed."
    ),
)
APP_LIFETIME = _hours(
    "appLifetimeHours",
    _("Maximum lifetime of apps"),
    0,
    _("An app is stopped this long after it started to run, also while it is in use; 0 turns this off."),
)
LIFETIME_EXTENSION = _hours(
    "lifetimeExtensionHours",
    _("Longest extension of the lifetime"),
    24,
    _("How long people may keep an execution beyond its maximum lifetime, in all."),
)
KEEP_TIME = _hours(
    "keepHours",
    _("Extension at one time"),
    2,
    _("How much longer one press of “Keep it” keeps an execution."),
    minimum=1,
)
STOP_WARNING = _minutes(
    "warningMinutes",
    _("Warning before the stop"),
    30,
    _("How long before such a stop its page and a notification say so; of a shorter limit at least half its time."),
    minimum=1,
)
PROJECT_IDLE_BOUND = _minutes(
    "projectIdleMinutesBound",
    _("Bound of a project’s own idle time"),
    0,
    _("A project may always choose a shorter idle time than its tiers have, and a longer one up to this."),
)
PROJECT_LIFETIME_BOUND = _hours(
    "projectLifetimeHoursBound",
    _("Bound of a project’s own lifetime"),
    0,
    _("A project may always choose a shorter maximum lifetime than its tiers have, and a longer one up to this."),
)
SHUTDOWN_SETTINGS = declared_in(globals())
