"""The keys that say for how many days something is kept; 0 keeps it for ever."""

from grid.centralconfig.setting import Setting

_RETENTION = "com.cerebro.computegrid.retention"
_LONGEST = 100 * 365
GRANT_LONGEST_DAYS = 7  # as long as browsers keep the secret of what they may open


def _days(key: str, title: str, default: int, meaning: str) -> Setting:
    return Setting(
        key=f"{_RETENTION}.{key}",
        title=title,
        default=default,
        minimum=0,
        maximum=_LONGEST,
        unit="days",
        meaning=f"{meaning} 0 keeps them for ever.",
    )


EXECUTION_RETENTION = _days(
    "executionDays",
    "Ended executions",
    730,
    "How long an execution is kept after its end, with everything about it. What it used is first added up by day, owner, project "
    "and tier, and stays.",
)
LIFECYCLE_RETENTION = _days(
    "lifecycleEntryDays",
    "Events of ended executions",
    180,
    "How long Kubernetes' events and people's changes stay in the history of an execution that has ended. Its states stay as long "
    "as it does.",
)
SAMPLE_RETENTION = _days(
    "clusterSampleDays",
    "Charts of ended clusters",
    90,
    "How long the samples that a cluster's chart is made of are kept once it has ended. Its cost does not depend on them.",
)
LOG_RETENTION = _days("logDays", "Logs of ended executions", 90, "How long the kept ends of logs stay.")
AUDIT_RETENTION = _days("auditDays", "Audit log", 730, "How long the records of who changed what are kept.")
GRANT_RETENTION = Setting(
    key=f"{_RETENTION}.grantDays",
    title="Rights to open a workspace",
    default=GRANT_LONGEST_DAYS,
    minimum=1,
    maximum=GRANT_LONGEST_DAYS,
    unit="days",
    meaning="A browser that opened something so long ago has to open it again from the dashboard. With its session such a right ends "
    "in any case.",
)

RETENTION_SETTINGS = (
    EXECUTION_RETENTION,
    LIFECYCLE_RETENTION,
    SAMPLE_RETENTION,
    LOG_RETENTION,
    AUDIT_RETENTION,
    GRANT_RETENTION,
)
