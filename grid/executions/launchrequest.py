"""The values of a person's request to launch something, as a form or a program gives them, and the rows that it points to; no rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import msgspec
from django.db.models import Model, QuerySet

from grid.executions.launch_choices import projects_for
from grid.executions.spec import EnvironmentSpec
from grid.models import Environment, HardwareTier, JobRun, Project, StoredSecret, User, Workspace
from grid.secrets.storedsecrets import for_launch

M = TypeVar("M", bound=Model)


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


@dataclass(frozen=True)
class LaunchRequest:
    """The form's values. For the kind cluster, `cluster` is all of it; a workspace or job with a `cluster` is launched with it.

    `workspace` is the workspace to resume; without it, launching a workspace creates one. `job` is what a job runs with, and `attempt` the
    attempt of a run that exists; without it, launching a job creates the job and its first run. `pinned` is the environment as it was at
    an earlier launch, which is used in place of what is stored of it now; whether it may be launched is asked of what is stored.
    `details` is what a kind asks beside these, as JSON has it.
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
    details: Mapping[str, Any] = field(default_factory=dict)


class StoredRows:
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
