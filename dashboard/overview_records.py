"""Reads from the database what the overview tells, synchronously; the cost does not grow with the history."""

from collections import Counter
from collections.abc import Collection

from django.conf import settings
from django.db import DatabaseError

from dashboard.viewmodels.misconfigured import AdminFacts, NeverStarted, change_line, misfits, never_started
from grid import writing
from grid.diagnosis.tierfit import pool_offers
from grid.kube.objects import Node
from grid.models import AuditEntry, Environment, Execution, HardwareTier, State
from grid.watch.pools import NodeGroup

CHANGES_SHOWN = 5
LAUNCHES_LOOKED_AT = 1000  # the latest that have ended


def database_problems() -> tuple[str, ...]:
    """Return sentences that say what is wrong with the database or the folders; () when all can be read and written."""
    try:
        Execution.objects.unsettled().exists()
        return tuple(writing.problems())
    except DatabaseError as error:
        return (f"The database does not answer as it should ({type(error).__name__}).",)


def admin_facts(
    nodes: Collection[Node] | None, groups: dict[str, NodeGroup], unstarted: Collection[NeverStarted]
) -> AdminFacts:
    """Return what is misconfigured, and the latest changes. `nodes` is None while they are not known."""
    tiers = [(tier.pk, tier.name, tier) for tier in HardwareTier.objects.filter(is_archived=False)]
    found = [] if nodes is None else misfits(tiers, pool_offers(nodes, groups, label=settings.NODE_POOL_LABEL))
    entries = AuditEntry.objects.order_by("-at", "-id")[:CHANGES_SHOWN]
    return AdminFacts(
        misconfigured=(*found, *never_started(unstarted)),
        changes=tuple(change_line(entry, entry.object_type) for entry in entries),
    )


def environments_never_started() -> tuple[NeverStarted, ...]:
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
        NeverStarted(id, name, failures[id], latest[id] or "no cause was stored.")
        for id, name in names.values_list("pk", "name")
    )
