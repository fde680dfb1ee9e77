"""Follows what a Kubernetes API server knows, and when it came to know it."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Knows = Callable[[Any], bool]  # of a pod or an event


class Follower:
    """Every state of every pod and event, each with the time (Unix) at which the server told it."""

    def __init__(self, kubeconfig: Path) -> None:
        self._told: list[tuple[float, Any]] = []
        self._followers = [self._follow(kubeconfig, kind) for kind in ("pods", "events")]
        self._readers = [threading.Thread(target=self._read, args=(process,)) for process in self._followers]
        for reader in self._readers:
            reader.start()

    def close(self) -> None:
        for follower in self._followers:
            follower.kill()
            follower.wait()
        for reader in self._readers:
            reader.join()

    def known_since(self, name: str, knows: Knows) -> float | None:
        """When the server first told a state of the pod, or an event about it, for which `knows` is true."""
        about = (
            (at, resource)
            for at, resource in tuple(self._told)
            if name in (resource["metadata"]["name"], resource.get("involvedObject", {}).get("name"))
        )
        return next((at for at, resource in about if knows(resource)), None)

    def _follow(self, kubeconfig: Path, kind: str) -> "subprocess.Popen[str]":
        kubectl = Path(sys.executable).parent / "kubectl"
        command = [str(kubectl), "get", kind, "--all-namespaces", "--watch", "--output", "json"]
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    def _read(self, process: "subprocess.Popen[str]") -> None:
        """Take in the objects, which kubectl prints one after the other, each over several lines."""
        assert process.stdout is not None
        lines: list[str] = []
        with process.stdout as printed:
            for line in printed:
                lines.append(line)
                if line.rstrip() == "}":
                    self._told.append((time.time(), json.loads("".join(lines))))
                    lines.clear()


def waits_for(*reasons: str) -> Knows:
    """A container waits for one of the reasons."""
    return lambda resource: any(
        state.get("waiting", {}).get("reason") in reasons
        for status in _containers(resource)
        for state in [status["state"]]
    )


def has_ended(resource: Any) -> bool:
    return any("terminated" in state for status in _containers(resource) for state in _states(status))


def has_failed(reason: str) -> Knows:
    """The pod as a whole has failed for this reason."""
    return lambda resource: resource["kind"] == "Pod" and resource.get("status", {}).get("reason") == reason


def is_unscheduled(resource: Any) -> bool:
    conditions = resource.get("status", {}).get("conditions", ()) if resource["kind"] == "Pod" else ()
    return any((each["type"], each["status"]) == ("PodScheduled", "False") for each in conditions)


def event(reason: str) -> Knows:
    return lambda resource: bool(resource["kind"] == "Event" and resource["reason"] == reason)


def _containers(resource: Any) -> Sequence[Any]:
    status = resource.get("status", {}) if resource["kind"] == "Pod" else {}
    return [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]


def _states(status: Any) -> Sequence[Any]:
    return status["state"], status.get("lastState", {})
