"""Reads what a changed setting concerns now, for `dashboard.configuration.viewmodels.consequences`; only of the settings that change."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from django.db.models import Q, Sum

from dashboard.configuration.viewmodels import consequences
from dashboard.configuration.viewmodels.consequences import Consequence
from grid import configuration as centralconfig
from grid.accounts import lockouts, sessions
from grid.accounts.lockouts import LockoutPolicy, Scope
from grid.configuration import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS, REGISTRY, Setting, SettingChange
from grid.controller.retention import expired
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.models import Execution, State
from grid.models.environment import Framework, Kind
from grid.projects.departures import LIVES

MOST_COUNTED = 10_000  # expired rows: counting a history of millions would take long, and nobody needs the number
Effect = Callable[[SettingChange, datetime], Consequence]


def effects(changes: Sequence[SettingChange], *, now: datetime) -> dict[str, Consequence]:
    """Return what each change does, by key."""
    return {change.setting.key: _effect(change, now) for change in changes}


def _effect(change: SettingChange, now: datetime) -> Consequence:
    setting = change.setting
    general = REGISTRY[setting.general] if setting.general else setting
    consequence = Consequence(setting.effect) if setting.effect is not None else _COUNTED[general](change, now)
    if setting in CLUSTER_SETTINGS.values():
        own = (Framework(name).label for name in _with_own_value(setting))
        consequence = replace(consequence, text=consequences.followers(consequence.text, own))
    return consequence


def _time_limit(change: SettingChange, now: datetime, *, which: Q, since: str) -> Consequence:
    begun = Execution.objects.unsettled().filter(which).order_by().values_list("owner__username", since)
    return consequences.time_limit(begun, seconds=change.after, before=change.before, now=now)


def _slots(change: SettingChange, now: datetime) -> Consequence:
    held = Execution.objects.holding_slots().order_by().values_list("owner__username").annotate(Sum("slots"))
    waiting: Counter[str] = Counter()
    for id, attached_to, slots in Execution.objects.queued().values_list("pk", "attached_to", "slots"):
        waiting[attached_to or id] += slots
    return consequences.slots_per_user(dict(held), waiting.values(), limit=change.after, before=change.before)


def _queue(change: SettingChange, now: datetime) -> Consequence:
    waiting = Execution.objects.queued().filter(attached_to__isnull=True).count()
    return consequences.queue_limit(waiting, limit=change.after)


def _sessions(change: SettingChange, now: datetime, *, since: str) -> Consequence:
    begun = sessions.living_sessions(now).filter(user__isnull=False).values_list("user__username", since)
    return consequences.time_limit(begun, seconds=change.after, before=change.before, now=now, of_sessions=True)


def _locks(change: SettingChange, now: datetime, *, scope: Scope | None) -> Consequence:
    rules = lockouts.policy()
    if scope:
        changed = LockoutPolicy({**rules.limits, scope: change.after}, rules.cool_off)
    else:
        changed = replace(rules, cool_off=timedelta(seconds=change.after))
    before, after = (
        [_named(lock.name, lock.address) for lock in lockouts.locks(now, policy)] for policy in (rules, changed)
    )
    return consequences.login_locks(before, after)


def _named(name: str, address: str) -> str:
    return _("{name} at {address}", name=name, address=address) if name and address else name or address


def _retention(change: SettingChange, now: datetime, *, counted: Callable[[int], str]) -> Consequence:
    rows = expired(change.setting, now - timedelta(days=change.after)).order_by()
    count = rows[: MOST_COUNTED + 1].count() if change.after else 0
    return consequences.retention(count, days=change.after, before=change.before, counted=counted, at_most=MOST_COUNTED)


def _workers(change: SettingChange, now: datetime) -> Consequence:
    framework = change.setting.topic.framework
    concerned = {framework} if framework else set(FRAMEWORK_SETTINGS) - _with_own_value(change.setting)
    running = Execution.objects.unsettled().filter(kind=Kind.CLUSTER, framework__in=concerned)
    owners = running.order_by().values_list("owner__username", "workers_maximum")
    return consequences.maximum_workers(owners, limit=change.after)


def _with_own_value(general: Setting) -> set[str]:
    """Return the frameworks for which a setting of all of them does not hold."""
    stored = (REGISTRY[key] for key in centralconfig.overrides())
    return {own.topic.framework for own in stored if own.general == general.key and own.topic.framework}


def _of_state(state: State) -> Effect:
    return partial(_time_limit, which=Q(state=state), since="state_since")


# What a change of a setting without a sentence of its own does; what holds for all frameworks holds for one.
_COUNTED: Mapping[Setting, Effect] = {
    centralconfig.DEPLOYING_TIMEOUT: _of_state(State.DEPLOYING),
    centralconfig.PREPARING_TIMEOUT: _of_state(State.PREPARING),
    centralconfig.OVER_QUOTA_TIMEOUT: _of_state(State.QUEUED),
    centralconfig.ACCESS_LOST_TIMEOUT: partial(
        _time_limit, which=LIVES & Q(access_lost_at__isnull=False), since="access_lost_at"
    ),
    centralconfig.MAXIMUM_EXECUTIONS_PER_USER: _slots,
    centralconfig.GLOBAL_QUEUE_LIMIT: _queue,
    CLUSTER_SETTINGS["maximum_workers"]: _workers,
    centralconfig.SESSION_IDLE: partial(_sessions, since="seen_at"),
    centralconfig.SESSION_ABSOLUTE: partial(_sessions, since="created_at"),
    centralconfig.LOGIN_FAILURES_AT_ADDRESS: partial(_locks, scope=Scope.NAME_AT_ADDRESS),
    centralconfig.LOGIN_FAILURES_OF_ADDRESS: partial(_locks, scope=Scope.ADDRESS),
    centralconfig.LOGIN_FAILURES_OF_NAME: partial(_locks, scope=Scope.NAME),
    centralconfig.LOGIN_COOL_OFF: partial(_locks, scope=None),
    centralconfig.EXECUTION_RETENTION: partial(
        _retention, counted=lambda count: plural(count, "ended execution", "ended executions")
    ),
    centralconfig.LIFECYCLE_RETENTION: partial(_retention, counted=lambda count: plural(count, "event", "events")),
    centralconfig.SAMPLE_RETENTION: partial(_retention, counted=lambda count: plural(count, "sample", "samples")),
    centralconfig.LOG_RETENTION: partial(_retention, counted=lambda count: plural(count, "log", "logs")),
    centralconfig.METRIC_RETENTION: partial(_retention, counted=lambda count: plural(count, "metric", "metrics")),
    centralconfig.NOTIFICATION_RETENTION: partial(
        _retention, counted=lambda count: plural(count, "notification", "notifications")
    ),
    centralconfig.DELIVERY_RETENTION: partial(_retention, counted=lambda count: plural(count, "message", "messages")),
    centralconfig.AUDIT_RETENTION: partial(_retention, counted=lambda count: plural(count, "record", "records")),
    centralconfig.INCIDENT_RETENTION: partial(_retention, counted=lambda count: plural(count, "incident", "incidents")),
    centralconfig.GRANT_RETENTION: partial(_retention, counted=lambda count: plural(count, "right", "rights")),
}
