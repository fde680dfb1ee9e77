"""The settings that say for how many days records are kept; 0 keeps them for ever."""

from grid.centralconfig.setting import Setting

_RETENTION = "com.cerebro.computegrid.retention"
_LONGEST = 100 * 365
GRANT_LONGEST_DAYS = 7  # as long as browsers keep the grant's cookie


def _days(key: str, title: str, default: int, meaning: str, *, keeps: str = "them") -> Setting:
    return Setting(
        key=f"{_RETENTION}.{key}",
        title=title,
        default=default,
        minimum=0,
        maximum=_LONGEST,
        unit="days",
        meaning=f"{meaning} 0 keeps {keeps} for ever.",
    )


EXECUTION_RETENTION = _days(
    "executionDays",
    "Ended executions",
    730,
    "An execution is deleted this many days after its end, and its page and its cost with it; a workspace stays and can be resumed. What "
    "was used is first added up by day, owner, project and tier: these daily totals stay in the database.",
    keeps="it",
)
LIFECYCLE_RETENTION = _days(
    "lifecycleEntryDays",
    "Events and people's changes of ended executions",
    180,
    "How long Kubernetes' events and people's changes stay in the history of an execution once it has ended. Its states stay as long "
    "as it does.",
)
SAMPLE_RETENTION = _days(
    "clusterSampleDays",
    "Charts of ended clusters",
    90,
    "How long the samples of a cluster's chart are kept once it has ended. Its cost does not depend on them.",
)
LOG_RETENTION = _days(
    "logDays",
    "Logs of ended executions",
    90,
    "The last lines of a log (up to 64 KiB), kept when its pod goes, are deleted this many days after the execution ended.",
)
METRIC_RETENTION = _days(
    "metricDays",
    "Metrics of ended jobs",
    365,
    "How long the metrics that a job's program has written are kept once it has ended. They take a few kilobytes of each metric.",
)
NOTIFICATION_RETENTION = _days(
    "notificationDays", "Notifications", 90, "How long people's notifications are kept, read or not."
)
DELIVERY_RETENTION = _days(
    "deliveryDays",
    "E-mails and webhook posts",
    14,
    "How long it is kept which notifications were sent by e-mail and webhook, or given up, and why.",
)
AUDIT_RETENTION = _days("auditDays", "Audit log", 730, "How long the records of who changed what are kept.")
GRANT_RETENTION = Setting(
    key=f"{_RETENTION}.grantDays",
    title="Rights to open a workspace",
    default=GRANT_LONGEST_DAYS,
    minimum=1,
    maximum=GRANT_LONGEST_DAYS,
    unit="days",
    meaning="After this many days a browser must open the workspace from the dashboard again. With its session such a right ends in any "
    "case.",
)

RETENTION_SETTINGS = (
    EXECUTION_RETENTION,
    LIFECYCLE_RETENTION,
    SAMPLE_RETENTION,
    LOG_RETENTION,
    METRIC_RETENTION,
    NOTIFICATION_RETENTION,
    DELIVERY_RETENTION,
    AUDIT_RETENTION,
    GRANT_RETENTION,
)
