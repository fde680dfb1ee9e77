"""The interface of a framework, which Dask, Ray and Spark implement: all that Compute Grid must know to run clusters of it.

Everything except `ask` is a pure function of the cluster's frozen spec. Addresses are IPs: the head's is that of its Service, so it stays
when the head's pod is replaced.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import aiohttp
import msgspec
from yarl import URL

from grid.executions.spec import ClusterSpec, ExecutionSpec

# The kubelet's own `$(NAME)` references; `manifests` declares both in every container of a cluster.
POD_IP = "$(POD_IP)"
POD_NAME = "$(POD_NAME)"
LOCAL_PATH = "/mnt/local"  # each worker's scratch space: the local storage if asked for, an emptyDir otherwise


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a container; its name is unique in the pod, of at most 15 characters. `inside` is the container's own, if not `number`."""

    name: str
    number: int
    inside: int = 0

    @property
    def target(self) -> int:
        return self.inside or self.number


@dataclass(frozen=True, slots=True)
class Program:
    """The program of a container. Probes are Kubernetes' probe objects; `pre_stop` is a command that runs in the container before it is
    ended, within the cluster's drain time; () for none. Only `command` and `variables` may use `$(NAME)`: Kubernetes expands nothing in
    probes and hooks, so programs there read the environment."""

    command: tuple[str, ...]
    ports: tuple[Port, ...]
    readiness: Mapping[str, Any]
    variables: Mapping[str, str] = field(default_factory=dict)
    liveness: Mapping[str, Any] | None = None
    pre_stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerPod:
    name: str
    address: str


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """The load of one worker: tasks (or applications' executors, actors) that run or wait on it, and bytes of results in it."""

    tasks: int
    bytes_held: int = 0


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """The framework's own report. `workers` is keyed by pod name; one that has not joined is absent. `pending_tasks` no worker has taken.
    `wanted_workers` is how many it would like to have for all that it knows of, running work included; 0 for nothing to do."""

    workers: Mapping[str, WorkerReport]
    pending_tasks: int
    wanted_workers: int


def cluster_of(spec: ExecutionSpec) -> ClusterSpec:
    """Return the spec's cluster. Raise ValueError for another kind of execution."""
    if spec.cluster is None:
        raise ValueError(f"{spec.object_name} is not a cluster.")
    return spec.cluster


def http_probe(path: str, port: int, *, period: int, failures: int, delay: int = 0) -> dict[str, Any]:
    probe = {"httpGet": {"path": path, "port": port}, "periodSeconds": period, "timeoutSeconds": 5}
    return {**probe, "failureThreshold": failures, **({"initialDelaySeconds": delay} if delay else {})}


class FrameworkSilent(Exception):
    """The head did not answer, or not as expected; the message says which. It is polled again later."""


class FrameworkAdapter(Protocol):
    """One stateless object per framework; `grid.clusters.frameworks.framework(name)` returns it."""

    name: str
    ui_port: int
    strips_prefix: bool
    """Whether the UI wants to be served from `/`, so that the proxy takes `spec.base_url` off the path."""
    calls_back: bool
    """Whether head or workers open connections to the workspace or job that the cluster belongs to."""

    def head(self, spec: ExecutionSpec) -> Program: ...

    def worker(self, spec: ExecutionSpec, head_address: str) -> Program: ...

    def client_variables(self, spec: ExecutionSpec, head_address: str) -> Mapping[str, str]:
        """Return the environment of the workspace or job that the cluster (`spec`) is attached to; it may use `$(POD_IP)`."""
        ...

    async def ask(
        self, http: aiohttp.ClientSession, head_ip: str, spec: ExecutionSpec, workers: Sequence[WorkerPod]
    ) -> ClusterReport:
        """Return the report of the head's pod. Raise FrameworkSilent; never take longer than the session's timeout."""
        ...


LONGEST = 8 * 2**20
# What msgspec raises for a body that is not the expected JSON, is no text, or is nested too deeply.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


@lru_cache(maxsize=4096)  # reading one takes as long as a tenth of asking
def parsed(url: str) -> URL:
    """Return the URL as aiohttp takes it. Not for URLs of which user code chooses a part: they could be of any length and number."""
    return URL(url)


async def body_of(response: aiohttp.ClientResponse, *, too_long: str, longest: int = LONGEST) -> bytes:
    """Return a head's whole answer; the head is user code, so it may send without end. Raise FrameworkSilent with the sentence `too_long`,
    which names the MiB, when it is longer than `longest` bytes, and aiohttp's own errors. Callers pass `allow_redirects=False`, so that
    nobody leads the controller to addresses that only the controller can reach."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > longest:
            raise FrameworkSilent(too_long.format(size=longest // 2**20))
    return bytes(body)
