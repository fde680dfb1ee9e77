"""What one look at an execution works with: the cluster, the database, the caches and the time, and the few ways to ask them.

Shared by the pod of a run and the objects of a cluster, so that both conclude from absence, keep logs and read events alike.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ParamSpec, Protocol, TypeVar

from grid.errors import ClusterUnavailable, GridError
from grid.kube.api import KubeApi
from grid.kube.objects import Pod
from grid.launch import apply
from grid.launch.caches import AutoscalerCache, EventCache, PodCache
from grid.launch.manifests import CONTAINER
from grid.launch.policykeeper import Network
from grid.launch.storage import Storage
from grid.models import State

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

LOG_BYTES = 64 * 1024
LOG_LINES = 5000
LOG_SECONDS = 10.0


class Database(Protocol):
    """Runs a synchronous function of `ledger` or `admission`, with its own connection to the database."""

    def __call__(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True)
class LaunchTarget:
    """Where executions live in the cluster, which is a data plane, and how their program is reached."""

    data_plane: str
    namespace: str
    token: Callable[[str], str]
    storage: Storage = field(default_factory=Storage)
    network: Network = field(default_factory=Network)


class NotYet(GridError):
    """Something that the objects need is not there yet; the message tells the user what. Tried again soon."""


@dataclass(slots=True)
class Context:
    """One per term of leadership. `invalidated` are executions whose cached pods have turned out wrong; `limits` is after how many
    seconds a state is given up, as the controller has read it last; without any, nothing is given up yet."""

    api: KubeApi
    database: Database
    target: LaunchTarget
    pods: PodCache
    events: EventCache
    autoscalers: AutoscalerCache
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    invalidated: set[str] = field(default_factory=set)
    limits: Mapping[State, int] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        return self.target.namespace

    def knows_pods(self, execution_id: str) -> bool:
        """Whether the cache can be believed: it follows the cluster, shows pods of this execution, and was not found wrong about them."""
        is_invalid = execution_id in self.invalidated or not self.pods.freshness(self.monotonic()).synced
        return not is_invalid and bool(self.pods.by("execution", execution_id))

    async def find_pods(self, execution_id: str) -> Sequence[Pod]:
        """From the cache, or from the cluster itself before anything is concluded from their absence."""
        if self.knows_pods(execution_id):
            return self.pods.by("execution", execution_id)
        actual = await apply.find_pods(self.api, execution_id, namespace=self.namespace)
        self.invalidated.discard(execution_id)
        return actual

    async def log_of(self, pod: Pod) -> str:
        """The end of the log, as far as there is one. An unreachable cluster is an error, so that it is tried again."""
        kept = bytearray()
        try:
            async with asyncio.timeout(LOG_SECONDS):
                meta = pod.metadata
                lines = self.api.logs(meta.name, namespace=meta.namespace, container=CONTAINER, tail_lines=LOG_LINES)
                async for chunk in lines:
                    kept += chunk
                    del kept[:-LOG_BYTES]
        except ClusterUnavailable:
            if pod.metadata.deletion_timestamp is None:
                raise
        except (GridError, TimeoutError) as error:
            # The container never ran, or its node is gone: what we have is all there will be.
            logger.info("log not kept pod=%s reason=%s", pod.metadata.key, str(error) or "no answer in time")
        return kept.decode(errors="replace").replace("\x00", "")
