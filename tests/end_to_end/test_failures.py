"""Failures that happen for real, each said on its page, in words, within seconds of Kubernetes knowing it.

All of them at once, on one grid, with a page open for each from before it fails. What a launch cannot provoke (a missing Secret, a setup
step that fails) is a pod that an operator looks at: the same rules explain it. What no machine should be brought to (it is short of memory,
or falls silent) happens to a node without a kubelet, whose pods have the status that a kubelet would write.
"""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.end_to_end.following import Follower, Knows, event, has_ended, has_failed, is_unscheduled, waits_for
from tests.end_to_end.grid import Grid
from tests.end_to_end.people import log_in
from tests.end_to_end.scripts import Session
from tests.support.waiting import wait_until

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
    "little-disk": {**TIER, "ephemeral_storage": "4Mi"},
}
NO_KUBELET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "no-kubelet"},
    "spec": {"unschedulable": True},
    "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]},
}
LOW_ON_MEMORY = (
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. "
    "Container main was using 900Mi, request is 0, has larger consumption of memory. "
)


@dataclass(frozen=True)
class Launch:
    """A launch of an environment of its own, made for this failure by an admin."""

    name: str
    sentence: str  # a regular expression, of the whole sentence
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
    status: dict[str, Any] = field(default_factory=dict)  # on the node without a kubelet


def python(code: str) -> tuple[str, ...]:
    return ("python3", "-c", code)


def container(*command: str, **fields: Any) -> dict[str, Any]:
    return {"name": "main", "image": IMAGE, "command": list(command), **fields}


TOO_LARGE = r"No node of the pool default is large enough for this, not even an empty one: it needs "
OF_A_NEW_ONE = (
    r"(; how large a new node would be is not known)?\."  # until the pool's nodes were seen for the first time
)
WITH_CODE = r"The program ended with an error: exit code "
LAUNCHES = (
    Launch("no-such-image", r"The image nowhere/nothing:9 cannot be pulled: there is no such image\.",
           waits_for("ErrImagePull", "ImagePullBackOff"), image="nowhere/nothing:9"),
    Launch("no-such-command", r"The program cannot be started: its command no-such-program does not exist in the image\.",
           has_ended, ("no-such-program",)),
    Launch("not-executable", r"The program cannot be started: its command /etc/passwd is not executable\.",
           has_ended, ("/etc/passwd",)),
    Launch("no-such-module", rf"{WITH_CODE}1\. Python module nosuch is not installed\.", has_ended, python("import nosuch")),
    Launch("out-of-memory", r"The program used more memory than its limit of 48 MiB and was ended\.", has_ended,
           python("import time; held = b'x' * (200 << 20); time.sleep(60)")),
    Launch("killed", rf"{WITH_CODE}137, it was killed \(SIGKILL\)\.", has_ended, python("import os; os.kill(os.getpid(), 9)")),
    Launch("crashed", rf"{WITH_CODE}139, it crashed \(segmentation fault\)\.", has_ended,
           python("import os; os.kill(os.getpid(), 11)")),
    Launch("disk-full", rf"{WITH_CODE}1\. The disk is full\.", has_ended,
           python("open('/dev/full', 'w', buffering=1).write('line\\n')")),
    Launch("no-such-host", rf"{WITH_CODE}1\. A host name cannot be resolved\.", has_ended,
           python("import socket; socket.create_connection(('nothing.invalid', 80))")),
    Launch("refused", rf"{WITH_CODE}1\. A service refused the connection\.", has_ended,
           python("import socket; socket.create_connection(('127.0.0.1', 1))")),
    Launch("own-limit-of-disk", r"It wrote more to its node's disk than its tier allows, and was evicted\.", has_failed("Evicted"),
           python("import tempfile, time; file = tempfile.NamedTemporaryFile(); file.write(b'x' * (9 << 20)); time.sleep(120)"),
           tier="little-disk"),
    Launch("silent", r"The program is starting and does not answer( on port 8888)? yet\.", event("Unhealthy"), ("sleep", "600"),
           kind="workspace"),
    Launch("too-large", rf"{TOO_LARGE}64 cores, the largest has [\d.]+ cores{OF_A_NEW_ONE}", is_unscheduled, tier="sixty-four-cores"),
    Launch("no-such-resource", rf"{TOO_LARGE}1 GPU, the largest has no GPU{OF_A_NEW_ONE}", is_unscheduled, tier="a-card"),
)  # fmt: skip
LIVENESS = r"liveness probe\."
AGAIN = r"The program is restarted again and again \(\d+ restarts?\)"  # while it waits to be started again
PODS = (
    BarePod("no-secret", r"The program cannot be started: Secret absent does not exist\.", waits_for("CreateContainerConfigError"),
            (container("true", envFrom=[{"secretRef": {"name": "absent"}}]),)),
    BarePod("no-configmap", r"ConfigMap absent does not exist, so volume settings cannot be mounted\.", event("FailedMount"),
            (container("true"),), {"volumes": [{"name": "settings", "configMap": {"name": "absent"}}]}),
    BarePod("setup-fails", r"Setup step prepare keeps failing \(\d+ restarts?\): exit code 1\.", waits_for("CrashLoopBackOff"),
            (container("true"),), {"initContainers": [{**container("false"), "name": "prepare"}]}),
    BarePod("not-alive", rf"Program restarted .{{1,12}} ago: it failed its {LIVENESS}|{AGAIN}: it fails its {LIVENESS}", has_ended, (
        container("sleep", "600", livenessProbe={"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}),
    ), {"terminationGracePeriodSeconds": 1}),
    BarePod("second-out-of-memory", r"Container second used more memory than its limit of 48 MiB and was ended\.", has_ended, (
        container("sleep", "600"),
        container(*python("import time; held = b'x' * (200 << 20); time.sleep(60)"),
                  name="second", resources={"limits": {"memory": "48Mi"}}),
    ), {"restartPolicy": "Never"}),
    BarePod("evicted", r"The node ran short of memory and evicted this: it used 900 MiB and requests none\.", has_failed("Evicted"),
            (container("sleep", "600"),), status={"phase": "Failed", "reason": "Evicted", "message": LOW_ON_MEMORY}),
    BarePod("lost", r"Node no-kubelet no longer answers\.", event("NodeNotReady"), (container("sleep", "600"),), status={
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{
            "name": "main", "image": IMAGE, "imageID": "", "ready": True, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }],
    }),
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
        seen_at = self.page.evaluate("window.seenAt")
        return None if seen_at is None else float(seen_at)

    @property
    def words(self) -> str:
        return " ".join(self.page.locator("main").inner_text().split())


@pytest.fixture
def follower(grid: Grid) -> Iterator[Follower]:
    grid.start()
    follower = Follower(grid.var / "kubeconfig")
    yield follower
    follower.close()


def test_each_failure_is_said_within_seconds(grid: Grid, follower: Follower, browser: Browser, tmp_path: Path) -> None:
    admin, scientist = Session(grid, "admin"), Session(grid, "scientist")
    furnish(admin)
    apply(grid, tmp_path, NO_KUBELET)
    patch_status(grid, "node", NO_KUBELET["metadata"]["name"], NO_KUBELET["status"])
    mine, operators = log_in(browser, grid, "scientist"), log_in(browser, grid, "operator")
    watched = []
    for launch in LAUNCHES:
        fields = {"project": "churn", "title": launch.name, "environment": launch.name, "tier": launch.tier}
        id = scientist.launch({"kind": launch.kind, **fields})
        watched.append(Watched(f"{launch.kind}-{id}", launch, opened(mine, f"/executions/{id}/", launch.sentence)))
    for pod in PODS:
        apply(grid, tmp_path, manifest(pod))
        watched.append(Watched(pod.name, pod, opened(operators, f"/pods/default/{pod.name}/", pod.sentence)))
        if pod.status:
            patch_status(grid, "pod", pod.name, pod.status)

    with contextlib.suppress(AssertionError):
        wait_until(lambda: all(failure.seen for failure in watched), 180, "all sentences")
    assert [f"{failure.case.name}: {failure.words}" for failure in watched if not failure.seen] == []
    late = {}
    for failure in watched:
        known = follower.known_since(failure.pod, failure.case.knows)
        assert known is not None and failure.seen is not None, f"Kubernetes never knew {failure.case.name}"
        late[failure.case.name] = round(failure.seen - known, 1)
    assert max(late.values()) <= SOON, late


def furnish(admin: Session) -> None:
    for id, entries in TIERS.items():
        admin.post("/tiers/new/", {**entries, "id": id, "name": id.capitalize()}, page="/tiers/new/")
    for launch in LAUNCHES:
        entries = {
            "id": launch.name,
            "name": launch.name,
            "kind": launch.kind,
            "image": launch.image,
            "is_visible": "on",
        }
        port = {"port": "8888"} if launch.kind == "workspace" else {}
        entries |= {"command": "\n".join(launch.command), **port}
        admin.post("/environments/new/", entries, page="/environments/new/")


def opened(context: BrowserContext, path: str, sentence: str) -> Page:
    """A page that notes when it first shows the sentence."""
    page = context.new_page()
    wait_until(
        lambda: (answer := page.goto(path)) is not None and answer.ok, 20, f"{path}, of a pod that was just made"
    )
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


def manifest(pod: BarePod) -> dict[str, Any]:
    node = {"nodeName": NO_KUBELET["metadata"]["name"]} if pod.status else {}
    meta = {"name": pod.name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": list(pod.containers), **pod.spec, **node},
    }


def apply(grid: Grid, folder: Path, body: dict[str, Any]) -> None:
    file = folder / f"{body['metadata']['name']}.json"
    file.write_text(json.dumps(body))
    grid.kubectl("apply", "-f", str(file))


def patch_status(grid: Grid, kind: str, name: str, status: dict[str, Any]) -> None:
    grid.kubectl("patch", kind, name, "--subresource=status", "--type=merge", "--patch", json.dumps({"status": status}))
