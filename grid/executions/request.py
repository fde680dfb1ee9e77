"""A person's request to launch something: a workspace, a job, an app, a cluster, or a workspace or job with its cluster.

Validates it, reports all problems, and stores it. Nothing here touches Kubernetes: the controller sees the rows and acts.
`grid.executions.offers` says what a form may offer.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet

from grid.announcements.gate import why_closed
from grid.clusters.request import Check, ClusterRequest, cluster_settings, cluster_spec, version_mismatch
from grid.core.errors import Problem, Rejected
from grid.core.translation import gettext as _
from grid.diagnosis.launchfit import Pools
from grid.executions import lifecycle
from grid.executions.changes import resize, restart_head, slots_to_keep
from grid.executions.launchsettings import LaunchSettings, launch_settings
from grid.executions.offers import (
    LAUNCHABLE_KINDS,
    environments_for,
    may_launch_in,
    projects_for,
    tiers_for,
    wrong_tier,
)
from grid.executions.spec import EnvironmentSpec, launched_revision, serialize_spec
from grid.executions.stopping import request_stop
from grid.files import stored_remotes as remotes
from grid.jobs import jobrows
from grid.jobs.jobrows import RunAttempt
from grid.jobs.jobsettings import DEFAULTS, JobSettings, problems_of
from grid.models import Environment, Execution, HardwareTier, Job, Project, State, StoredSecret, User, Workspace
from grid.models.environment import Kind
from grid.models.execution import new_execution_id
from grid.queue import snapshot
from grid.secrets.storedsecrets import for_launch

__all__ = [
    "LAUNCHABLE_KINDS",
    "MAXIMUM_TITLE",
    "ClusterRequest",
    "LaunchRequest",
    "cluster_id_for",
    "draft",
    "environments_for",
    "may_launch_in",
    "projects_for",
    "request_stop",
    "resize",
    "restart_head",
    "slots_to_keep",
    "submit",
    "tiers_for",
    "validate",
    "validate_cluster",
    "version_mismatch",
    "wrong_title",
]

M = TypeVar("M", bound=Model)

MAXIMUM_TITLE = 120
_HAVE_CLUSTERS = frozenset({Kind.WORKSPACE, Kind.JOB})
_ID_LENGTH = 12


@dataclass(frozen=True)
class LaunchRequest:
    """The form's values. For the kind cluster, `cluster` is all of it; a workspace or job with a `cluster` is launched with it.

    `workspace` is the workspace to resume; without it, launching a workspace creates one. `job` is what a job runs with, and `attempt` the
    attempt of a run that exists; without it, launching a job creates the job and its first run. `pinned` is the environment as it was at
    an earlier launch, which is used in place of what is stored of it now; whether it may be launched is asked of what is stored.
    """

    owner: User
    project: Project
    environment: Environment
    tier: HardwareTier
    kind: str
    title: str = ""
    cluster: ClusterRequest | None = None
    workspace: Workspace | None = None
    job: JobSettings = DEFAULTS
    attempt: RunAttempt | None = None
    pinned: EnvironmentSpec | None = None


def validate(request: LaunchRequest, *, pools: Pools | None = None) -> list[Problem]:
    """Return all problems of the request, each at its field; [] when it may be launched.

    Includes those of `validate_cluster`; with `pools` also those of tiers that fit no node.
    """
    return _problems(request, _Stored(request), pools)


def validate_cluster(request: LaunchRequest, *, pools: Pools | None) -> list[Problem]:
    """Return the problems of the cluster alone; [] when there is none."""
    cluster = request.cluster
    if cluster is None:
        missing = request.kind == Kind.CLUSTER
        return (
            [Problem("framework", _("Say what the cluster runs: Dask, Ray or Spark."), "required")] if missing else []
        )
    if request.kind == Kind.CLUSTER:
        return [*Check(cluster, request.owner, "", pools).problems(), *_apart(request, cluster)]
    if request.kind not in _HAVE_CLUSTERS:
        return [Problem("with_cluster", _("Only a workspace or a job can have a cluster of its own."), "kind")]
    alone = Check(cluster, request.owner, request.kind, pools).problems()
    return [*alone, *_too_many_places(request, cluster), *_apart(request, cluster)]


def submit(request: LaunchRequest, *, now: datetime, execution_id: str = "", pools: Pools | None = None) -> Execution:
    """Store the request as queued, with its cluster if it has one: both or neither. Return the workspace or job of such a pair.

    Raise Rejected with all problems, or when there is maintenance, the project's budget is used up or the queue is full. A
    caller that may send a request twice gives it an id: the second time raises IntegrityError.
    """
    with transaction.atomic():
        stored = _Stored(request)
        problems = _problems(request, stored, pools)
        if problems:
            raise Rejected(problems)
        central = launch_settings()
        unit = _unit(request, stored, execution_id or new_execution_id(), now, central)
        first = unit[0]
        if closed := why_closed(first.project_id, now):
            raise Rejected(closed)
        full = snapshot.why_queue_is_full(unit, central.queue_limits)
        if full:
            raise Rejected([Problem("", full, code="queue_full")])
        if request.kind == Kind.WORKSPACE:
            first.workspace = request.workspace or _make_workspace(first, request)
        if request.kind == Kind.JOB:
            _join_run(first, request)
        for execution in unit:
            lifecycle.record_request(execution)
    return first


def draft(request: LaunchRequest, *, now: datetime, execution_id: str) -> list[Execution]:
    """Return the rows that `submit` would store for a valid request, without storing them: one, or a workspace or job and its cluster."""
    return _unit(request, _Stored(request), execution_id, now, launch_settings())


def cluster_id_for(execution_id: str) -> str:
    """Return the id of the cluster that is launched with a workspace or job: always the same, so it is launched once."""
    return hashlib.sha256(f"cluster of {execution_id}".encode()).hexdigest()[:_ID_LENGTH]


def _unit(
    request: LaunchRequest, stored: "_Stored", id: str, now: datetime, central: LaunchSettings
) -> list[Execution]:
    first = _execution(request, stored, id, now)
    if request.kind == Kind.CLUSTER:
        _make_cluster(first, request, central, stored.secrets)
        return [first]
    unit = [first]
    if request.cluster is not None:
        cluster = _execution(replace(request, kind=Kind.CLUSTER), stored, cluster_id_for(first.pk), now)
        cluster.attached_to = first
        _make_cluster(cluster, request, central, stored.secrets)
        unit.append(cluster)
    of_job = jobrows.spec_of(first.pk, request.job, request.attempt) if request.kind == Kind.JOB else None
    serialize_spec(first, central=central, secrets=stored.secrets, job=of_job, environment=request.pinned)
    return unit


class _Stored:
    """The rows that a request points to, each read once, and not before it is needed: what is frozen is what was checked."""

    def __init__(self, request: LaunchRequest) -> None:
        self._request = request

    @cached_property
    def project(self) -> Project | None:
        """None when its owner may not launch in it."""
        return _only(projects_for(self._request.owner).filter(pk=self._request.project.pk))

    @cached_property
    def environment(self) -> Environment | None:
        return _only(Environment.objects.filter(pk=self._request.environment.pk))

    @cached_property
    def tier(self) -> HardwareTier | None:
        return _only(HardwareTier.objects.filter(pk=self._request.tier.pk))

    @cached_property
    def secrets(self) -> list[StoredSecret]:
        project = self.project
        return [] if project is None else for_launch(self._request.owner, project)


def _only(rows: QuerySet[M]) -> M | None:
    """Return the only row there may be; None when there is none. `first` would have it sorted, which costs a fifth of the query."""
    return next(iter(rows.order_by()), None)


def _problems(request: LaunchRequest, stored: _Stored, pools: Pools | None) -> list[Problem]:
    own = [] if request.kind == Kind.CLUSTER else [*_wrong_environment(request, stored), *_wrong_tier(request, stored)]
    return [
        *wrong_title(request.title),
        *_wrong_project(request, stored),
        *own,
        *(problems_of(request.job) if request.kind == Kind.JOB else ()),
        *_wrong_files(request, stored),
        *validate_cluster(request, pools=pools),
    ]


def _too_many_places(request: LaunchRequest, cluster: ClusterRequest) -> Iterator[Problem]:
    """Yield a problem when a workspace or job and its cluster share a tier that never runs two executions at once."""
    for path, tier in (("head_tier", cluster.head_tier), ("worker_tier", cluster.tier)):
        only_one = HardwareTier.objects.filter(pk=tier.pk, maximum_simultaneous=1).first()
        if only_one is not None and tier.pk == request.tier.pk:
            sentence = _(
                "The {kind} and its cluster would both take a place on {name}, which runs at most 1 execution "
                "at once. Choose another tier for one of them.",
                kind=Kind(request.kind).label.lower(),
                name=only_one.name,
            )
            yield Problem(path, sentence, "places")


def _apart(request: LaunchRequest, cluster: ClusterRequest) -> Iterator[Problem]:
    """Yield a problem when the pods of a cluster, or of its workspace or job, could not reach each other."""
    asked = {"head_tier": cluster.head_tier.pk, "worker_tier": cluster.tier.pk}
    beside = cluster.head_tier.pk if request.kind == Kind.CLUSTER else request.tier.pk
    stored = HardwareTier.objects.select_related("data_plane").in_bulk({beside, *asked.values()})
    for path, pk in asked.items():
        tier, other = stored.get(pk), stored.get(beside)
        if tier is not None and other is not None and tier.data_plane != other.data_plane:
            sentence = _(
                "{name} is in the data plane “{plane}” and {other} in “{other_plane}”, and pods cannot reach "
                "each other from one to the other. Choose tiers of one data plane.",
                name=tier.name,
                plane=tier.data_plane,
                other=other.name,
                other_plane=other.data_plane,
            )
            yield Problem(path, sentence, "data_plane")


def _execution(request: LaunchRequest, stored: _Stored, id: str, now: datetime) -> Execution:
    """Build the row. What is frozen comes from the rows of this transaction and not from the form's; `_make_cluster` adds a cluster's."""
    execution = Execution(
        id=id,
        kind=request.kind,
        title=request.title.strip(),
        owner=request.owner,
        project=stored.project,
        state=State.QUEUED,
        state_since=now,
        requested_at=now,
        reason="requested",
        message=_("Waiting for a free slot."),
    )
    if request.kind != Kind.CLUSTER:
        assert stored.environment is not None and stored.tier is not None, "checked before"
        execution.environment, execution.tier = stored.environment, stored.tier
        execution.workspace = request.workspace
    return execution


def _make_workspace(execution: Execution, request: LaunchRequest) -> Workspace:
    return Workspace.objects.create(
        id=execution.pk,
        title=execution.title,
        owner=execution.owner,
        project_id=execution.project_id,
        environment_id=execution.environment_id,
        environment_revision=launched_revision(execution),
        tier_id=execution.tier_id,
        cluster=cluster_settings(request.cluster) if request.cluster else None,
        created_at=execution.requested_at,
        launched_at=execution.requested_at,
    )


def _join_run(execution: Execution, request: LaunchRequest) -> None:
    """Make it an attempt of its run; a job that is launched first is created with its first run."""
    attempt = request.attempt
    if attempt is None:
        cluster = cluster_settings(request.cluster) if request.cluster else None
        job = jobrows.make_job(execution, request.job, cluster=cluster)
        record = jobrows.record_of(job, execution.environment, execution.tier)
        run = jobrows.make_run(job, record, {}, by=request.owner.get_username(), now=execution.requested_at)
        attempt = RunAttempt(run, 1)
    execution.run, execution.attempt = attempt.run, attempt.number
    revision = launched_revision(execution)
    Job.objects.filter(pk=attempt.run.job_id).exclude(environment_revision=revision).update(
        environment_revision=revision
    )


def _make_cluster(
    execution: Execution, request: LaunchRequest, central: LaunchSettings, secrets: Iterable[StoredSecret]
) -> None:
    cluster = request.cluster
    assert cluster is not None  # `validate` has checked it
    execution.environment_id = cluster.environment.pk
    execution.tier_id = cluster.tier.pk
    execution.head_tier_id = cluster.head_tier.pk
    execution.slots = cluster.slots
    execution.message = _("Waiting for {slots} free slots.", slots=cluster.slots)
    spec = cluster_spec(cluster, attached_to=execution.attached_to_id or "")
    serialize_spec(execution, central=central, secrets=secrets, cluster=spec)


def wrong_title(title: str) -> Iterator[Problem]:
    title = title.strip()
    if len(title) > MAXIMUM_TITLE:
        yield Problem(
            "title",
            _(
                "Use at most {most} characters; these are {length}.",
                most=MAXIMUM_TITLE,
                length=len(title),
            ),
            "too_long",
        )
    if not title.isprintable():
        yield Problem("title", _("Use visible characters, in one line."), "unprintable")


def _wrong_project(request: LaunchRequest, stored: _Stored) -> Iterator[Problem]:
    if not request.owner.is_active:
        yield Problem("", _("This account is disabled; ask your admin."), "inactive")
    elif stored.project is None:
        # One answer for both cases: a stranger does not learn which projects exist.
        yield Problem(
            "project", _("Choose a project to which you contribute; this one is archived or not yours."), "project"
        )


def _wrong_files(request: LaunchRequest, stored: _Stored) -> Iterator[Problem]:
    project = stored.project
    if project is None:
        return
    if request.job.files_at and not project.is_in_git:
        yield Problem("files_at", _("The files of this project are not in Git; leave this empty."), "files")
    if project.files == Project.Files.REMOTE and request.kind != Kind.CLUSTER and not remotes.is_usable(project):
        yield Problem("project", remotes.NOT_USABLE, "remote")


def _wrong_environment(request: LaunchRequest, stored: _Stored) -> Iterator[Problem]:
    if request.kind not in LAUNCHABLE_KINDS:
        yield Problem("kind", _("Choose a workspace, a job, an app or a cluster."), "kind")
        return
    environment = stored.environment
    if environment is None or environment.is_archived or not environment.is_visible:
        yield Problem("environment", _("This environment is no longer available; choose another."), "not_offered")
    elif environment.kind != request.kind:
        made_for = Kind(environment.kind).label.lower()
        yield Problem(
            "environment",
            _("{name} is for the kind “{kind}”; choose another.", name=environment.name, kind=made_for),
            "kind",
        )


def _wrong_tier(request: LaunchRequest, stored: _Stored) -> Iterator[Problem]:
    problem = wrong_tier(request.owner, stored.tier, request.kind)
    if problem is not None:
        yield problem
