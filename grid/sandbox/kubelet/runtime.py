"""What a kubelet asks of a container runtime, and the values that go between them.

A container of a pod is started again and again; each start is an *attempt*, numbered from 0, and what a runtime knows of it is an
`Attempt`. The kubelet keeps no list of its own: after a restart it asks the runtime what there is.
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
    """One attempt, ready to start: nothing in it needs looking up any more."""

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
    service_places: Mapping[str, str] = field(default_factory=dict)  # cluster IP -> where its Service really answers


START_ERROR = "StartError"
"""The reason of an exit that never was a start."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How an attempt ended. `by_shutdown`: the cluster was stopped, the program did not end by itself."""

    code: int
    reason: str
    message: str
    finished_at: datetime
    signal: int = 0
    by_shutdown: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is known of one attempt now. `exit` is None while it runs."""

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
    """A command that was run beside a container; `code` is None when it took too long."""

    code: int | None
    output: str


@dataclass(frozen=True, slots=True)
class ContainerStats:
    """Since the container started, and now."""

    cpu_nanoseconds: int
    cpu_nanocores: int
    memory_bytes: int
    at: datetime


class ContainerRuntime(Protocol):
    """Containers of one node. Stopping is asked for; that it happened is told by `ended`."""

    @property
    def name_and_version(self) -> str: ...

    def pods(self) -> list[PodIdentity]:
        """All pods that have left something here."""
        ...

    def containers(self, pod_uid: str) -> list[str]:
        """Names of the containers of a pod that were started once."""
        ...

    def attempts(self, pod_uid: str, container: str) -> list[Attempt]:
        """The last attempts, oldest first; at most two are kept."""
        ...

    def root(self, pod_uid: str, container: str, number: int) -> Path:
        """The private directory of an attempt: made at need, empty at first, gone with the attempt."""
        ...

    async def start(self, spec: ResolvedContainer) -> Attempt:
        """Starts it; an attempt that could not be started comes back with its exit, reason StartError."""
        ...

    async def settled(self) -> None:
        """Returns once no start is half-way any more, also one whose caller was cancelled."""
        ...

    async def ended(self, attempt: Attempt) -> Attempt:
        """Returns the attempt with its exit once there is nothing left of it."""
        ...

    def terminate(self, attempt: Attempt) -> None:
        """Asks the program to end."""
        ...

    def kill(self, attempt: Attempt) -> None:
        """Ends everything of it at once."""
        ...

    def mark_shutdown(self, attempt: Attempt) -> None:
        """From now on its end counts as caused by the cluster's own."""
        ...

    async def execute(self, attempt: Attempt, argv: Sequence[str], timeout: float) -> Executed:
        """Runs a command in the container's environment and directory."""
        ...

    def usage(self, attempt: Attempt) -> ContainerStats | None: ...

    def pod_directory(self, pod_uid: str) -> Path: ...

    def forget(self, pod_uid: str) -> None:
        """Removes what a pod left behind; all its attempts have ended."""
        ...
