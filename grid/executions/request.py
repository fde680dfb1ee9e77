"""A person's request to launch something: a workspace, a job, an app, a cluster, or a workspace or job with its cluster. Validates it,
reports all problems, and stores it. Nothing here touches Kubernetes: the controller sees the rows and acts.
`grid.executions.launchrequest` says what a form may offer, and `grid.executions.kinds` what is particular to each kind."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from grid.core.errors import Problem, Rejected
from grid.core.translation import gettext as _
from grid.diagnosis.launchfit import Pools
from grid.executions import kinds, lifecycle
from grid.executions.launchrequest import LaunchRequest, StoredRows
from grid.executions.launchsettings import LaunchSettings, launch_settings
from grid.models import Execution, State
from grid.models.environment import Kind
from grid.models.execution import new_execution_id

MAXIMUM_TITLE = 120
_ID_LENGTH = 12

Check = Callable[[LaunchRequest, StoredRows], Iterable[Problem]]
# Returns why a unit is refused now; [] when it is not.
LaunchGate = Callable[[Sequence[Execution], datetime], Sequence[Problem]]
_checks: list[Check] = []


def register_check(check: Check) -> None:
    """Have each request validated by `check` as well, whatever its kind."""
    if check not in _checks:
        _checks.append(check)


def validate(request: LaunchRequest, *, pools: Pools | None = None, stored: StoredRows | None = None) -> list[Problem]:
    """Return all problems of the request, each at its field; with `pools` also those of tiers that fit no node. What is read of its rows
    is left in `stored`."""
    return _problems(request, stored or StoredRows(request), pools)


def submit(
    request: LaunchRequest, *, gate: LaunchGate, now: datetime, execution_id: str = "", pools: Pools | None = None
) -> Execution:
    """Store the request as queued, with its cluster if it has one: both or neither. Return the workspace or job of such a pair. Raise
    Rejected with all problems, or with what closes the `gate` to the unit (`grid.queue.launches.why_not_launch`). A caller that may send a
    request twice gives it an id: the second time raises IntegrityError."""
    with transaction.atomic():
        stored = StoredRows(request)
        if problems := _problems(request, stored, pools):
            raise Rejected(problems)
        unit = _unit(request, stored, execution_id or new_execution_id(), now, launch_settings())
        first = unit[0]
        if closed := gate(unit, now):
            raise Rejected(closed)
        kinds.kind_of(request.kind).store(first, request)
        for execution in unit:
            lifecycle.record_request(execution)
    return first


def draft(
    request: LaunchRequest, *, now: datetime, execution_id: str, stored: StoredRows | None = None
) -> list[Execution]:
    """Return the rows that `submit` would store for a valid request, without storing them: one, or a workspace or job and its cluster."""
    return _unit(request, stored or StoredRows(request), execution_id, now, launch_settings())


def cluster_id_for(execution_id: str) -> str:
    """Return the id of the cluster that is launched with a workspace or job: always the same, so it is launched once."""
    return hashlib.sha256(f"cluster of {execution_id}".encode()).hexdigest()[:_ID_LENGTH]


def _unit(
    request: LaunchRequest, stored: StoredRows, id: str, now: datetime, central: LaunchSettings
) -> list[Execution]:
    first = _execution(request, stored, id, now)
    unit = [first]
    if request.cluster is not None and request.kind != Kind.CLUSTER:
        of_cluster = replace(request, kind=Kind.CLUSTER)
        cluster = _execution(of_cluster, stored, cluster_id_for(first.pk), now)
        cluster.attached_to = first
        kinds.kind_of(Kind.CLUSTER).draft(cluster, of_cluster, stored, central)
        unit.append(cluster)
    kinds.kind_of(request.kind).draft(first, request, stored, central)
    return unit


def _execution(request: LaunchRequest, stored: StoredRows, id: str, now: datetime) -> Execution:
    """Build the row, which its kind completes. What is frozen comes from the rows of this transaction and not from the form's."""
    return Execution(
        id=id,
        kind=request.kind,
        title=request.title.strip(),
        owner=request.owner,
        project=stored.project,
        state=State.QUEUED,
        state_since=now,
        requested_at=now,
        reason="requested",
        reason_values={},
    )


def _problems(request: LaunchRequest, stored: StoredRows, pools: Pools | None) -> list[Problem]:
    of_all = [*wrong_title(request.title)]
    if not request.owner.is_active:
        of_all.append(Problem("", _("This account is disabled; ask your admin."), "inactive"))
    elif stored.project is None:
        # One answer for both cases: a stranger does not learn which projects exist.
        sentence = _("Choose a project to which you contribute; this one is archived or not yours.")
        of_all.append(Problem("project", sentence, "not_contributor"))
    if not kinds.is_registered(request.kind):
        return [*of_all, Problem("kind", _("Choose a workspace, a job, an app or a cluster."), "kind")]
    others = [problem for check in _checks for problem in check(request, stored)]
    return [*of_all, *others, *kinds.kind_of(request.kind).problems(request, stored, pools)]


def wrong_title(title: str) -> Iterator[Problem]:
    title = title.strip()
    if len(title) > MAXIMUM_TITLE:
        sentence = _("Use at most {most} characters; these are {length}.", most=MAXIMUM_TITLE, length=len(title))
        yield Problem("title", sentence, "too_long")
    if not title.isprintable():
        yield Problem("title", _("Use visible characters, in one line."), "unprintable")
