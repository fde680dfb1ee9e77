"""The registry of all settings, and their values: read from stored overrides, changed and reset with an audit entry."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from django.db import transaction

from grid.centralconfig.clusters import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS, ClusterPolicy, contradiction, policy_of
from grid.centralconfig.general import GENERAL_SETTINGS
from grid.centralconfig.retention import RETENTION_SETTINGS
from grid.centralconfig.setting import Setting
from grid.errors import Problem, Rejected
from grid.models import AuditEntry, ConfigRecord, User

NAMESPACE = "common"
_OF_FRAMEWORKS = tuple(setting for settings in FRAMEWORK_SETTINGS.values() for setting in settings.values())

REGISTRY: Mapping[str, Setting] = MappingProxyType(
    {
        setting.key: setting
        for setting in (*GENERAL_SETTINGS, *RETENTION_SETTINGS, *CLUSTER_SETTINGS.values(), *_OF_FRAMEWORKS)
    }
)


def lookup(key: str) -> Setting:
    """Return the setting named `key`. Raise Rejected when there is none."""
    if key not in REGISTRY:
        raise Rejected([Problem(path="key", message=f"There is no setting named {key}.", code="unknown")])
    return REGISTRY[key]


def value_of(setting: Setting) -> int:
    """Return the setting's value now in force."""
    return _values([setting])[setting.key]


def values_of(*settings: Setting) -> list[int]:
    """Return the values now in force, in the order of `settings`, with one query."""
    values = _values(settings)
    return [values[setting.key] for setting in settings]


def all_values() -> dict[str, int]:
    """Return the value now in force of every key, with one query."""
    return _values(REGISTRY.values())


def cluster_policy(framework: str) -> ClusterPolicy:
    """Return the policy now in force for clusters of the framework, with one query. Raise ValueError for an unknown framework."""
    return policy_of(framework, _values(FRAMEWORK_SETTINGS.get(framework, {}).values()))


@transaction.atomic
def change(key: str, text: str, *, actor: User) -> int:
    """Store an override with its audit entry and return its value. Raise Rejected with the path "key" or "value" when either is wrong."""
    setting = lookup(key)
    try:
        value = setting.parse(text)
    except ValueError as error:
        raise Rejected([Problem(path="value", message=str(error))]) from error
    all_before = all_values()
    before = all_before[key]
    _, is_new = ConfigRecord.objects.update_or_create(
        namespace=NAMESPACE, key=key, defaults={"value": str(value), "updated_by": actor.get_username()}
    )
    _refuse_contradiction(all_before)
    # A framework's own value stays when the value for all changes, so setting it is a change even if the two are equal now.
    if value != before or (setting.general and is_new):
        _record(setting, AuditEntry.Action.CHANGED, before, value, actor)
    return value


@transaction.atomic
def reset(key: str, *, actor: User) -> int:
    """Delete the override and return the value that applies again: the one for all frameworks, or the default."""
    setting = lookup(key)
    all_before = all_values()
    deleted, _ = ConfigRecord.objects.filter(namespace=NAMESPACE, key=key).delete()
    value = value_of(setting)
    if deleted:
        _refuse_contradiction(all_before)
        _record(setting, AuditEntry.Action.RESET, all_before[key], value, actor)
    return value


def _values(settings: Iterable[Setting]) -> dict[str, int]:
    wanted = list(settings)
    keys = {key for setting in wanted for key in (setting.key, setting.general) if key}
    records = ConfigRecord.objects.filter(namespace=NAMESPACE, key__in=keys).order_by()
    stored = dict(records.values_list("key", "value"))

    def value(setting: Setting) -> int:
        texts = (stored[key] for key in (setting.key, setting.general) if key in stored)
        text = next(texts, None)
        return setting.default if text is None else setting.parse(text)

    return {setting.key: value(setting) for setting in wanted}


def _refuse_contradiction(before: Mapping[str, int]) -> None:
    """Raise Rejected when the change made consistent values contradictory; the caller's transaction then rolls back. Values that
    contradicted each other before may be changed freely."""
    sentence = contradiction(all_values())
    if sentence and not contradiction(before):
        raise Rejected([Problem(path="value", message=sentence, code="contradiction")])


def _record(setting: Setting, action: str, before: int, after: int, actor: User) -> None:
    values = [setting.written(one) if setting.is_switch else one for one in (before, after)]
    AuditEntry.objects.create(
        actor=actor,
        actor_name=actor.get_username(),
        action=action,
        object_type="setting",
        object_id=setting.key,
        object_name=setting.title,
        changes={"value": values},
    )
