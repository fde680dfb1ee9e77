"""The process runtime: a container is a real process of this machine, supervised by a shim of its own.

The state of containers is in files under the node's directory, where a restarted kubelet finds it:

    <pod uid>/pod.json                          its namespace and name
    <pod uid>/containers/<name>/<attempt>/      spec.json, started.json, exit.json, log/, root/

An attempt whose shim is alive is running; one whose shim is gone without an `exit.json` was cut off (the machine rebooted, or
the shim was killed). Nothing is isolated: a container may do whatever the user who started the cluster may do.
"""

import asyncio
import dataclasses
import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from grid.core.regexes import Expression
from grid.sandbox import programs
from grid.sandbox.client import parse_time
from grid.sandbox.kubelet import shim as shim_program, sockets
from grid.sandbox.kubelet.processes import Process, with_variable
from grid.sandbox.kubelet.runtime import Attempt, ContainerStats, Executed, Exit, PodIdentity, ResolvedContainer
from grid.sandbox.kubelet.sampler import Sampler

logger = logging.getLogger(__name__)

# In the environment of every process of a container, so that the processes of a killed shim can be found.
MARKER_VARIABLE = "GRID_SANDBOX_CONTAINER"
_LOG_BYTES, _LOG_FILES = 10 * 1024 * 1024, 3
_NICE = 15  # a contended core is the cluster's for 29 of 30 parts
_KEPT_ATTEMPTS = 2
_KILLED, _UNKNOWN = 137, 255
_LONGEST_OUTPUT = 10 * 1024
_NAME = Expression(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


class ProcessRuntime:
    """The containers of one node, under one directory."""

    def __init__(self, directory: Path, sampler: Sampler) -> None:
        self._directory = directory
        self._sampler = sampler
        self._launching: set[asyncio.Future[int]] = set()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def name_and_version(self) -> str:
        return "process://1"

    def pod_directory(self, pod_uid: str) -> Path:
        return self._directory / checked_name(pod_uid)

    def pods(self) -> list[PodIdentity]:
        identities = []
        for entry in self._directory.iterdir():
            identity = _read(entry / "pod.json")
            if identity is not None:
                identities.append(PodIdentity(entry.name, identity["namespace"], identity["name"]))
        return identities

    def containers(self, pod_uid: str) -> list[str]:
        place = self.pod_directory(pod_uid) / "containers"
        return sorted(entry.name for entry in place.iterdir()) if place.is_dir() else []

    def attempts(self, pod_uid: str, container: str) -> list[Attempt]:
        place = self._container(pod_uid, container)
        if not place.is_dir():
            return []
        numbers = sorted(int(entry.name) for entry in place.iterdir() if entry.name.isdigit())
        attempts = (self._load(place / str(number)) for number in numbers[-_KEPT_ATTEMPTS:])
        return [attempt for attempt in attempts if attempt is not None]

    def root(self, pod_uid: str, container: str, number: int) -> Path:
        place = self._container(pod_uid, container) / str(number) / "root"
        (place / "tmp").mkdir(parents=True, exist_ok=True)
        return place

    async def start(self, spec: ResolvedContainer) -> Attempt:
        """Start an attempt; the launcher returns once the command runs, so the result is already true."""
        pod = self.pod_directory(spec.pod.uid)
        place = self._container(spec.pod.uid, spec.container) / str(spec.number)
        (place / "log").mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (pod / "pod.json").exists():
            _write(pod / "pod.json", {"namespace": spec.pod.namespace, "name": spec.pod.name})
        self._drop_older(place)
        _write(place / "spec.json", _as_file(spec))
        with (place / "shim.log").open("wb") as errors:
            launcher = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", shim_program.__file__, str(place)),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=errors,
                env={},
                cwd="/",
            )
        # Never cancelled half-way: from here on the attempt exists, even if the caller is cancelled.
        launched = asyncio.ensure_future(launcher.wait())
        self._launching.add(launched)
        launched.add_done_callback(self._launching.discard)
        await asyncio.shield(launched)
        attempt = self._load(place)
        if attempt is None:
            text = (place / "shim.log").read_text(errors="replace").strip()
            problem = f"the container's watcher ended at once: {text.splitlines()[-1] if text else 'no reason given'}"
            _write_exit(place, code=128, reason="StartError", message=problem)
            attempt = self._load(place)
            if attempt is None:
                raise OSError(f"{place} cannot be read")
        return attempt

    async def settled(self) -> None:
        await asyncio.gather(*self._launching, return_exceptions=True)

    async def ended(self, attempt: Attempt) -> Attempt:
        place = attempt.directory
        if attempt.exit is not None:
            return attempt
        watcher = _process(place, "shim")
        if watcher is not None:
            self._measure(attempt, watcher)
            try:
                await watcher.gone()
            finally:
                self._sampler.release(str(place))
        if not (place / "exit.json").exists():
            await asyncio.to_thread(self._sweep, attempt)
        return self._load(place) or attempt

    def terminate(self, attempt: Attempt) -> None:
        watcher = _process(attempt.directory, "shim")
        if watcher is not None:
            watcher.signal(signal.SIGTERM)

    def kill(self, attempt: Attempt) -> None:
        watcher = _process(attempt.directory, "shim")
        if watcher is None or not watcher.signal(signal.SIGUSR1):
            self._sweep(attempt)

    def mark_shutdown(self, attempt: Attempt) -> None:
        (attempt.directory / "shutdown").touch()

    async def execute(self, attempt: Attempt, argv: Sequence[str], timeout: float) -> Executed:
        spec = attempt.spec
        try:
            done = await programs.run(argv, env=spec.env, cwd=spec.cwd, timeout=timeout, longest=_LONGEST_OUTPUT)
        except TimeoutError:
            return Executed(None, "")
        except (OSError, ValueError) as error:
            return Executed(126, f'exec: "{argv[0] if argv else ""}": {getattr(error, "strerror", None) or error}')
        return Executed(done.code if done.code >= 0 else 128 - done.code, done.output.decode(errors="replace"))

    def usage(self, attempt: Attempt) -> ContainerStats | None:
        return self._sampler.usage(str(attempt.directory))

    def forget(self, pod_uid: str) -> None:
        sockets.remove(self.pod_directory(pod_uid) / "volumes")
        shutil.rmtree(self.pod_directory(pod_uid), ignore_errors=True)

    def _container(self, pod_uid: str, container: str) -> Path:
        return self.pod_directory(pod_uid) / "containers" / checked_name(container)

    def _drop_older(self, place: Path) -> None:
        """Remove older attempts' files outside of volumes; the previous attempt's log is kept for `logs --previous`."""
        for entry in place.parent.iterdir():
            if entry.name.isdigit() and int(entry.name) < int(place.name):
                older = int(entry.name) <= int(place.name) - _KEPT_ATTEMPTS
                shutil.rmtree(entry if older else entry / "root", ignore_errors=True)

    def _measure(self, attempt: Attempt, watcher: Process) -> None:
        def over_limit(used: int) -> None:
            logger.info(
                "container pod=%s/%s name=%s uses %d of %d bytes and is killed",
                *(attempt.spec.pod.namespace, attempt.spec.pod.name, attempt.spec.container),
                *(used, attempt.spec.memory_limit),
            )
            (attempt.directory / "oom").touch()
            self.kill(attempt)

        self._sampler.watch(str(attempt.directory), watcher, limit=attempt.spec.memory_limit, over_limit=over_limit)

    def _sweep(self, attempt: Attempt) -> None:
        """Kill the processes that a dead shim has left, and write the attempt's exit in its place."""
        same_boot = False
        watcher = _process(attempt.directory, "shim")
        if watcher is not None and watcher.boot_id == shim_program.boot_id():
            same_boot = True
            for process in with_variable(MARKER_VARIABLE, attempt.id):
                process.signal(signal.SIGKILL)
        if not (attempt.directory / "exit.json").exists():
            code, why = (_KILLED, "its watcher was killed") if same_boot else (_UNKNOWN, "the machine was restarted")
            _write_exit(attempt.directory, code=code, reason="Unknown" if code == _UNKNOWN else "", message=why)

    def _load(self, place: Path) -> Attempt | None:
        """Return the attempt from its files. One that never started (the kubelet was killed just then) is None."""
        raw = _read(place / "spec.json")
        started, exit_ = _read(place / "started.json"), _read(place / "exit.json")
        if raw is None or (started is None and exit_ is None):
            return None
        spec = _from_file(raw)
        when = parse_time((started or {}).get("started_at") or (exit_ or {}).get("finished_at")) or datetime.now(UTC)
        attempt = Attempt(spec, container_id(spec), when, place)
        if exit_ is None:
            return attempt
        return Attempt(spec, attempt.id, when, place, _exit(place, exit_))


def checked_name(text: str) -> str:
    """Return a name that becomes part of a path. Raise ValueError if it is unsafe, in case the API server did not check it."""
    if not _NAME.fullmatch(text):
        raise ValueError(f"“{text}” cannot be the name of a directory")
    return text


def container_id(spec: ResolvedContainer) -> str:
    return f"{spec.pod.uid}.{spec.container}.{spec.number}"


def _process(place: Path, which: str) -> Process | None:
    started = _read(place / "started.json")
    if started is None:
        return None
    pid, ticks = started[which]
    return Process(started["boot_id"], pid, ticks)


def _exit(place: Path, raw: dict[str, Any]) -> Exit:
    code, number, reason = raw["exit_code"], raw["signal"], raw["reason"]
    if (place / "oom").exists():
        code, number, reason = _KILLED, signal.SIGKILL.value, "OOMKilled"
    return Exit(
        code=code,
        signal=number,
        reason=reason or ("Completed" if code == 0 else "Error"),
        message=raw["message"],
        finished_at=parse_time(raw["finished_at"]) or datetime.now(UTC),
        by_shutdown=(place / "shutdown").exists(),
    )


def _write_exit(place: Path, *, code: int, reason: str, message: str) -> None:
    finished = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    ending = {"exit_code": code, "signal": 0, "reason": reason, "message": message, "finished_at": finished}
    _write(place / "exit.json", ending)


def _as_file(spec: ResolvedContainer) -> dict[str, Any]:
    return {
        "pod": {"uid": spec.pod.uid, "namespace": spec.pod.namespace, "name": spec.pod.name},
        "container": spec.container,
        "number": spec.number,
        "image": spec.image,
        "image_id": spec.image_id,
        "argv": list(spec.argv),
        "env": {**spec.env, MARKER_VARIABLE: container_id(spec)},
        "cwd": spec.cwd,
        "memory_limit": spec.memory_limit,
        "mounts": dict(spec.mounts),
        "service_places": dict(spec.service_places),
        "log_bytes": _LOG_BYTES,
        "log_files": _LOG_FILES,
        "nice": _NICE,
    }


def _from_file(raw: dict[str, Any]) -> ResolvedContainer:
    known = {field.name for field in dataclasses.fields(ResolvedContainer)} - {"pod"}
    return ResolvedContainer(
        pod=PodIdentity(**raw["pod"]), **{key: value for key, value in raw.items() if key in known}
    )


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _write(path: Path, content: dict[str, Any]) -> None:
    """Write a file atomically, readable by its owner only, because environments hold secrets."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(content, file)
    unfinished.replace(path)
