"""The settings that say for how many days records are kept; 0 keeps them for ever."""

from grid.configuration.setting import Setting, SettingTopic, ValueRange
from grid.core.translation import gettext as _

_RETENTION = SettingTopic("com.cerebro.computegrid.retention", _("Retention"))
_LONGEST = 100 * 365
GRANT_LONGEST_DAYS = 7  # as long as browsers keep the grant's cookie


def _days(name: str, title: str, default: int, meaning: str, *, keeps: str = _("0 keeps them for ever.")) -> Setting:
    return Setting(_RETENTION, name, title, ValueRange(default, _("days"), 0, _LONGEST), f"{meaning} {keeps}")


EXECUTION_RETENTION = _days(
    "executionDays",
    _("Ended executions"),
    730,
    _(
        "An execution is deleted this many days after its end, and its page and its cost with it; a "
        "workspace stays and can be resumed. What "
        "was used is first added up by day, owner, project and tier: these daily totals stay in the database."
    ),
    keeps=_("0 keeps it for ever."),
)
LIFECYCLE_RETENTION = _days(
    "lifecycleEntryDays",
    _("Events and people's changes of ended executions"),
    180,
    _(
        "How long Kubernetes' events and people's changes stay in the history of an execution once it has ended. Its states stay as long "
        "as it does."
    ),
)
SAMPLE_RETENTION = _days(
    "clusterSampleDays",
    _("Charts of ended clusters"),
    90,
    _("How long the samples of a cluster's chart are kept once it has ended. Its cost does not depend on them."),
)
LOG_RETENTION = _days(
    "logDays",
    _("Logs of ended executions"),
    90,
    _(
        "The last lines of a log (up to 64 KiB), kept when its pod goes, are deleted this many days after the execution ended."
    ),
)
METRIC_RETENTION = _days(
    "metricDays",
    _("Metrics of ended jobs"),
    365,
    _(
        "How long the metrics that a job's program has written are kept once it has ended. They take a few kilobytes of each metric."
    ),
)
NOTIFICATION_RETENTION = _days(
    "notificationDays", _("Notifications"), 90, _("How long people's notifications are kept, read or not.")
)
DELIVERY_RETENTION = _days(
    "deliveryDays",
    _("E-mails and webhook posts"),
    14,
    _("How long it is kept which notifications were sent by e-mail and webhook, or given up, and why."),
)
AUDIT_RETENTION = _days("auditDays", _("Audit log"), 730, _("How long the records of who changed what are kept."))
INCIDENT_RETENTION = _days(
    "incidentDays",
    _("Incidents of the platform"),
    365,
    _("How long incidents that have ended are kept, such as of the API server or the storage, and alerts."),
)
GRANT_RETENTION = Setting(
    topic=_RETENTION,
    name="grantDays",
    title=_("Rights to open a workspace"),
    range=ValueRange(GRANT_LONGEST_DAYS, _("days"), minimum=1, maximum=GRANT_LONGEST_DAYS),
    meaning=_(
        "After this many days a browser must open the workspace from the dashboard again. With its session such a right ends in any "
        "case."
    ),
)
