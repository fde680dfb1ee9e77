"""The central configuration: every key with its type, unit, default, bounds and meaning, and the value now in force.

Overrides are stored in the database and read at each use, so a change is in force at once in every process; what is read
is one row. The keys of the seed documents keep their names; keys of our own follow the same style.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from django.contrib.auth.models import User
from django.db import transaction

from grid.errors import Problem, Rejected
from grid.models import AuditEntry, ConfigRecord

NAMESPACE = "common"
_TIMEOUTS = "com.cerebro.computegrid.timeouts.sagaStateTimeouts"
_QUOTA = "com.cerebro.domino.computegrid.userExecutionsQuota"
_NODES = "com.cerebro.domino.computegrid.nodes"
_DAY = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Setting:
    """One key with a whole-number value between `minimum` and `maximum`, both allowed."""

    key: str
    title: str
    default: int
    minimum: int
    maximum: int
    unit: str
    meaning: str

    def parse(self, text: str) -> int:
        """The value, or ValueError with a sentence for the admin who typed it."""
        try:
            value = int(text.strip())
        except ValueError:
            raise ValueError(f"“{text}” is not a whole number of {self.unit}.") from None
        if not self.minimum <= value <= self.maximum:
            raise ValueError(f"Must be between {self.minimum} and {self.maximum} {self.unit}.")
        return value


DEPLOYING_TIMEOUT = Setting(
    key=f"{_TIMEOUTS}.deployingStateTimeoutSeconds",
    title="Deploying timeout",
    default=60 * 60,
    minimum=1,
    maximum=30 * _DAY,
    unit="seconds",
    meaning="How long an execution may wait for a node before it ends as an error.",
)
PREPARING_TIMEOUT = Setting(
    key=f"{_TIMEOUTS}.preparingStateTimeoutSeconds",
    title="Preparing timeout",
    default=60 * 60,
    minimum=1,
    maximum=30 * _DAY,
    unit="seconds",
    meaning="How long an execution may prepare on its node (image, volumes, start-up) before it ends as an error.",
)
OVER_QUOTA_TIMEOUT = Setting(
    key=f"{_TIMEOUTS}.userExecutionsOverQuotaStateTimeoutSeconds",
    title="Over-quota timeout",
    default=_DAY,
    minimum=1,
    maximum=30 * _DAY,
    unit="seconds",
    meaning="How long an execution may queue for a free slot before it ends as an error.",
)
MAXIMUM_EXECUTIONS_PER_USER = Setting(
    key=f"{_QUOTA}.maximumExecutionsPerUser",
    title="Maximum executions per user",
    default=25,
    minimum=0,
    maximum=100_000,
    unit="slots",
    meaning="Slots one user may hold at once; further executions queue. A workspace, job or app takes one slot.",
)
GLOBAL_QUEUE_LIMIT = Setting(
    key=f"{_QUOTA}.globalExecutionQueueLimit",
    title="Queue limit",
    default=1000,
    minimum=0,
    maximum=1_000_000,
    unit="executions",
    meaning="How many executions of all users may queue; a launch beyond it is refused.",
)
UNNEEDED_THRESHOLD = Setting(
    key=f"{_NODES}.scaleDownUtilizationThresholdPercent",
    title="Scale-down threshold",
    default=50,
    minimum=0,
    maximum=100,
    unit="percent",
    meaning="Shown on Infrastructure: a node whose requests are below this share of its allocatable may be removed. "
    "Keep it equal to the cluster autoscaler's own setting.",
)
UNNEEDED_SECONDS = Setting(
    key=f"{_NODES}.scaleDownUnneededSeconds",
    title="Scale-down delay",
    default=10 * 60,
    minimum=0,
    maximum=7 * _DAY,
    unit="seconds",
    meaning="Shown on Infrastructure: how long a node must be unneeded before it is removed. "
    "Keep it equal to the cluster autoscaler's own setting.",
)

REGISTRY: Mapping[str, Setting] = MappingProxyType(
    {
        setting.key: setting
        for setting in (
            DEPLOYING_TIMEOUT,
            PREPARING_TIMEOUT,
            OVER_QUOTA_TIMEOUT,
            MAXIMUM_EXECUTIONS_PER_USER,
            GLOBAL_QUEUE_LIMIT,
            UNNEEDED_THRESHOLD,
            UNNEEDED_SECONDS,
        )
    }
)


def lookup(key: str) -> Setting:
    """The setting named `key`; Rejected when there is none."""
    if key not in REGISTRY:
        raise Rejected([Problem(path="key", message=f"There is no setting named {key}.", code="unknown")])
    return REGISTRY[key]


def value_of(setting: Setting) -> int:
    """The value now in force."""
    record = ConfigRecord.objects.filter(namespace=NAMESPACE, key=setting.key).only("value").first()
    return setting.default if record is None else setting.parse(record.value)


def all_values() -> dict[str, int]:
    """Every key with the value now in force, in one query."""
    stored = dict(ConfigRecord.objects.filter(namespace=NAMESPACE, key__in=REGISTRY).values_list("key", "value"))
    return {key: setting.parse(stored[key]) if key in stored else setting.default for key, setting in REGISTRY.items()}


@transaction.atomic
def change(key: str, text: str, *, actor: User) -> int:
    """Store an override and its audit entry. Rejected with the path "key" or "value" when either is wrong."""
    setting = lookup(key)
    try:
        value = setting.parse(text)
    except ValueError as error:
        raise Rejected([Problem(path="value", message=str(error))]) from error
    before = value_of(setting)
    ConfigRecord.objects.update_or_create(
        namespace=NAMESPACE, key=key, defaults={"value": str(value), "updated_by": actor.get_username()}
    )
    if value != before:
        _record(setting, AuditEntry.Action.CHANGED, before, value, actor)
    return value


@transaction.atomic
def reset(key: str, *, actor: User) -> int:
    """Forget the override, so that the default is in force again."""
    setting = lookup(key)
    before = value_of(setting)
    deleted, _ = ConfigRecord.objects.filter(namespace=NAMESPACE, key=key).delete()
    if deleted:
        _record(setting, AuditEntry.Action.RESET, before, setting.default, actor)
    return setting.default


def _record(setting: Setting, action: str, before: int, after: int, actor: User) -> None:
    AuditEntry.objects.create(
        actor=actor,
        actor_name=actor.get_username(),
        action=action,
        object_type="setting",
        object_id=setting.key,
        object_name=setting.title,
        changes={"value": [before, after]},
    )
