"""The values of a person's request to launch something, as a form or a program gives them, and the rows that it points to; no rules."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import msgspec
from django.db.models import QuerySet

from grid.core.errors import Problem
from grid.core.translation import gettext as _
from grid.database.prepared import Prepared
from grid.executions.spec import EnvironmentSpec
from grid.models import Environment, HardwareTier, JobRun, Membership, Project, StoredSecret, User, Workspace
from grid.models.environment import Framework, Kind
from grid.secrets.storedsecrets import for_launch


def projects_for(user: User) -> QuerySet[Project]:
    """Return the projects that the user may launch in."""
    return _projects_for(user.pk) if user.is_active else Project.objects.none()


def _projects_for(user: Any) -> QuerySet[Project]:
    contributes = {"memberships__user": user, "memberships__role__in": Membership.CONTRIBUTING}
    return Project.objects.filter(is_archived=False, **contributes)


# What each launch asks.
_PROJECT = Prepared(2, lambda user, id: _projects_for(user).filter(pk=id).order_by())
_ENVIRONMENT = Prepared(1, lambda id: Environment.objects.filter(pk=id).order_by())
_TIER = Prepared(1, lambda id: HardwareTier.objects.filter(pk=id).order_by())
_PROJECTS = Prepared(1, _projects_for)
_ENVIRONMENTS = Prepared(1, lambda kind: Environment.objects.filter(kind=kind, is_visible=True, is_archived=False))
_KEPT_FOR_GROUPS = Prepared(0, lambda: HardwareTier.groups.through.objects.values_list("hardwaretier_id", "group_id"))
_SHOWN_TIERS = Prepared(0, lambda: HardwareTier.objects.filter(is_visible=True, is_archived=False))


def kinds_for(user: User) -> set[str]:
    """Return the kinds for which the user has an environment to launch, in one query."""
    if not user.is_active:
        return set()
    offered = Environment.objects.filter(is_visible=True, is_archived=False).order_by()
    return {kind for kind in offered.values_list("kind", flat=True).distinct() if kind in Kind.values}


class Offers:
    """What the user may choose for launches, each list read once for a page and what is sent from it."""

    def __init__(self, user: User) -> None:
        self._user = user
        self.environments: Callable[[str], list[Environment]] = cache(self._environments)

    @cached_property
    def projects(self) -> list[Project]:
        return _PROJECTS(self._user.pk) if self._user.is_active else []

    def tiers(self, kind: str, framework: str = "") -> list[HardwareTier]:
        """Return those for `kind`; for clusters of the framework, or of any framework when it is ""."""
        return [tier for tier in self._tiers if _is_for(tier.kinds, kind, framework)]

    @cached_property
    def _tiers(self) -> list[HardwareTier]:
        # All: there are a few dozen at most, and SQLite cannot search in JSON lists.
        closed = _closed_to(self._user) if self._user.is_active else set()
        return [tier for tier in _SHOWN_TIERS() if tier.pk not in closed] if self._user.is_active else []

    def _environments(self, kind: str) -> list[Environment]:
        return _ENVIRONMENTS(kind) if self._user.is_active and kind in Kind.values else []


def wrong_tier(
    user: User, stored: HardwareTier | None, kind: str, framework: str = "", *, path: str = "tier"
) -> Problem | None:
    """Why the user may not choose the tier, given as it is stored, or None when it is not there; None when he may."""
    if not user.is_active:
        return None
    if stored is None or stored.is_archived or not stored.is_visible:
        return Problem(path, _("This hardware tier is no longer available; choose another."), "not_offered")
    if not _is_for(stored.kinds, kind, framework):
        sentence, label = _("{name} is not for this kind of work; choose another tier."), ""
        if framework in Framework.values:
            label = Framework(framework).label
            sentence = _("{name} is not for {framework} clusters; choose another tier.")
        return Problem(path, sentence.format(name=stored.name, framework=label), "kind")
    if stored.pk in _closed_to(user):
        sentence = _("{name} is limited to certain groups; choose another, or ask your admin.", name=stored.name)
        return Problem(path, sentence, "group")
    return None


def _closed_to(user: User) -> set[str]:
    kept = _KEPT_FOR_GROUPS()
    mine = set(user.groups.values_list("pk", flat=True)) if kept else set()
    return {tier for tier, _ in kept} - {tier for tier, group in kept if group in mine}


def _is_for(kinds: list[str], kind: str, framework: str) -> bool:
    """Return True when a tier's `kinds` (kinds of executions, and frameworks for clusters of these only; empty means all) allow it."""
    frameworks = {framework} if framework else set(Framework.values)
    wanted = {kind} | (frameworks if kind == Kind.CLUSTER else set())
    return not kinds or not wanted.isdisjoint(kinds)


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What its owner typed about a job, beside its tier and environment. A time is in seconds; None is no limit."""

    command: str = ""
    variables: dict[str, str] = {}
    folder: str = ""
    files_at: str = ""  # the branch or commit of files in Git to begin with; "" for main
    page_port: int | None = None  # where the program serves a web page while it runs; None for the environment's
    timeout_seconds: int | None = None
    retries: int = 0
    retry_seconds: int = 30
    at_once: int | None = None


DEFAULTS = JobSettings()


@dataclass(frozen=True, slots=True)
class RunAttempt:
    """An attempt to launch; `number` counts those of its run from 1."""

    run: JobRun
    number: int


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A request as stored, with its rows by id. A field that another release did not store has a default; unknown fields are ignored."""

    framework: str
    environment: str
    head_tier: str
    tier: str
    workers_minimum: int = 1
    workers_maximum: int = 1
    autoscale: bool = False
    target_cpu: int = 0
    target_memory: int = 0
    on_demand: bool = False
    local_storage: str = ""


@dataclass(frozen=True)
class ClusterRequest:
    """The form's values. A target of 0 leaves that metric out; without `autoscale` there are always `workers_minimum` workers."""

    framework: str
    environment: Environment
    head_tier: HardwareTier
    tier: HardwareTier
    workers_minimum: int
    workers_maximum: int
    autoscale: bool
    target_cpu: int
    target_memory: int
    on_demand: bool
    local_storage: str

    @property
    def most_workers(self) -> int:
        return self.workers_maximum if self.autoscale else self.workers_minimum

    @property
    def slots(self) -> int:
        """The slots that it needs: one for the head, and one for each worker that it may grow to."""
        return 1 + self.most_workers

    @property
    def as_stored(self) -> dict[str, Any]:
        """The request as JSON, with its rows by id; `grid.clusters.request.read_cluster_settings` reads it back."""
        rows = {"environment": self.environment.pk, "head_tier": self.head_tier.pk, "tier": self.tier.pk}
        stored: dict[str, Any] = msgspec.to_builtins(ClusterSettings(**(vars(self) | rows)))
        return stored


@dataclass(frozen=True)
class LaunchRequest:
    """The form's values. For the kind cluster, `cluster` is all of it; a workspace or job with a `cluster` is launched with it.
    `workspace` is the workspace to resume; without it, launching a workspace creates one. `job` is what a job runs with, and `attempt` the
    attempt of a run that exists; without it, launching a job creates the job and its first run. `pinned` is the environment as it was at
    an earlier launch, which is used in place of what is stored of it now; whether it may be launched is asked of what is stored. `details`
    is what a kind asks beside these, as JSON has it."""

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
    details: Mapping[str, Any] = field(default_factory=dict)


class StoredRows:
    """The rows that a request points to, each read once, and not before it is needed: what is frozen is what was checked."""

    def __init__(self, request: LaunchRequest) -> None:
        self._request = request

    @cached_property
    def project(self) -> Project | None:
        """None when its owner may not launch in it."""
        is_active = self._request.owner.is_active
        rows = _PROJECT(self._request.owner.pk, self._request.project.pk) if is_active else ()
        return next(iter(rows), None)

    @cached_property
    def environment(self) -> Environment | None:
        return next(iter(_ENVIRONMENT(self._request.environment.pk)), None)

    @cached_property
    def tier(self) -> HardwareTier | None:
        return next(iter(_TIER(self._request.tier.pk)), None)

    @cached_property
    def secrets(self) -> list[StoredSecret]:
        project = self.project
        return [] if project is None else for_launch(self._request.owner, project)
