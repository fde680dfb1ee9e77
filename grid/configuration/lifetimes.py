"""The settings that say when workspaces and apps are stopped by themselves, and for how many days records are kept; 0: for ever."""

from grid.configuration.setting import Setting, SettingTopic, ValueRange, declared_in
from grid.core.translation import gettext as _
from grid.models.fields import LONGEST_IDLE_MINUTES, LONGEST_LIFETIME_HOURS

_SHUTDOWN = SettingTopic("com.cerebro.computegrid.shutdown", _("Idle shut-down and lifetime"))
_RETENTION = SettingTopic("com.cerebro.computegrid.retention", _("Retention"))
_LONGEST = 100 * 365
GRANT_LONGEST_DAYS = 7  # as long as browsers keep the grant's cookie
_ANNOUNCED = _("Applies to running executions too. Nothing stops at once: each stop is announced before.")


def _hours(name: str, title: str, default: int, meaning: str, *, minimum: int = 0) -> Setting:
    return Setting(
        _SHUTDOWN, name, title, ValueRange(default, _("hours"), minimum, LONGEST_LIFETIME_HOURS), meaning, _ANNOUNCED
    )


def _minutes(name: str, title: str, default: int, meaning: str, *, minimum: int = 0) -> Setting:
    return Setting(
        _SHUTDOWN, name, title, ValueRange(default, _("minutes"), minimum, LONGEST_IDLE_MINUTES), meaning, _ANNOUNCED
    )


def _days(name: str, title: str, default: int, meaning: str, *, keeps: str = _("0 keeps them for ever.")) -> Setting:
    return Setting(_RETENTION, name, title, ValueRange(default, _("days"), 0, _LONGEST), f"{meaning} {keeps}")


# fmt: off
WORKSPACE_IDLE = _minutes("workspaceIdleMinutes", _("Idle time of workspaces"), 0,
    _("A workspace that was idle for this long is stopped, with its cluster; 0 turns this off. Idle means: no kernel "
      "is busy, no terminal is active, the CPU is below the limit for idleness, and nobody uses it. A tier or a "
      "project may say otherwise."))
APP_IDLE = _minutes("appIdleMinutes", _("Idle time of apps"), 0,
    _("An app that was idle for this long is stopped; 0 turns this off. Idle means: nobody uses it, and the CPU is "
      "below the limit for idleness."))
IDLE_CPU = Setting(_SHUTDOWN, "idleCpuPercent", _("CPU limit for idleness"), ValueRange(1, _("percent"), 1, 100),
    _("An execution is in use while its average CPU over five minutes is at or above this share of one core."),
    _ANNOUNCED)
WORKSPACE_LIFETIME = _hours("workspaceLifetimeHours", _("Maximum lifetime of workspaces"), 0,
    _("A workspace is stopped this long after it started to run, with its cluster, also while it is in use; 0 turns "
      "this off. It can be resumed."))
APP_LIFETIME = _hours("appLifetimeHours", _("Maximum lifetime of apps"), 0,
    _("An app is stopped this long after it started to run, also while it is in use; 0 turns this off."))
LIFETIME_EXTENSION = _hours("lifetimeExtensionHours", _("Longest extension of the lifetime"), 24,
    _("How long people may keep an execution beyond its maximum lifetime, in all."))
KEEP_TIME = _hours("keepHours", _("Extension at one time"), 2,
    _("How much longer one press of “Keep it” keeps an execution."), minimum=1)
STOP_WARNING = _minutes("warningMinutes", _("Warning before the stop"), 30,
    _("How long before such a stop its page and a notification say so; of a shorter limit at least half its time."),
    minimum=1)
PROJECT_IDLE_BOUND = _minutes("projectIdleMinutesBound", _("Bound of a project’s own idle time"), 0,
    _("A project may always choose a shorter idle time than its tiers have, and a longer one up to this."))
PROJECT_LIFETIME_BOUND = _hours("projectLifetimeHoursBound", _("Bound of a project’s own lifetime"), 0,
    _("A project may always choose a shorter maximum lifetime than its tiers have, and a longer one up to this."))
SHUTDOWN_SETTINGS = declared_in(globals())
EXECUTION_RETENTION = _days("executionDays", _("Ended executions"), 730,
    _("An execution is deleted this many days after its end, and its page and its cost with it; a workspace stays "
      "and can be resumed. What was used is first added up by day, owner, project and tier: these daily totals stay "
      "in the database."), keeps=_("0 keeps it for ever."))
LIFECYCLE_RETENTION = _days("lifecycleEntryDays", _("Events and people's changes of ended executions"), 180,
    _("How long Kubernetes' events and people's changes stay in the history of an execution once it has ended. Its "
      "states stay as long as it does."))
SAMPLE_RETENTION = _days("clusterSampleDays", _("Charts of ended clusters"), 90,
    _("How long the samples of a cluster's chart are kept once it has ended. Its cost does not depend on them."))
LOG_RETENTION = _days("logDays", _("Logs of ended executions"), 90,
    _("The last lines of a log (up to 64 KiB), kept when its pod goes, are deleted this many days after the "
      "execution ended."))
METRIC_RETENTION = _days("metricDays", _("Metrics of ended jobs"), 365,
    _("How long the metrics that a job's program has written are kept once it has ended. They take a few kilobytes "
      "of each metric."))
NOTIFICATION_RETENTION = _days("notificationDays", _("Notifications"), 90,
    _("How long people's notifications are kept, read or not."))
DELIVERY_RETENTION = _days("deliveryDays", _("E-mails and webhook posts"), 14,
    _("How long it is kept which notifications were sent by e-mail and webhook, or given up, and why."))
AUDIT_RETENTION = _days("auditDays", _("Audit log"), 730,
    _("How long the records of who changed what are kept."))
INCIDENT_RETENTION = _days("incidentDays", _("Incidents of the platform"), 365,
    _("How long incidents that have ended are kept, such as of the API server or the storage, and alerts."))
GRANT_RETENTION = Setting(_RETENTION, "grantDays", _("Rights to open a workspace"),
    ValueRange(GRANT_LONGEST_DAYS, _("days"), 1, GRANT_LONGEST_DAYS),
    _("After this many days a browser must open the workspace from the dashboard again. With its session such a "
      "right ends in any case."))
# fmt: on
