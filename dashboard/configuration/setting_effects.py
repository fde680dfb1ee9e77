"""Says in words what changing a setting does at once: who loses what, or that nothing does."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from django.db.models import Q, Sum

from grid import configuration as centralconfig
from grid.accounts import lockouts, sessions
from grid.accounts.lockouts import LockoutPolicy, Scope
from grid.configuration import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS, REGISTRY, Setting, SettingChange
from grid.controller.retention import expired
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import listed, listed_up_to, plural
from grid.models import Execution, State
from grid.models.environment import Framework, Kind
from grid.projects.departures import LIVES

MOST_NAMED = 5
MOST_COUNTED = 10_000  # expired rows: counting a history of millions would take long, and nobody needs the number


@dataclass(frozen=True, slots=True)
class Consequence:
    """What a change does at once; `is_loss` when something ends, is deleted or is locked."""

    text: str
    is_loss: bool = False


Effect = Callable[[SettingChange, datetime], Consequence]


def effects(changes: Sequence[SettingChange], *, now: datetime) -> dict[str, Consequence]:
    return {change.setting.key: _effect(change, now) for change in changes}


def _effect(change: SettingChange, now: datetime) -> Consequence:
    setting = change.setting
    general = REGISTRY[setting.general] if setting.general else setting
    consequence = Consequence(setting.effect) if setting.effect is not None else _COUNTED[general](change, now)
    if setting in CLUSTER_SETTINGS.values():
        own = (Framework(name).label for name in _with_own_value(setting))
        consequence = replace(consequence, text=followers(consequence.text, own))
    return consequence


def _time_limit(change: SettingChange, now: datetime, *, which: Q, since: str) -> Consequence:
    begun = Execution.objects.unsettled().filter(which).order_by().values_list("owner__username", since)
    return time_limit(begun, seconds=change.after, before=change.before, now=now)


def _slots(change: SettingChange, now: datetime) -> Consequence:
    held = Execution.objects.holding_slots().order_by().values_list("owner__username").annotate(Sum("slots"))
    waiting: Counter[str] = Counter()
    for id, attached_to, slots in Execution.objects.queued().values_list("pk", "attached_to", "slots"):
        waiting[attached_to or id] += slots
    return slots_per_user(dict(held), waiting.values(), limit=change.after, before=change.before)


def _queue(change: SettingChange, now: datetime) -> Consequence:
    waiting = Execution.objects.queued().filter(attached_to__isnull=True).count()
    return queue_limit(waiting, limit=change.after)


def _sessions(change: SettingChange, now: datetime, *, since: str) -> Consequence:
    begun = sessions.living_sessions(now).filter(user__isnull=False).values_list("user__username", since)
    return time_limit(begun, seconds=change.after, before=change.before, now=now, of_sessions=True)


def _locks(change: SettingChange, now: datetime, *, scope: Scope | None) -> Consequence:
    rules = lockouts.policy()
    if scope:
        changed = LockoutPolicy({**rules.limits, scope: change.after}, rules.cool_off)
    else:
        changed = replace(rules, cool_off=timedelta(seconds=change.after))
    before, after = (
        [_named(lock.name, lock.address) for lock in lockouts.locks(now, policy)] for policy in (rules, changed)
    )
    return login_locks(before, after)


def _named(name: str, address: str) -> str:
    return _("{name} at {address}", name=name, address=address) if name and address else name or address


def _retention(change: SettingChange, now: datetime, *, counted: Callable[[int], str]) -> Consequence:
    rows = expired(change.setting, now - timedelta(days=change.after)).order_by()
    count = rows[: MOST_COUNTED + 1].count() if change.after else 0
    return retention(count, days=change.after, before=change.before, counted=counted, at_most=MOST_COUNTED)


def _workers(change: SettingChange, now: datetime) -> Consequence:
    framework = change.setting.topic.framework
    concerned = {framework} if framework else set(FRAMEWORK_SETTINGS) - _with_own_value(change.setting)
    running = Execution.objects.unsettled().filter(kind=Kind.CLUSTER, framework__in=concerned)
    return maximum_workers(running.order_by().values_list("owner__username", "workers_maximum"), limit=change.after)


def _with_own_value(general: Setting) -> set[str]:
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


def time_limit(
    begun: Iterable[tuple[str, datetime]], *, seconds: int, before: int, now: datetime, of_sessions: bool = False
) -> Consequence:
    """Return what another limit does to those that it holds for, executions or sessions: who they belong to, and when they began."""
    if seconds >= before:
        none = _("No session ends now{longer}") if of_sessions else _("No execution ends now{longer}")
        return Consequence(none.format(longer=_("; those under the limit get the longer time.")))
    owners = Counter(owner for owner, at in begun if now - at > timedelta(seconds=seconds))
    if not owners:
        return Consequence(_("No session would end now.") if of_sessions else _("No execution would end now."))
    total = owners.total()
    ended = plural(total, "session", "sessions") if of_sessions else plural(total, "execution", "executions")
    return Consequence(_("{ended} would end now: {owners}.", ended=ended, owners=_by_person(owners)), is_loss=True)


def slots_per_user(held: Mapping[str, int], waiting: Iterable[int], *, limit: int, before: int) -> Consequence:
    """Return what a limit of slots does. `held` are the slots that each person holds, `waiting` those that each queued launch needs."""
    if limit >= before:
        return Consequence(_("Queued executions that fit start at once."))
    above = Counter({name: slots for name, slots in held.items() if slots > limit})
    names = [f"{name} ({plural(slots, 'slot', 'slots')})" for name, slots in above.most_common()]
    parts = [
        ngettext(
            "{count:,} person is above it: {names}. Their running executions continue; new ones wait.",
            "{count:,} people are above it: {names}. Their running executions continue; new ones wait.",
            len(above),
            names=listed_up_to(MOST_NAMED, names),
        )
        if above
        else _("Nobody is above the limit.")
    ]
    if stuck := sum(slots > limit for slots in waiting):
        parts.append(
            ngettext(
                "{count:,} queued launch needs more slots than that and cannot start.",
                "{count:,} queued launches need more slots than that and cannot start.",
                stuck,
            )
        )
    if not limit:
        parts.append(_("Nobody can start anything."))
    return Consequence(" ".join(parts), is_loss=bool(above or stuck or not limit))


def queue_limit(waiting: int, *, limit: int) -> Consequence:
    """Return what a limit of the queue does while so many launches wait; a pair counts once."""
    queue, text = _("The queue is empty"), _("{queue}. Launches that would have to wait are refused.")
    if waiting:
        queue = ngettext("{count:,} launch waits now", "{count:,} launches wait now", waiting)
        text = _("{queue}; queued ones stay. Launches that would have to wait are refused.")
    if waiting < limit:
        return Consequence(_("{queue}; there is room for {limit:,} more.", queue=queue, limit=limit - waiting))
    return Consequence(text.format(queue=queue), is_loss=True)


def login_locks(before: Collection[str], after: Collection[str]) -> Consequence:
    begin, end = [lock for lock in after if lock not in before], [lock for lock in before if lock not in after]
    changed = (begin, _("{logins} would be locked now: {names}.")), (end, _("{logins} would be unlocked now: {names}."))
    parts = [
        sentence.format(logins=plural(len(locks), "login", "logins"), names=listed_up_to(MOST_NAMED, locks))
        for locks, sentence in changed
        if locks
    ]
    return Consequence(" ".join(parts) or _("No login is locked or unlocked now."), is_loss=bool(begin))


def retention(expired: int, *, days: int, before: int, counted: Callable[[int], str], at_most: int) -> Consequence:
    """Return what keeping rows for `days` deletes (0: for ever); `expired` are older, counted up to one more than `at_most`."""
    if not days or 0 < before <= days:
        return Consequence(_("Nothing is deleted now. Earlier deletions are not undone."))
    if not expired:
        return Consequence(_("Nothing is old enough yet."))
    count = _("More than {rows}", rows=counted(at_most)) if expired > at_most else counted(expired)
    return Consequence(_("{rows} would be deleted within the hour.", rows=count), is_loss=True)


def maximum_workers(running: Iterable[tuple[str, int]], *, limit: int) -> Consequence:
    """Return what a limit of workers does to running clusters: their owners, and to how many workers each may grow."""
    owners = Counter(owner for owner, workers in running if workers > limit)
    if not owners:
        return Consequence(_("Applies to new and resized clusters; no running one may grow beyond it."))
    return Consequence(
        ngettext(
            "{count:,} running cluster may grow beyond it: {owners}. It keeps its maximum; it applies to new and resized ones.",
            "{count:,} running clusters may grow beyond it: {owners}. They keep their maximum; it applies to new and resized ones.",
            owners.total(),
            owners=_by_person(owners),
        )
    )


def followers(text: str, own: Iterable[str]) -> str:
    """Add to a consequence of a value for all frameworks which of them have a value of their own."""
    labels = sorted(own)
    if not labels:
        return text
    own = ngettext("{names} has its own value.", "{names} have their own values.", len(labels), names=listed(labels))
    return f"{text} {own}"


def _by_person(owners: Counter[str]) -> str:
    ordered = sorted(owners.items(), key=lambda owner: (-owner[1], owner[0]))
    return listed_up_to(MOST_NAMED, [_("{count:,} of {name}", count=count, name=name) for name, count in ordered])
