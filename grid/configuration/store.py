"""The registry of all settings, and their values: read from stored overrides, several are changed together, with an audit entry each."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from django.db import connection, transaction
from django.db.models import Subquery

from grid.configuration import general, lifetimes
from grid.configuration.clusters import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS, ClusterPolicy, contradiction, policy_of
from grid.configuration.servicelevels import SERVICE_LEVEL_SETTINGS, targets_from
from grid.configuration.setting import Setting, declared_in
from grid.core.errors import Conflict, Problem, Rejected
from grid.core.translation import gettext as _
from grid.database.prepared import Prepared
from grid.models import AuditEntry, ConfigRecord, User
from grid.servicelevels.levels import LevelTarget

NAMESPACE = "common"


def declared_settings() -> dict[str, Setting]:
    """Return all settings by key, in the order of the page."""
    settings = (
        *declared_in(vars(general)),
        *declared_in(vars(lifetimes)),
        *SERVICE_LEVEL_SETTINGS,
        *CLUSTER_SETTINGS.values(),
        *(setting for settings in FRAMEWORK_SETTINGS.values() for setting in settings.values()),
    )
    return {setting.key: setting for setting in settings}


# All of them: there are no more than settings, and the query is always the same.
_all_stored = Prepared(
    0, lambda: ConfigRecord.objects.filter(namespace=NAMESPACE).order_by().values_list("key", "value")
)
_SETTINGS = declared_settings()
REGISTRY: Mapping[str, Setting] = MappingProxyType(_SETTINGS)


class ChangedMeanwhile(Conflict):
    """Somebody else changed these settings since their change was planned."""

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__(_("changed by others: {keys}", keys=", ".join(keys)))
        self.keys = tuple(keys)


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A planned change: the override as it is stored and as it is wanted (None: not set), and the values in force before and after."""

    setting: Setting
    stored: str | None
    wanted: str | None
    before: int
    after: int

    @property
    def is_needed(self) -> bool:
        """False when nothing would differ. A framework's or level's own value stays when the value for all changes, so setting it is a
        change even if the two are equal now; setting any other to its default is none."""
        is_default = self.stored is None and self.before == self.after and not self.setting.general
        return self.stored != self.wanted and not is_default


def value_of(setting: Setting) -> int:
    """Return the setting's value now in force."""
    return _values([setting])[setting.key]


def values_of(*settings: Setting) -> list[int]:
    """Return the values now in force, in the order of `settings`, with one query."""
    values = _values(settings)
    return [values[setting.key] for setting in settings]


def stored_override(setting: Setting) -> Subquery:
    """Return the setting's own override as a part of another query, for what is asked so often that each statement counts."""
    return Subquery(ConfigRecord.objects.filter(namespace=NAMESPACE, key=setting.key).values("value")[:1])


def value_with(setting: Setting, override: str | None) -> int:
    """Return the value of a setting when this override of it is stored."""
    return _value(setting, {} if override is None else {setting.key: override})


def all_values() -> dict[str, int]:
    """Return the value now in force of every key, with one query."""
    return values_with(overrides())


def cluster_policy(framework: str) -> ClusterPolicy:
    """Return the policy now in force for clusters of the framework, with one query. Raise ValueError for an unknown framework."""
    return policy_of(framework, _values(FRAMEWORK_SETTINGS.get(framework, {}).values()))


def service_level_targets() -> tuple[LevelTarget, ...]:
    """Return all service levels with the objectives, thresholds and windows now in force, with one query."""
    return targets_from(_values(SERVICE_LEVEL_SETTINGS))


def overrides() -> dict[str, str]:
    """Return the stored overrides, as `plan` takes them."""
    return _stored(REGISTRY)


def values_with(stored: Mapping[str, str]) -> dict[str, int]:
    """Return the value of every key when these overrides are stored."""
    return {setting.key: _value(setting, stored) for setting in REGISTRY.values()}


def plan(wanted: Mapping[str, str], stored: Mapping[str, str]) -> list[SettingChange]:
    """Return what `wanted` changes of the stored overrides. It maps keys to what an admin typed; "" deletes the override, so that the value
    for all frameworks or the default applies again. Raise Rejected with all problems; the path of each is its key."""
    parsed: dict[str, str | None] = {}
    problems = []
    for key, text in wanted.items():
        if key not in REGISTRY:
            message = _("There is no setting named {key}.", key=key) if key else _("Name the setting.")
            problems.append(Problem(path=key, message=message, code="unknown"))
            continue
        try:
            parsed[key] = str(REGISTRY[key].parse(text)) if text.strip() else None
        except ValueError as error:
            problems.append(Problem(path=key, message=str(error)))
    if problems:
        raise Rejected(problems)
    after = {key: text for key, text in {**stored, **parsed}.items() if text is not None}
    before_values, values = values_with(stored), values_with(after)
    conflict = contradiction(values)
    if conflict and not contradiction(before_values):  # what contradicted each other before may be changed freely
        guilty = [key for key in REGISTRY if key in conflict[1] and key in parsed]
        raise Rejected([Problem(path=key, message=conflict[0], code="contradiction") for key in guilty])
    changes = (
        SettingChange(REGISTRY[key], stored.get(key), after.get(key), before_values[key], values[key])
        for key in REGISTRY
        if key in parsed
    )
    return [change for change in changes if change.is_needed]


@transaction.atomic
def apply(changes: Sequence[SettingChange], *, actor: User) -> None:
    """Store all changes, each with an audit entry, or none. Raise ChangedMeanwhile when the override of one is no longer what it was
    planned from, and Rejected when they contradict what somebody else stored."""
    _wait_for_others()
    stored = overrides()
    if stale := [change.setting.key for change in changes if change.stored != stored.get(change.setting.key)]:
        raise ChangedMeanwhile(stale)
    for change in plan({change.setting.key: change.wanted or "" for change in changes}, stored):
        _store(change, actor)


def _wait_for_others() -> None:
    """Let nobody else write until this transaction ends, so that nothing is overwritten or contradicted unseen. SQLite has one writer."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {ConfigRecord._meta.db_table} IN SHARE ROW EXCLUSIVE MODE")


def _store(change: SettingChange, actor: User) -> None:
    setting, values = change.setting, (change.before, change.after)
    if change.wanted is None:
        ConfigRecord.objects.filter(namespace=NAMESPACE, key=setting.key).delete()
    else:
        columns = {"value": change.wanted, "updated_by": actor.get_username()}
        ConfigRecord.objects.update_or_create(namespace=NAMESPACE, key=setting.key, defaults=columns)
    AuditEntry.objects.create(
        actor=actor,
        actor_name=actor.get_username(),
        action=AuditEntry.Action.RESET if change.wanted is None else AuditEntry.Action.CHANGED,
        object_type="setting",
        object_id=setting.key,
        object_name=setting.title,
        changes={"value": [setting.written(value) if setting.is_switch else value for value in values]},
    )


def _values(settings: Iterable[Setting]) -> dict[str, int]:
    asked = list(settings)
    stored = _stored({key for setting in asked for key in setting.keys})
    return {setting.key: _value(setting, stored) for setting in asked}


def _stored(keys: Collection[str]) -> dict[str, str]:
    return {key: value for key, value in _all_stored() if key in keys}


def _value(setting: Setting, stored: Mapping[str, str]) -> int:
    text = next((stored[key] for key in setting.keys if key in stored), None)
    return setting.default if text is None else setting.parse(text)
