"""The settings that are not about clusters: timeouts, quota and queue, home volumes, nodes, sessions, logins, and shares.

Shares bound what one person, or one project, may have the platform do; ordinary use meets none of them.
"""

from grid.configuration.setting import ON, Setting, SettingTopic, ValueRange
from grid.core.translation import gettext as _

_OURS = "com.cerebro.computegrid"
_DOMINO = "com.cerebro.domino.computegrid"
_TIMEOUTS = SettingTopic(f"{_OURS}.timeouts.sagaStateTimeouts", _("Time limits of executions"))
_QUOTA = SettingTopic(f"{_DOMINO}.userExecutionsQuota", _("Slots and queue"))
_HOMES = SettingTopic(f"{_OURS}.homes", _("Home volumes"))
_FRONT = SettingTopic(f"{_OURS}.front", _("The nginx in front of workspaces and apps"))
_FILES = SettingTopic(f"{_OURS}.files", _("Project files in Git"))
_NODES = SettingTopic(f"{_DOMINO}.nodes", _("Nodes and the autoscaler"))
_SESSIONS = SettingTopic(f"{_OURS}.sessions", _("Sessions of the dashboard"))
_LOGINS = SettingTopic(f"{_OURS}.logins", _("Logins"))
_SHARES = SettingTopic(f"{_OURS}.shares", _("Shares of one person and one project"))
_DAY = 24 * 60 * 60
SESSION_LONGEST_SECONDS = 30 * _DAY  # as long as browsers keep the cookie: SESSION_COOKIE_AGE

_NEW_FRONTS = _("Applies to workspaces and apps launched from now on; running ones keep what they have.")
_NEW_FILES = _("Applies to workspaces and jobs launched from now on; files that are kept already stay.")
_SHOWN_ONLY = _("Changes only what Infrastructure shows.")
_FURTHER_SCHEDULES = _("Schedules that exist stay; further ones beyond the limit are refused.")
_WAITING = _("Queued executions stay; further launches that would have to wait are refused.")

# Each with its topic, name, title and range; then what it means, and what a change does at once.
# fmt: off
DEPLOYING_TIMEOUT = Setting(
    _TIMEOUTS, "deployingStateTimeoutSeconds", _("Deploying timeout"), ValueRange(60 * 60, _("seconds"), 1, 30 * _DAY),
    _("How long an execution may wait for a node before it ends as an error."))
PREPARING_TIMEOUT = Setting(
    _TIMEOUTS, "preparingStateTimeoutSeconds", _("Preparing timeout"), ValueRange(60 * 60, _("seconds"), 1, 30 * _DAY),
    _("How long an execution may prepare on its node (image, volumes, start-up) before it ends as an error."))
OVER_QUOTA_TIMEOUT = Setting(_TIMEOUTS, "userExecutionsOverQuotaStateTimeoutSeconds", _("Over-quota timeout"),
    ValueRange(_DAY, _("seconds"), 1, 30 * _DAY),
    _("How long an execution may queue for a free slot before it ends as an error."))
ACCESS_LOST_TIMEOUT = Setting(_TIMEOUTS, "leftProjectTimeoutSeconds", _("Time after leaving a project"),
    ValueRange(10 * 60, _("seconds"), 0, 30 * _DAY),
    _("How long somebody's executions in a project continue after they left it, became a viewer, or their account "
      "was closed; 0 stops them at once. Until then they cannot open them; queued executions end at once."))
MAXIMUM_EXECUTIONS_PER_USER = Setting(
    _QUOTA, "maximumExecutionsPerUser", _("Maximum executions per user"), ValueRange(25, _("slots"), 0, 100_000),
    _("Slots one user may hold at once; further executions queue. A workspace, job or app takes one slot; a cluster "
      "takes one for its head and one for each worker that it may grow to."))
GLOBAL_QUEUE_LIMIT = Setting(
    _QUOTA, "globalExecutionQueueLimit", _("Queue limit"), ValueRange(1000, _("executions"), 0, 1_000_000),
    _("How many executions of all users may queue; a launch beyond it is refused."))
HOME_VOLUME_SIZE = Setting(
    _HOMES, "volumeSizeGibibytes", _("Size of a home volume"), ValueRange(5, "GiB", 1, 64 * 1024),
    _("The volume that each person gets in each project for files of their own (HOME), claimed at the first launch. "
      "A change holds for volumes that are claimed after it."),
    _("Applies to volumes claimed from now on; existing ones keep their size."))
FRONT_ENABLED = Setting(_FRONT, "enabled", _("nginx in front of workspaces and apps"), ON,
    _("Whether new workspaces and apps have an nginx in their pod that answers only requests with a token of the "
      "proxy. It has no effect unless the installation names an image of nginx (GRID_FRONT_IMAGE)."), _NEW_FRONTS)
FRONT_MAXIMUM_BODY = Setting(
    _FRONT, "maximumBodyMebibytes", _("Largest request to a workspace or app"), ValueRange(4096, "MiB", 1, 1024 * 1024),
    _("The nginx in front refuses larger uploads. A change holds for workspaces and apps that are launched after it."),
    _NEW_FRONTS)
REPOSITORY_SIZE = Setting(
    _FILES, "repositorySizeGibibytes", _("Size of a project's repository"), ValueRange(50, "GiB", 0, 1024 * 1024),
    _("How large the Git repository of a project may become on the volume of all repositories; 0 sets no bound. An "
      "execution whose changes or results do not fit keeps them in HOME and says so, and an upload is refused. "
      "Beside a remote repository the volume has results and what could not be pushed. Holds for executions launched "
      "after a change."), _NEW_FILES)
UPLOAD_SIZE = Setting(_FILES, "uploadMebibytes", _("Size of an upload"), ValueRange(10, "MiB", 1, 20),
    _("All files together that a person may upload at one time into a project's files in Git. Git keeps each version "
      "for good."),
    _("Applies to uploads from now on; files that are there stay."))
RESULTS_SIZE = Setting(_FILES, "resultsMebibytes", _("Size of a run's results"), ValueRange(1024, "MiB", 1, 64 * 1024),
    _("What an attempt of a job may keep of its folder results in the project's files in Git; of more, the largest "
      "files are not kept, and its page says so. Git keeps them for good. A change holds for later launches."),
    _NEW_FILES)
UNNEEDED_THRESHOLD = Setting(
    _NODES, "scaleDownUtilizationThresholdPercent", _("Scale-down threshold"), ValueRange(50, _("percent"), 0, 100),
    _("Shown on Infrastructure: a node whose requests are below this share of its allocatable may be removed. Keep "
      "it equal to the cluster autoscaler's own setting."), _SHOWN_ONLY)
UNNEEDED_SECONDS = Setting(
    _NODES, "scaleDownUnneededSeconds", _("Scale-down delay"), ValueRange(10 * 60, _("seconds"), 0, 7 * _DAY),
    _("Shown on Infrastructure: how long a node must be unneeded before it is removed. Keep it equal to the cluster "
      "autoscaler's own setting."), _SHOWN_ONLY)
WARM_PLACES = Setting(_NODES, "maximumWarmPlaces", _("Most warm places"), ValueRange(0, _("places"), 0, 1000),
    _("Tiers may have warm-up hours, in which placeholder pods keep nodes ready for launches, and so may rush plans. "
      "This is how many there may be at once, of all together; 0 turns them off. Nodes that wait for launches cost "
      "money, which is charged to nobody."),
    _("Applies within half a minute: placeholders come or go, and the autoscaler follows."))
SESSION_IDLE = Setting(
    _SESSIONS, "idleSeconds", _("Idle limit"), ValueRange(12 * 60 * 60, _("seconds"), 5 * 60, SESSION_LONGEST_SECONDS),
    _("A session ends when it was not used for this long. An open page alone does not count as use; a workspace in "
      "use does."))
SESSION_ABSOLUTE = Setting(_SESSIONS, "absoluteSeconds", _("Absolute limit"),
    ValueRange(7 * _DAY, _("seconds"), 5 * 60, SESSION_LONGEST_SECONDS),
    _("A session ends this long after its login, even while it is in use."))
LOGIN_FAILURES_AT_ADDRESS = Setting(_LOGINS, "failuresOfNameAtAddress", _("Wrong passwords of one name at one address"),
    ValueRange(10, _("wrong passwords"), 3, 1000),
    _("After this many, the name is locked at that address; from other addresses the person can still log in."))
LOGIN_FAILURES_OF_ADDRESS = Setting(_LOGINS, "failuresOfAddress", _("Wrong passwords from one address"),
    ValueRange(100, _("wrong passwords"), 3, 100_000),
    _("After this many, for any names, the address is locked. People behind one gateway share its address."))
LOGIN_FAILURES_OF_NAME = Setting(
    _LOGINS, "failuresOfName", _("Wrong passwords of one name"), ValueRange(100, _("wrong passwords"), 3, 100_000),
    _("After this many from all addresses together, the name is locked, except where the person has logged in within "
      "90 days."))
LOGIN_COOL_OFF = Setting(_LOGINS, "coolOffSeconds", _("Cool-off"), ValueRange(15 * 60, _("seconds"), 60, _DAY),
    _("How long a lock lasts, and how long after the last one wrong passwords are counted."))
SCHEDULES_PER_PERSON = Setting(
    _SHARES, "schedulesPerPerson", _("Schedules of one person"), ValueRange(200, _("schedules"), 1, 100_000),
    _("How many schedules all jobs of one person may have, paused ones included; a further one is refused."),
    _FURTHER_SCHEDULES)
SCHEDULES_PER_PROJECT = Setting(
    _SHARES, "schedulesPerProject", _("Schedules of one project"), ValueRange(1000, _("schedules"), 1, 100_000),
    _("How many schedules all jobs of one project may have, paused ones included; a further one is refused."),
    _FURTHER_SCHEDULES)
SCHEDULED_RUNS_PER_MINUTE = Setting(
    _SHARES, "scheduledRunsPerPersonAndMinute", _("Scheduled runs of one person in a minute"),
    ValueRange(60, _("runs"), 1, 100_000),
    _("How many runs schedules ask for within a minute, for each person; further ones are late, and say so."),
    _("Applies from the next due time; runs beyond the limit are late and say so."))
WAITING_PER_PERSON = Setting(_SHARES, "waitingExecutionsPerPerson", _("Waiting executions of one person"),
    ValueRange(500, _("executions"), 1, 1_000_000),
    _("How many executions of one person may queue, so that nobody fills the queue for everybody. A further launch "
      "that would have to wait is refused; runs of jobs wait for it without being in the queue."), _WAITING)
WAITING_PER_PROJECT = Setting(_SHARES, "waitingExecutionsPerProject", _("Waiting executions of one project"),
    ValueRange(1000, _("executions"), 1, 1_000_000),
    _("The same for all executions of one project."), _WAITING)
NOTIFICATIONS_PER_HOUR = Setting(_SHARES, "notificationsPerPersonAndHour", _("Notifications of one person in an hour"),
    ValueRange(1000, _("notifications"), 1, 100_000),
    _("How many are sent to one person by e-mail, and as many to the webhook; further ones are late, and say so."),
    _("Applies to notifications that wait already; those beyond the limit leave later."))
BUILDS_PER_PERSON = Setting(
    _SHARES, "buildsPerPerson", _("Builds of one person at once"), ValueRange(3, _("builds"), 1, 1000),
    _("How many revisions of environments are built at once for each person; further ones wait, and say so."),
    _("Builds under way continue; further ones wait."))
# fmt: on
