"""The spec of an execution, as its tier, environment and project were at launch, stored as JSON in `Execution.spec`. Manifests are built
from it alone: editing a tier changes nothing that is launched, and a retry after months builds the same objects."""

from collections.abc import Iterable, Mapping
from copy import copy
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from django.conf import settings

from grid.core.decoding import prepared
from grid.core.gitnames import COMMIT, MAIN, repository_name
from grid.core.quantity import millicores, whole
from grid.core.translation import gettext as _
from grid.executions.front import AuthProxySpec, workspace_origins
from grid.executions.launchsettings import LaunchSettings
from grid.executions.ledger import LedgerRecord, RunningCluster
from grid.executions.prices import price_beside
from grid.models import Environment, Execution, HardwareTier, Project, RemoteRepository, RunFiles, StoredSecret
from grid.models.environment import Kind

S = TypeVar("S", bound=msgspec.Struct)
RESULTS = "results"  # the folder, in a job's working folder, whose content is kept for each run


class TierSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The requested tier; limits are filled in."""

    id: str
    name: str
    node_pool: str
    cores: str
    cores_limit: str
    memory: str
    memory_limit: str
    gpus: int = 0
    gpu_resource: str = ""
    shared_memory: str = ""
    ephemeral_storage: str = ""  # "" in executions launched before there were limits
    cost_per_hour: str = "0"
    spot_allowed: bool = False
    tolerations: tuple[dict[str, Any], ...] = ()
    extra_labels: dict[str, str] = {}
    extra_annotations: dict[str, str] = {}


class EnvironmentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The requested program."""

    id: str
    name: str
    image: str
    command: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    image_pull_secret: str = ""
    allows_service_workers: bool = False
    start_path: str = ""  # where Open leads to, below the address; "" for its root
    readiness_path: str = ""  # what answers once it is ready, below the address; "" for a port that accepts connections
    revision: int = 0  # the environment's, which the image is; 0 in executions launched before there were any


class ProjectSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The project, with the volume of its files."""

    id: str
    volume_name: str
    volume_size: str


class FilesSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Project files in Git: the repository in the volume of all repositories, where to begin, and the executor that fetches and saves
    them. Without a branch what changes goes to a branch named after the execution."""

    claim: str
    repository: str
    image: str
    cores: str
    memory: str
    branch: str = MAIN
    commit: str = ""
    # Of a remote repository: the branch where `branch` is gone, as nobody has asked for that one; "" for none.
    fallback: str = ""
    # To which the repository on the volume may grow, which beside a remote one has results; 0: no bound.
    largest_gibibytes: int = 0
    remote: str = ""  # the URL of a remote repository; what is kept goes to the volume all the same
    results: str = ""  # of a job: the folder, below the files, whose content is kept for each run
    results_bytes: int = 0
    save_seconds: int = 900  # at most, for saving, within the pod's grace period; a pod that has saved is gone at once


class HomeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The volume of a person's own files in a project."""

    volume_name: str
    volume_size: str


class SecretSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A stored secret that its programs get, as a variable or a file of that name; the value is read when its objects are created."""

    id: int
    name: str
    is_file: bool = False


class ScalingSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How the number of workers follows the load, as the central configuration said at launch. Targets are in percent of the requests,
    averaged over the workers; 0 leaves that metric out. Policies are the HorizontalPodAutoscaler's `behavior`."""

    autoscale: bool = True
    target_cpu: int = 80
    target_memory: int = 80
    on_demand: bool = False  # also by the framework's demand
    up_workers: int = 4
    up_percent: int = 100
    up_period_seconds: int = 15
    up_stabilisation_seconds: int = 0
    down_percent: int = 100
    down_period_seconds: int = 15
    down_stabilisation_seconds: int = 300


class ClusterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An on-demand cluster; the execution's own tier is its workers'. `parse_spec` puts the numbers of workers requested now."""

    framework: str
    version: str
    head_tier: TierSpec
    workers_minimum: int
    workers_maximum: int
    scaling: ScalingSpec = ScalingSpec()
    local_storage: str = ""  # for each worker, such as 20Gi; "" for only the node's scratch space
    drain_seconds: int = 60
    attached_to: str = ""  # id of the workspace or job that it ends with


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of a run: what the job says, and the run's own parameters. Without a command the environment's runs."""

    job: str
    run: int  # the run's number
    attempt: int = 1
    command: str = ""
    variables: dict[str, str] = {}
    parameters: dict[str, str] = {}
    folder: str = ""  # below the project's files
    files_at: str = ""  # where files in Git begin: a branch or commit; "" for main
    page_port: int = 0  # where it serves a web page; 0 for the environment's port
    timeout_seconds: int | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its program; a parameter replaces a variable of the same name."""
        return {**self.variables, **self.parameters}


class ExecutionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `grid.executions.manifests` needs to know. `port` is 0 for executions without a web page; otherwise `address` is the
    URL of its root for browsers, ending with a slash."""

    id: str
    kind: str
    owner: str
    project: ProjectSpec
    tier: TierSpec
    environment: EnvironmentSpec
    title: str = ""
    port: int = 0
    workspace: str = ""  # the workspace that it runs; "" for none, and in executions launched before it was stored
    files: FilesSpec | None = None  # None where the project's files are a volume, and for clusters
    front: AuthProxySpec | None = None  # None without a port, where fronts are off, and before there were any
    home: HomeSpec | None = None  # None for clusters, whose pods have a HOME that is deleted with them
    address: str = ""
    secrets: tuple[SecretSpec, ...] = ()
    cluster: ClusterSpec | None = None  # only for the kind cluster
    job: JobSpec | None = None  # None for other kinds, and for jobs launched before they had runs
    details: dict[str, Any] = {}  # what only its kind reads

    @property
    def object_name(self) -> str:
        return f"{self.kind}-{self.id}"

    @property
    def price_beside(self) -> Decimal:
        """What nginx and the executor add to its tier's price of an hour."""
        tier = self.tier
        return price_beside(Decimal(tier.cost_per_hour), tier, filter(None, (self.front, self.files)), gpus=tier.gpus)

    @property
    def base_url(self) -> str:
        """The path under which the proxy serves it; the program inside is told to expect it."""
        return base_url(self.address)

    def with_workers(self, minimum: int, maximum: int) -> "ExecutionSpec":
        """Return the same cluster with other numbers of workers."""
        assert self.cluster is not None, "only clusters have workers"
        cluster = msgspec.structs.replace(self.cluster, workers_minimum=minimum, workers_maximum=maximum)
        return msgspec.structs.replace(self, cluster=cluster)


def serialize_spec(
    execution: Execution,
    *,
    central: LaunchSettings,
    secrets: Iterable[StoredSecret] = (),
    cluster: ClusterSpec | None = None,
    job: JobSpec | None = None,
    environment: EnvironmentSpec | None = None,
    details: Mapping[str, Any] = MappingProxyType({}),
    has_front: bool = True,
) -> None:
    """Write into a new execution what its launch freezes, taken from the rows that it now points to: the spec as JSON, and the columns
    that say of it what SQL sums and lists show. `central` is the central configuration now; `environment` is what an
    earlier launch has frozen of it, to be used again, and without `has_front` nginx never stands before its web page."""
    port = (job.page_port if job else 0) or execution.environment.port or 0
    # A user's id is never given to another, a name may be; the id is the part after the last dash, so that no two pairs have one name.
    name = f"home-{execution.project_id}-{execution.owner_id}"
    home = HomeSpec(volume_name=name, volume_size=f"{central.home_gibibytes}Gi")
    spec = ExecutionSpec(
        id=execution.pk,
        kind=execution.kind,
        owner=execution.owner.get_username(),
        title=execution.title,
        # A new workspace gets the id of its first execution.
        workspace=(execution.workspace_id or execution.pk) if execution.kind == Kind.WORKSPACE else "",
        port=port,
        address=workspace_origins().address(execution.pk),
        project=_of_row(ProjectSpec, execution.project),
        files=None if cluster else _files(execution, job, central),
        front=central.front_of(execution, port) if has_front and not cluster else None,
        home=None if cluster else home,
        tier=tier_spec(execution.tier),
        environment=environment or environment_spec(execution.environment),
        secrets=tuple(_of_row(SecretSpec, secret) for secret in secrets),
        cluster=cluster,
        job=job,
        details=dict(details),
    )
    execution.spec = msgspec.to_builtins(spec)
    for name, value in {"data_plane_id": execution.tier.data_plane_id, **columns_of(spec)}.items():
        setattr(execution, name, value)


def columns_of(spec: ExecutionSpec) -> dict[str, Any]:
    """Return the columns of a new execution that repeat its spec."""
    columns, cluster = pod_columns(spec.tier), spec.cluster
    if cluster is None:
        return {**columns, "price_per_hour": columns["price_per_hour"] + spec.price_beside}
    of_head = {f"head_{name}": value for name, value in pod_columns(cluster.head_tier).items()}
    own = {name: getattr(cluster, name) for name in ("framework", "workers_minimum", "workers_maximum")}
    return {**columns, **of_head, **own}


def pod_columns(tier: TierSpec) -> dict[str, Any]:
    """Return the requests and the price of one pod of the tier."""
    return {
        "node_pool": tier.node_pool,
        "millicores": millicores(tier.cores),
        "memory_bytes": whole(tier.memory),
        "gpus": tier.gpus,
        "gpu_resource": tier.gpu_resource if tier.gpus else "",
        "price_per_hour": Decimal(tier.cost_per_hour),
    }


@lru_cache(maxsize=4096)  # of each running cluster with every look
def base_url(address: str) -> str:
    """Return the path of an execution's address: `/`, or `/w/<id>/` where all share one origin."""
    return urlsplit(address).path or "/"


def parse_spec(stored: Execution | LedgerRecord | RunningCluster) -> ExecutionSpec:
    """Return the spec of the launch, with the numbers of workers requested now. Raise ValueError when the stored JSON is none."""
    try:
        spec = msgspec.convert(stored.spec, prepared(ExecutionSpec))
    except msgspec.ValidationError as error:
        raise ValueError(_("What was stored at launch cannot be read: {error}.", error=error)) from error
    return spec.with_workers(stored.workers_minimum, stored.workers_maximum) if spec.cluster else spec


def launched_revision(execution: Execution) -> int:
    """Return the number of the environment's revision that an execution is launched with; 0 for none."""
    return int(execution.spec["environment"]["revision"])


def _of_row(kind: type[S], row: object, **own: object) -> S:
    """Return the part of a spec whose fields are the row's columns of those names, but for its `own`."""
    columns = {name: getattr(row, name) for name in kind.__struct_fields__ if name not in own}
    frozen = {name: tuple(value) if isinstance(value, list) else copy(value) for name, value in columns.items()}
    return kind(**frozen, **own)


def tier_spec(tier: HardwareTier) -> TierSpec:
    limits = {"cores_limit": tier.effective_cores_limit, "memory_limit": tier.effective_memory_limit}
    return _of_row(TierSpec, tier, **limits, cost_per_hour=str(tier.cost_per_hour))


def environment_spec(environment: Environment) -> EnvironmentSpec:
    """Return the environment as it is now, with its current revision."""
    return _of_row(EnvironmentSpec, environment, revision=environment.current_revision)


def _files(execution: Execution, job: JobSpec | None, central: LaunchSettings) -> FilesSpec | None:
    """Return where its files in Git begin: as asked, or where a resumed workspace left them, which after a conflict is its own branch."""
    project = execution.project
    if not project.is_in_git:
        return None
    asked = job.files_at if job else ""
    is_commit = bool(COMMIT.fullmatch(asked))
    remote = RemoteRepository.objects.filter(project=project).first() if project.files == Project.Files.REMOTE else None
    # Nothing is launched without a remote repository (grid.executions.request); if it were, no other one would be used.
    url = (remote.url if remote else "none") if project.files == Project.Files.REMOTE else ""
    usual, left = remote.branch if remote else MAIN, "" if asked else _branch_left(execution, url)
    return FilesSpec(
        branch="" if is_commit else asked or left or usual,
        fallback=usual if remote and left else "",
        commit=asked if is_commit else "",
        claim=settings.REPOSITORIES_CLAIM,
        repository=repository_name(project.pk),
        largest_gibibytes=central.repository_gibibytes,
        remote=url,
        image=settings.EXECUTOR_IMAGE,
        cores=settings.EXECUTOR_CORES,
        memory=settings.EXECUTOR_MEMORY,
        results="/".join(filter(None, (job.folder, RESULTS))) if job else "",
        results_bytes=central.results_mebibytes * 2**20 if job else 0,
    )


def _branch_left(execution: Execution, url: str) -> str:
    """Return where a workspace that is resumed has left its files, in this repository and no other; "" for nowhere."""
    if not execution.workspace_id:
        return ""
    lives = RunFiles.objects.filter(execution__workspace=execution.workspace_id).exclude(branch="")
    branches = lives.order_by("-execution__requested_at").values_list("branch", "execution__spec__files__remote")
    return next((branch for branch, remote in branches if (remote or "") == url), "")
