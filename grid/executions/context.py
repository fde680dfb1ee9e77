"""The context of a reconcile: the cluster, the database, the caches and the time, and the few ways to ask them. The pod of a run and the
objects of a cluster share it, so that both conclude from absence, keep logs and read events alike."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from grid.core.errors import GridError
from grid.database.seam import Database
from grid.diagnosis.nodeshapes import NodeTemplate
from grid.executions import apply
from grid.executions.caches import AutoscalerCache, EventCache, PodCache
from grid.executions.cluster_snapshot import ClusterSnapshotLister
from grid.executions.manifests import REMOTE
from grid.executions.policykeeper import Network
from grid.executions.spec import ExecutionSpec
from grid.executions.storage import Storage
from grid.kube.api import KubeApi
from grid.kube.objects import Pod
from grid.models import State
from grid.secrets import storedsecrets


@dataclass(frozen=True, slots=True)
class LaunchTarget:
    """The data plane and namespace of executions, and the settings of their pods; `token` and `front_key` return one execution's."""

    data_plane: str
    namespace: str
    token: Callable[[str], str]
    front_key: Callable[[str], str] = field(kw_only=True)
    storage: Storage = field(default_factory=Storage)
    network: Network = field(default_factory=Network)


class NotYet(GridError):
    """Something that the objects need does not exist yet; the message tells the user what. It is retried soon."""


@dataclass(slots=True)
class Context:
    """The context of one term of leadership. `database` and `due_work` are of its `Databases`. `invalidated` are executions whose cached
    pods have turned out wrong; `claims` are the names of volume claims that were created or existed, and may be gone since; `limits` are
    the timeouts of states in seconds, as the controller has read them last, and without any nothing times out yet. `remote_files` reads
    what an execution's remote repository asks for, and `node_templates` what new nodes of pools look like, from the database."""

    api: KubeApi
    database: Database
    due_work: Database
    target: LaunchTarget
    pods: PodCache
    events: EventCache
    autoscalers: AutoscalerCache
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    invalidated: set[str] = field(default_factory=set)
    claims: set[str] = field(default_factory=set)
    limits: Mapping[State, int] = field(default_factory=dict)
    remote_files: Callable[[ExecutionSpec], Mapping[str, str]] = field(kw_only=True)
    node_templates: Callable[[], Mapping[str, NodeTemplate]] = field(kw_only=True)
    nodes: ClusterSnapshotLister = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = ClusterSnapshotLister(
            self.api,
            self.namespace,
            templates=partial(self.database, self.node_templates),
            claim_events=self.events.about_claim,
            clock=self.clock,
            monotonic=self.monotonic,
        )

    @property
    def namespace(self) -> str:
        return self.target.namespace

    async def secrets_of(self, spec: ExecutionSpec) -> Mapping[str, str]:
        """Return what the execution's Secrets hold, as `manifests.build` takes it. Raise SecretMissing."""
        secrets = dict(await self.database(storedsecrets.values_for, spec.secrets)) if spec.secrets else {}
        if spec.files and spec.files.remote:
            files = await self.database(self.remote_files, spec)
            secrets |= {f"{REMOTE}{name}": text for name, text in files.items()}
        return secrets

    def knows_pods(self, execution_id: str) -> bool:
        """Return True when the cache is synced, shows pods of this execution, and was not found wrong about them."""
        is_invalid = execution_id in self.invalidated or not self.pods.freshness(self.monotonic()).synced
        return not is_invalid and bool(self.pods.by("execution", execution_id))

    async def find_pods(self, execution_id: str) -> Sequence[Pod]:
        """Return the pods from the cache, or from the cluster itself before anything is concluded from their absence."""
        if self.knows_pods(execution_id):
            return self.pods.by("execution", execution_id)
        actual = await apply.find_pods(self.api, execution_id, namespace=self.namespace)
        self.invalidated.discard(execution_id)
        return actual
