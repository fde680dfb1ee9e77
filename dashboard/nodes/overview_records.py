"""Reads from the database what the overview tells, synchronously; the cost does not grow with the history."""

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import chain

from dashboard.nodes.viewmodels.misconfigured import (
    AdminFacts,
    Misconfigured,
    change_line,
    misfits,
    never_started,
    refused_by_namespace,
)
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, value_of
from grid.core.translation import gettext as _
from grid.diagnosis.nodeshapes import PoolShapes
from grid.diagnosis.shortages import NamespaceLimits, TierPromise, phantoms
from grid.executions.preview import pod_needs
from grid.executions.spec import tier_spec
from grid.models import AuditEntry, Environment, Execution, HardwareTier, State
from grid.tiers.tierrequests import sidecars, tier_request

CHANGES_SHOWN = 5
_CHANGES = [
    *(AuditEntry.Action.CREATED, AuditEntry.Action.CHANGED, AuditEntry.Action.ARCHIVED),
    *(AuditEntry.Action.RESTORED, AuditEntry.Action.RESET, AuditEntry.Action.UNLOCKED),
    *(AuditEntry.Action.ENDED, AuditEntry.Action.SENT),
]
LAUNCHES_LOOKED_AT = 1000  # the latest that have ended


def admin_facts(
    pools: Mapping[str, PoolShapes] | None, unstarted: Collection[Misconfigured], limits: NamespaceLimits | None
) -> AdminFacts:
    """Return what is misconfigured, and the latest changes. `pools` and `limits` are None while they are not known."""
    offered = list(HardwareTier.objects.filter(is_archived=False))
    promises = [TierPromise(tier.pk, pod_needs(tier_spec(tier)), tier.maximum_simultaneous) for tier in offered]
    broken = phantoms(promises, value_of(MAXIMUM_EXECUTIONS_PER_USER), limits) if limits is not None else []
    containers = sidecars()
    requests = [(tier.pk, tier.name, tier_request(tier, containers)) for tier in offered]
    lines = [
        *([] if pools is None else misfits(requests, pools)),
        *refused_by_namespace(broken, {tier.pk: tier.name for tier in offered}),
        *unstarted,
    ]
    # Each action by its index: between two changes there may be any number of launches and logins.
    latest = [AuditEntry.objects.filter(action=action).order_by("-at", "-id")[:CHANGES_SHOWN] for action in _CHANGES]
    entries = sorted(chain.from_iterable(latest), key=lambda entry: (entry.at, entry.pk), reverse=True)[:CHANGES_SHOWN]
    return AdminFacts(
        # One line for each object, with what weighs most.
        misconfigured=tuple({(line.url_name, line.object_id): line for line in reversed(lines)}.values())[::-1],
        changes=tuple(change_line(entry, entry.object_type) for entry in entries),
    )


def environments_never_started() -> tuple[Misconfigured, ...]:
    """Return the environments of which the latest launches failed without having started, and no launch started."""
    ended = Execution.objects.filter(ended_at__isnull=False).order_by("-ended_at", "-pk")
    rows = list(ended.values_list("environment_id", "started_at", "state", "message")[:LAUNCHES_LOOKED_AT])
    started = {environment for environment, started_at, _, _ in rows if started_at is not None}
    failed = [row for row in rows if row[2] in (State.FAILED, State.ERROR) and row[0] not in started]
    failures = Counter(environment for environment, *_ in failed)
    if not failures:
        return ()
    running = Execution.objects.unsettled().filter(environment__in=failures, started_at__isnull=False)
    started |= set(running.values_list("environment_id", flat=True).order_by().distinct())
    latest = {environment: message for environment, _, _, message in reversed(failed)}
    names = Environment.objects.filter(pk__in=failures.keys() - started, is_archived=False).order_by("name")
    return tuple(
        never_started(id, name, failures[id], latest[id] or _("no cause was stored."))
        for id, name in names.values_list("pk", "name")
    )
