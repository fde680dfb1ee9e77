"""The simulated runtime: containers only walk through their states, so one machine can show thousands of pods.

Nothing is executed and only empty directories are on disk; images are present at once, probes and hooks succeed, and a restart of
the cluster restarts its containers. A container's variable GRID_SIMULATE is its script, in words
separated by spaces: `ends=30` ends it after 30 seconds with `code=1` (0 if not given), `oom=20` kills it for memory
after 20 seconds, `cpu=900m` and `memory=300Mi` are its usage. Without a script, `true` ends at once.
An image whose name starts with `missing/` cannot be pulled.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from grid.core.quantity import millicores, whole
from grid.sandbox.client import Clock
from grid.sandbox.images import Image
from grid.sandbox.imagestore import ImageStore, PulledImage, PullFailed
from grid.sandbox.kubelet.runtime import Attempt, ContainerStats, Executed, Exit, PodIdentity, ResolvedContainer
from grid.sandbox.kubelet.services import first_of

VARIABLE = "GRID_SIMULATE"
MISSING = "missing/"
_COMMAND = ("simulated",)
_ENDS_AT_ONCE = ["true"]
_IMAGE_BYTES = 100 * 1024 * 1024
_TERMINATED, _KILLED = 143, 137
_KEPT_ATTEMPTS = 2
_SIGKILL = 9


@dataclass(frozen=True)
class Play:
    """A container's script. `ends` and `oom` are seconds, or None for what does not happen."""

    ends: float | None = None
    code: int = 0
    oom: float | None = None
    cpu_millicores: int = 1
    memory_bytes: int = 16 * 1024 * 1024

    @classmethod
    def read(cls, text: str) -> "Play":
        """Parse the words and ignore invalid ones, so that a typing error breaks nothing."""
        words = dict(word.partition("=")[::2] for word in text.split())
        return cls(
            ends=_seconds(words.get("ends", "")),
            code=_amount(int, words.get("code", ""), 0) % 256,
            oom=_seconds(words.get("oom", "")),
            cpu_millicores=_amount(millicores, words.get("cpu", ""), cls.cpu_millicores),
            memory_bytes=_amount(whole, words.get("memory", ""), cls.memory_bytes),
        )


@dataclass(slots=True)
class _Container:
    attempt: Attempt
    play: Play
    started: float
    over: asyncio.Event = field(default_factory=asyncio.Event)
    by_shutdown: bool = False


class SimulatedRuntime:
    """A `ContainerRuntime` of one node that executes nothing."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._pods: dict[str, PodIdentity] = {}
        self._containers: dict[tuple[str, str], list[_Container]] = {}

    @property
    def name_and_version(self) -> str:
        return "simulated://1"

    def pod_directory(self, pod_uid: str) -> Path:
        return self._directory / pod_uid

    def pods(self) -> list[PodIdentity]:
        return list(self._pods.values())

    def containers(self, pod_uid: str) -> list[str]:
        return sorted(name for uid, name in self._containers if uid == pod_uid)

    def attempts(self, pod_uid: str, container: str) -> list[Attempt]:
        return [entry.attempt for entry in self._containers.get((pod_uid, container), ())]

    def root(self, pod_uid: str, container: str, number: int) -> Path:
        place = self._directory / pod_uid / "containers" / container / str(number) / "root"
        place.mkdir(parents=True, exist_ok=True)
        return place

    async def start(self, spec: ResolvedContainer) -> Attempt:
        self._pods[spec.pod.uid] = spec.pod
        attempt = Attempt(
            spec=spec,
            id=f"{spec.pod.uid}-{spec.container}-{spec.number}",
            started_at=self._clock.now(),
            directory=self.root(spec.pod.uid, spec.container, spec.number).parent,
        )
        script = spec.env.get(VARIABLE, "ends=0" if list(spec.argv) == _ENDS_AT_ONCE else "")
        container = _Container(attempt, Play.read(script), self._clock.monotonic())
        started = self._containers.setdefault((spec.pod.uid, spec.container), [])
        started.append(container)
        del started[:-_KEPT_ATTEMPTS]
        return attempt

    async def settled(self) -> None:
        """Return at once, because a start takes no time."""

    async def ended(self, attempt: Attempt) -> Attempt:
        container = self._find(attempt)
        if container is None or container.attempt.exit is not None:
            return container.attempt if container is not None else attempt
        play = container.play
        due = [seconds for seconds in (play.ends, play.oom) if seconds is not None]
        if due:
            await self._wait(container, container.started + min(due) - self._clock.monotonic())
        else:
            await container.over.wait()
        if container.attempt.exit is None:
            is_out_of_memory = play.oom is not None and (play.ends is None or play.oom <= play.ends)
            self._exit(container, *((_KILLED, "OOMKilled", _SIGKILL) if is_out_of_memory else _own_end(play.code)))
        return container.attempt

    def terminate(self, attempt: Attempt) -> None:
        container = self._find(attempt)
        if container is not None and container.attempt.exit is None:
            self._exit(container, _TERMINATED, "Error", 0)

    def kill(self, attempt: Attempt) -> None:
        container = self._find(attempt)
        if container is not None and container.attempt.exit is None:
            self._exit(container, _KILLED, "Error", _SIGKILL)

    def mark_shutdown(self, attempt: Attempt) -> None:
        container = self._find(attempt)
        if container is not None:
            container.by_shutdown = True

    async def execute(self, attempt: Attempt, argv: Sequence[str], timeout: float) -> Executed:
        return Executed(0, "")

    def usage(self, attempt: Attempt) -> ContainerStats | None:
        container = self._find(attempt)
        if container is None or container.attempt.exit is not None:
            return None
        nanocores = container.play.cpu_millicores * 1_000_000
        seconds = self._clock.monotonic() - container.started
        return ContainerStats(int(nanocores * seconds), nanocores, container.play.memory_bytes, self._clock.now())

    def forget(self, pod_uid: str) -> None:
        self._pods.pop(pod_uid, None)
        for key in [key for key in self._containers if key[0] == pod_uid]:
            del self._containers[key]

    async def _wait(self, container: _Container, seconds: float) -> None:
        """Wait until the container is ended or the time is over."""
        slept = asyncio.ensure_future(self._clock.sleep(max(0.0, seconds)))
        await first_of(asyncio.ensure_future(container.over.wait()), slept)

    def _find(self, attempt: Attempt) -> _Container | None:
        known = self._containers.get((attempt.spec.pod.uid, attempt.spec.container), ())
        return next((container for container in known if container.attempt.id == attempt.id), None)

    def _exit(self, container: _Container, code: int, reason: str, signal: int) -> None:
        ended = Exit(code, reason, "", self._clock.now(), signal=signal, by_shutdown=container.by_shutdown)
        container.attempt = replace(container.attempt, exit=ended)
        container.over.set()


class SimulatedImages(ImageStore):
    """An image store in which every image is present, except those whose name starts with `missing/`."""

    def present(self, name: str) -> PulledImage | None:
        return None if name.startswith(MISSING) else self._simulated(name)

    def all_present(self) -> list[PulledImage]:
        return []

    async def pull(self, name: str, log: bytearray | None = None) -> tuple[PulledImage, float]:
        if name.startswith(MISSING):
            raise PullFailed(f'image "{name}" is in no registry')
        return self._simulated(name), 0.0

    def _simulated(self, name: str) -> PulledImage:
        return PulledImage(Image(name, (), "simulated", _COMMAND), self.directory, _IMAGE_BYTES)


def _own_end(code: int) -> tuple[int, str, int]:
    return code, "Completed" if code == 0 else "Error", 0


def _amount(parse: Callable[[str], int], text: str, default: int) -> int:
    try:
        return max(0, parse(text))
    except ValueError:
        return default


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
