"""Failures that happen for real, each said on its page, in words, within seconds of Kubernetes knowing it.

All of them at once, on one grid, with a page open for each from before it fails. What a launch cannot provoke (a missing Secret, a setup
step that fails) is a pod that an operator looks at: the same rules explain it.
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.end_to_end.following import Follower, Knows, event, has_ended, is_unscheduled, waits_for
from tests.end_to_end.grid import Grid, wait_until
from tests.end_to_end.people import log_in
from tests.end_to_end.scripts import Session

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SOON = 5.0  # seconds from Kubernetes' knowledge to the sentence
IMAGE = "compute-grid/test:1"
TIER = {
    "ephemeral_storage": "1Gi",
    "gpus": "0",
    "gpu_resource": "nvidia.com/gpu",
    "cost_per_hour": "0.1",
    "is_visible": "on",
    "node_pool": "default",
    "cores": "0.1",
    "memory": "48Mi",
}
TIERS = {
    "least": TIER,
    "sixty-four-cores": {**TIER, "cores": "64"},
    "a-card": {**TIER, "gpus": "1"},
}


@dataclass(frozen=True)
class Launch:
    """A launch of an environment of its own, made for this failure by an admin."""

    name: str
    sentence: str  # a regular expression
    knows: Knows
    command: tuple[str, ...] = ("true",)
    image: str = IMAGE
    tier: str = "least"
    kind: str = "job"


@dataclass(frozen=True)
class BarePod:
    name: str
    sentence: str
    knows: Knows
    containers: tuple[dict[str, Any], ...]
    spec: dict[str, Any] = field(default_factory=dict)


def python(code: str) -> tuple[str, ...]:
    return ("python3", "-c", code)


def container(*command: str, **fields: Any) -> dict[str, Any]:
    return {"name": "main", "image": IMAGE, "command": list(command), **fields}


LAUNCHES = (
    Launch("no-such-image", r"cannot be pulled", waits_for("ErrImagePull", "ImagePullBackOff"), image="nowhere/nothing:9"),
    Launch("no-such-command", r"its command no-such-program does not exist", has_ended, ("no-such-program",)),
    Launch("not-executable", r"its command /etc/passwd is not executable", has_ended, ("/etc/passwd",)),
    Launch("no-such-module", r"Python module nosuch is not installed\.", has_ended, python("import nosuch")),
    Launch("out-of-memory", r"used more memory than its limit of 48 MiB", has_ended,
           python("import time; held = b'x' * (200 << 20); time.sleep(60)")),
    Launch("killed", r"exit code 137, it was killed \(SIGKILL\)", has_ended, python("import os; os.kill(os.getpid(), 9)")),
    Launch("crashed", r"exit code 139, it crashed", has_ended, python("import os; os.kill(os.getpid(), 11)")),
    Launch("disk-full", r"The disk is full\.", has_ended, python("open('/dev/full', 'w', buffering=1).write('line\\n')")),
    Launch("no-such-host", r"A host name cannot be resolved\.", has_ended,
           python("import socket; socket.create_connection(('nothing.invalid', 80))")),
    Launch("refused", r"A service refused the connection\.", has_ended,
           python("import socket; socket.create_connection(('127.0.0.1', 1))")),
    Launch("silent", r"does not answer on port (8888|http)", event("Unhealthy"), ("sleep", "600"), kind="workspace"),
    Launch("too-large", r"No node.* is large enough for this\b", is_unscheduled, tier="sixty-four-cores"),
    Launch("no-such-resource", r"No node.* GPU", is_unscheduled, tier="a-card"),
)  # fmt: skip
PODS = (
    BarePod("no-secret", r"Secret absent does not exist", waits_for("CreateContainerConfigError"),
            (container("true", envFrom=[{"secretRef": {"name": "absent"}}]),)),
    BarePod("no-configmap", r"ConfigMap absent does not exist", event("FailedMount"), (container("true"),),
            {"volumes": [{"name": "settings", "configMap": {"name": "absent"}}]}),
    BarePod("setup-fails", r"Setup step prepare keeps failing", waits_for("CrashLoopBackOff"), (container("true"),),
            {"initContainers": [{**container("false"), "name": "prepare"}]}),
    BarePod("not-alive", r"it failed its liveness probe", has_ended, (
        container("sleep", "600", livenessProbe={"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}),
    ), {"terminationGracePeriodSeconds": 1}),
)  # fmt: skip


@dataclass(frozen=True)
class Watched:
    """A page that was open before the failure."""

    pod: str
    case: Launch | BarePod
    page: Page

    @property
    def seen(self) -> float | None:
        """When its sentence was first seen there."""
        found = self.page.evaluate("window.seenAt")
        return None if found is None else float(found)

    @property
    def words(self) -> str:
        return " ".join(self.page.locator("main").inner_text().split())


@pytest.fixture
def follower(grid: Grid) -> Iterator[Follower]:
    grid.start()
    follower = Follower(grid.var / "kubeconfig")
    yield follower
    follower.close()


def test_fifteen_failures_are_said_within_seconds(
    grid: Grid, follower: Follower, browser: Browser, tmp_path: Path
) -> None:
    admin, scientist = Session(grid, "admin"), Session(grid, "scientist")
    furnish(admin)
    mine, operators = log_in(browser, grid, "scientist"), log_in(browser, grid, "operator")
    watched = []
    for launch in LAUNCHES:
        fields = {"project": "churn", "title": launch.name, "environment": launch.name, "tier": launch.tier}
        id = scientist.launch({"kind": launch.kind, **fields})
        watched.append(Watched(f"{launch.kind}-{id}", launch, opened(mine, f"/executions/{id}/", launch.sentence)))
    for pod in PODS:
        grid.kubectl("apply", "-f", str(written(tmp_path, pod)))
        watched.append(Watched(pod.name, pod, opened(operators, f"/pods/default/{pod.name}/", pod.sentence)))

    with contextlib.suppress(AssertionError):
        wait_until(lambda: all(one.seen for one in watched), 180, "all sentences")
    assert [f"{one.case.name}: {one.words}" for one in watched if not one.seen] == []
    late = {}
    for one in watched:
        known = follower.known_since(one.pod, one.case.knows)
        assert known is not None and one.seen is not None, f"Kubernetes never knew {one.case.name}"
        late[one.case.name] = round(one.seen - known, 1)
    assert max(late.values()) <= SOON, late


def furnish(admin: Session) -> None:
    for id, entries in TIERS.items():
        admin.post("/tiers/new/", {**entries, "id": id, "name": id.capitalize()}, page="/tiers/new/")
    for one in LAUNCHES:
        entries = {"id": one.name, "name": one.name, "kind": one.kind, "image": one.image, "is_visible": "on"}
        port = {"port": "8888"} if one.kind == "workspace" else {}
        entries |= {"command": "\n".join(one.command), **port}
        admin.post("/environments/new/", entries, page="/environments/new/")


def opened(context: BrowserContext, path: str, sentence: str) -> Page:
    """A page that notes when it first shows the sentence."""
    page = context.new_page()
    page.goto(path)
    page.evaluate(
        """sentence => {
            const wanted = new RegExp(sentence);
            const main = document.querySelector("main");
            const look = () => {
                if (!window.seenAt && wanted.test(main.innerText.replace(/\\s+/g, " "))) window.seenAt = Date.now() / 1000;
            };
            new MutationObserver(look).observe(main, { subtree: true, childList: true, characterData: true });
            look();
        }""",
        sentence,
    )
    return page


def written(folder: Path, pod: BarePod) -> Path:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod.name, "namespace": "default"},
        "spec": {"containers": list(pod.containers), **pod.spec},
    }
    file = folder / f"{pod.name}.json"
    file.write_text(json.dumps(body))
    return file
