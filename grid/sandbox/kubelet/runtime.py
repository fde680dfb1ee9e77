"""The interface between a kubelet and a container runtime, and the values that they exchange.

A container of a pod is started again and again; each start is an *attempt*, numbered from 0, which a runtime describes by an
`Attempt`. The kubelet keeps no list of its own: after a restart it asks the runtime.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class PodIdentity:
    uid: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class ResolvedContainer:
    """One attempt, ready to start: every reference is resolved."""

    pod: PodIdentity
    container: str
    number: int
    image: str
    image_id: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    memory_limit: int = 0  # bytes; 0 for none
    mounts: Mapping[str, str] = field(default_factory=dict)  # mount path -> real path
    service_places: Mapping[str, str] = field(default_factory=dict)  # cluster IP -> address on this machine


START_ERROR = "StartError"
"""The reason of the exit of an attempt that could not be started."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of an attempt. `by_shutdown`: the cluster was stopped, the program did not end by itself."""

    code: int
    reason: str
    message: str
    finished_at: datetime
    signal: int = 0
    by_shutdown: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt as it is now. `exit` is None while it runs."""

    spec: ResolvedContainer
    id: str
    started_at: datetime
    directory: Path
    exit: Exit | None = None

    @property
    def running(self) -> bool:
        return self.exit is None


@dataclass(frozen=True, slots=True)
class Executed:
    """The result of a command that was run beside a container; `code` is None when it took too long."""

    code: int | None
    output: str


@dataclass(frozen=True, slots=True)
class ContainerStats:
    """CPU time since the container started, the present CPU rate and memory, and the bytes that went to and came from disks since its start
    where they are measured."""

    cpu_nanoseconds: int
    cpu_nanocores: int
    memory_bytes: int
    at: datetime
    read_bytes: int | None = None
    written_bytes: int | None = None


class ContainerRuntime(Protocol):
    """The containers of one node. Stopping is only requested; `ended` returns when it has happened."""

    @property
    def name_and_version(self) -> str: ...

    def pods(self) -> list[PodIdentity]:
        """Return all pods that have files here."""
        ...

    def containers(self, pod_uid: str) -> list[str]:
        """Return the names of a pod's containers that were ever started."""
        ...

    def attempts(self, pod_uid: str, container: str) -> list[Attempt]:
        """Return the last attempts, oldest first; at most two are kept."""
        ...

    def root(self, pod_uid: str, container: str, number: int) -> Path:
        """Return the private directory of an attempt: created when needed, empty at first, deleted with the attempt."""
        ...

    async def start(self, spec: ResolvedContainer) -> Attempt:
        """Start an attempt; one that could not be started is returned with its exit, reason StartError."""
        ...

    async def settled(self) -> None:
        """Return once no start is half-way, including those whose caller was cancelled."""
        ...

    async def ended(self, attempt: Attempt) -> Attempt:
        """Return the attempt with its exit once all its processes are gone."""
        ...

    def terminate(self, attempt: Attempt) -> None:
        """Ask the program to end."""
        ...

    def kill(self, attempt: Attempt) -> None:
        """Kill all processes of the attempt at once."""
        ...

    def mark_shutdown(self, attempt: Attempt) -> None:
        """Count the attempt's end from now on as caused by the cluster's shutdown."""
        ...

    async def execute(self, attempt: Attempt, argv: Sequence[str], timeout: float) -> Executed:
        """Run a command in the container's environment and directory."""
        ...

    def usage(self, attempt: Attempt) -> ContainerStats | None: ...

    def pod_directory(self, pod_uid: str) -> Path: ...

    def forget(self, pod_uid: str) -> None:
        """Remove the files of a pod whose attempts have all ended."""
        ...
