"""The settings that are not about clusters: timeouts, quota and queue, home volumes, nodes, sessions and logins."""

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
_DAY = 24 * 60 * 60
SESSION_LONGEST_SECONDS = 30 * _DAY  # as long as browsers keep the cookie: SESSION_COOKIE_AGE

_NEW_FRONTS = _("Applies to workspaces and apps launched from now on; running ones keep what they have.")
_NEW_FILES = _("Applies to workspaces and jobs launched from now on; files that are kept already stay.")
_SHOWN_ONLY = _("Changes only what Infrastructure shows.")

DEPLOYING_TIMEOUT = Setting(
    topic=_TIMEOUTS,
    name="deployingStateTimeoutSeconds",
    title=_("Deploying timeout"),
    range=ValueRange(60 * 60, _("seconds"), minimum=1, maximum=30 * _DAY),
    meaning=_("How long an execution may wait for a node before it ends as an error."),
)
PREPARING_TIMEOUT = Setting(
    topic=_TIMEOUTS,
    name="preparingStateTimeoutSeconds",
    title=_("Preparing timeout"),
    range=ValueRange(60 * 60, _("seconds"), minimum=1, maximum=30 * _DAY),
    meaning=_("How long an execution may prepare on its node (image, volumes, start-up) before it ends as an error."),
)
OVER_QUOTA_TIMEOUT = Setting(
    topic=_TIMEOUTS,
    name="userExecutionsOverQuotaStateTimeoutSeconds",
    title=_("Over-quota timeout"),
    range=ValueRange(_DAY, _("seconds"), minimum=1, maximum=30 * _DAY),
    meaning=_("How long an execution may queue for a free slot before it ends as an error."),
)
ACCESS_LOST_TIMEOUT = Setting(
    topic=_TIMEOUTS,
    name="leftProjectTimeoutSeconds",
    title=_("Time after leaving a project"),
    range=ValueRange(10 * 60, _("seconds"), minimum=0, maximum=30 * _DAY),
    meaning=_(
        "How long somebody's executions in a project continue after they left it, became a viewer, or their account "
        "was closed; 0 stops them at once. Until then they cannot open them; queued executions end at once."
    ),
)
MAXIMUM_EXECUTIONS_PER_USER = Setting(
    topic=_QUOTA,
    name="maximumExecutionsPerUser",
    title=_("Maximum executions per user"),
    range=ValueRange(25, _("slots"), minimum=0, maximum=100_000),
    meaning=_(
        "Slots one user may hold at once; further executions queue. "
        "A workspace, job or app takes one slot; a cluster takes one for its head and one for each worker that it may grow to."
    ),
)
GLOBAL_QUEUE_LIMIT = Setting(
    topic=_QUOTA,
    name="globalExecutionQueueLimit",
    title=_("Queue limit"),
    range=ValueRange(1000, _("executions"), minimum=0, maximum=1_000_000),
    meaning=_("How many executions of all users may queue; a launch beyond it is refused."),
)
HOME_VOLUME_SIZE = Setting(
    topic=_HOMES,
    name="volumeSizeGibibytes",
    title=_("Size of a home volume"),
    range=ValueRange(5, "GiB", minimum=1, maximum=64 * 1024),
    meaning=_(
        "The volume that each person gets in each project for files of their own (HOME), claimed at the first launch. "
        "A change holds for volumes that are claimed after it."
    ),
    effect=_("Applies to volumes claimed from now on; existing ones keep their size."),
)
FRONT_ENABLED = Setting(
    topic=_FRONT,
    name="enabled",
    title=_("nginx in front of workspaces and apps"),
    range=ON,
    meaning=_(
        "Whether new workspaces and apps have an nginx in their pod that answers only requests with a token of the proxy. It has no "
        "effect unless the installation names an image of nginx (GRID_FRONT_IMAGE)."
    ),
    effect=_NEW_FRONTS,
)
FRONT_MAXIMUM_BODY = Setting(
    topic=_FRONT,
    name="maximumBodyMebibytes",
    title=_("Largest request to a workspace or app"),
    range=ValueRange(4096, "MiB", minimum=1, maximum=1024 * 1024),
    meaning=_(
        "The nginx in front refuses larger uploads. A change holds for workspaces and apps that are launched after it."
    ),
    effect=_NEW_FRONTS,
)
REPOSITORY_SIZE = Setting(
    topic=_FILES,
    name="repositorySizeGibibytes",
    title=_("Size of a project's repository"),
    range=ValueRange(50, "GiB", minimum=0, maximum=1024 * 1024),
    meaning=_(
        "How large the Git repository of a project may become on the volume of all repositories; 0 sets no bound. An execution whose "
        "changes or results do not fit keeps them in HOME and says so, and an upload is refused. Beside a remote repository the volume has "
        "results and what could not be pushed. Holds for executions launched after a change."
    ),
    effect=_NEW_FILES,
)
UPLOAD_SIZE = Setting(
    topic=_FILES,
    name="uploadMebibytes",
    title=_("Size of an upload"),
    range=ValueRange(10, "MiB", minimum=1, maximum=20),
    meaning=_(
        "All files together that a person may upload at one time into a project's files in Git. Git keeps each version for good."
    ),
    effect=_("Applies to uploads from now on; files that are there stay."),
)
RESULTS_SIZE = Setting(
    topic=_FILES,
    name="resultsMebibytes",
    title=_("Size of a run's results"),
    range=ValueRange(1024, "MiB", minimum=1, maximum=64 * 1024),
    meaning=_(
        "What an attempt of a job may keep of its folder results in the project's files in Git; of more, the largest files are not "
        "kept, and its page says so. Git keeps them for good. A change holds for later launches."
    ),
    effect=_NEW_FILES,
)
UNNEEDED_THRESHOLD = Setting(
    topic=_NODES,
    name="scaleDownUtilizationThresholdPercent",
    title=_("Scale-down threshold"),
    range=ValueRange(50, _("percent"), minimum=0, maximum=100),
    meaning=_(
        "Shown on Infrastructure: a node whose requests are below this share of its allocatable may be removed. "
        "Keep it equal to the cluster autoscaler's own setting."
    ),
    effect=_SHOWN_ONLY,
)
UNNEEDED_SECONDS = Setting(
    topic=_NODES,
    name="scaleDownUnneededSeconds",
    title=_("Scale-down delay"),
    range=ValueRange(10 * 60, _("seconds"), minimum=0, maximum=7 * _DAY),
    meaning=_(
        "Shown on Infrastructure: how long a node must be unneeded before it is removed. "
        "Keep it equal to the cluster autoscaler's own setting."
    ),
    effect=_SHOWN_ONLY,
)
WARM_PLACES = Setting(
    topic=_NODES,
    name="maximumWarmPlaces",
    title=_("Most warm places"),
    range=ValueRange(0, _("places"), minimum=0, maximum=1000),
    meaning=_(
        "Tiers may have warm-up hours, in which placeholder pods keep nodes ready for launches, and so may rush plans. This is how "
        "many there may be at once, of all together; 0 turns them off. Nodes that wait for launches cost money, which is charged to nobody."
    ),
    effect=_("Applies within half a minute: placeholders come or go, and the autoscaler follows."),
)
SESSION_IDLE = Setting(
    topic=_SESSIONS,
    name="idleSeconds",
    title=_("Idle limit"),
    range=ValueRange(12 * 60 * 60, _("seconds"), minimum=5 * 60, maximum=SESSION_LONGEST_SECONDS),
    meaning=_(
        "A session ends when it was not used for this long. An open page alone does not count as use; a workspace in use does."
    ),
)
SESSION_ABSOLUTE = Setting(
    topic=_SESSIONS,
    name="absoluteSeconds",
    title=_("Absolute limit"),
    range=ValueRange(7 * _DAY, _("seconds"), minimum=5 * 60, maximum=SESSION_LONGEST_SECONDS),
    meaning=_("A session ends this long after its login, even while it is in use."),
)
LOGIN_FAILURES_AT_ADDRESS = Setting(
    topic=_LOGINS,
    name="failuresOfNameAtAddress",
    title=_("Wrong passwords of one name at one address"),
    range=ValueRange(10, _("wrong passwords"), minimum=3, maximum=1000),
    meaning=_("After this many, the name is locked at that address; from other addresses the person can still log in."),
)
LOGIN_FAILURES_OF_ADDRESS = Setting(
    topic=_LOGINS,
    name="failuresOfAddress",
    title=_("Wrong passwords from one address"),
    range=ValueRange(100, _("wrong passwords"), minimum=3, maximum=100_000),
    meaning=_("After this many, for any names, the address is locked. People behind one gateway share its address."),
)
LOGIN_FAILURES_OF_NAME = Setting(
    topic=_LOGINS,
    name="failuresOfName",
    title=_("Wrong passwords of one name"),
    range=ValueRange(100, _("wrong passwords"), minimum=3, maximum=100_000),
    meaning=_(
        "After this many from all addresses together, the name is locked, except where the person has logged in within 90 days."
    ),
)
LOGIN_COOL_OFF = Setting(
    topic=_LOGINS,
    name="coolOffSeconds",
    title=_("Cool-off"),
    range=ValueRange(15 * 60, _("seconds"), minimum=60, maximum=_DAY),
    meaning=_("How long a lock lasts, and how long after the last one wrong passwords are counted."),
)
