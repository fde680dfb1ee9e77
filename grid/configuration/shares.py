"""The settings that bound what one person, or one project, may have the platform do; ordinary use meets none of them."""

from grid.configuration.setting import Setting, SettingTopic, ValueRange
from grid.core.translation import gettext as _

_SHARES = SettingTopic("com.cerebro.computegrid.shares", _("Shares of one person and one project"))
_FURTHER_SCHEDULES = _("Schedules that exist stay; further ones beyond the limit are refused.")
_WAITING = _("Queued executions stay; further launches that would have to wait are refused.")

SCHEDULES_PER_PERSON = Setting(
    topic=_SHARES,
    name="schedulesPerPerson",
    title=_("Schedules of one person"),
    range=ValueRange(200, _("schedules"), minimum=1, maximum=100_000),
    meaning=_("How many schedules all jobs of one person may have, paused ones included; a further one is refused."),
    effect=_FURTHER_SCHEDULES,
)
SCHEDULES_PER_PROJECT = Setting(
    topic=_SHARES,
    name="schedulesPerProject",
    title=_("Schedules of one project"),
    range=ValueRange(1000, _("schedules"), minimum=1, maximum=100_000),
    meaning=_("How many schedules all jobs of one project may have, paused ones included; a further one is refused."),
    effect=_FURTHER_SCHEDULES,
)
SCHEDULED_RUNS_PER_MINUTE = Setting(
    topic=_SHARES,
    name="scheduledRunsPerPersonAndMinute",
    title=_("Scheduled runs of one person in a minute"),
    range=ValueRange(60, _("runs"), minimum=1, maximum=100_000),
    meaning=_("How many runs schedules ask for within a minute, for each person; further ones are late, and say so."),
    effect=_("Applies from the next due time; runs beyond the limit are late and say so."),
)
WAITING_PER_PERSON = Setting(
    topic=_SHARES,
    name="waitingExecutionsPerPerson",
    title=_("Waiting executions of one person"),
    range=ValueRange(500, _("executions"), minimum=1, maximum=1_000_000),
    meaning=_(
        "How many executions of one person may queue, so that nobody fills the queue for everybody. A further launch that "
        "would have to wait is refused; runs of jobs wait for it without being in the queue."
    ),
    effect=_WAITING,
)
WAITING_PER_PROJECT = Setting(
    topic=_SHARES,
    name="waitingExecutionsPerProject",
    title=_("Waiting executions of one project"),
    range=ValueRange(1000, _("executions"), minimum=1, maximum=1_000_000),
    meaning=_("The same for all executions of one project."),
    effect=_WAITING,
)
NOTIFICATIONS_PER_HOUR = Setting(
    topic=_SHARES,
    name="notificationsPerPersonAndHour",
    title=_("Notifications of one person in an hour"),
    range=ValueRange(1000, _("notifications"), minimum=1, maximum=100_000),
    meaning=_(
        "How many are sent to one person by e-mail, and as many to the webhook; further ones are late, and say so."
    ),
    effect=_("Applies to notifications that wait already; those beyond the limit leave later."),
)
BUILDS_PER_PERSON = Setting(
    topic=_SHARES,
    name="buildsPerPerson",
    title=_("Builds of one person at once"),
    range=ValueRange(3, _("builds"), minimum=1, maximum=1000),
    meaning=_("How many revisions of environments are built at once for each person; further ones wait, and say so."),
    effect=_("Builds under way continue; further ones wait."),
)
