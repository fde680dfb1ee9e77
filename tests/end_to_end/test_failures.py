"""Failures that happen for real, each said in words on its page, which is live.

All of them at once, on one grid, with a page open for each from before it fails. What a launch cannot provoke (a missing Secret, a setup
step that fails) is a pod that an operator looks at: the same rules explain it. What no machine should be brought to (it is short of memory,
or falls silent) happens to a node without a kubelet, whose pods have the status that a kubelet would write.
"""

import contextlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.end_to_end.grid import Grid, Session
from tests.end_to_end.people import log_in
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

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
    command: tuple[str, ...] = ("true",)
    image: str = IMAGE
    tier: str = "least"
    kind: str = "job"


@dataclass(frozen=True)
class BarePod:
    name: str
    sentence: str
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
    Launch("no-such-image", r"The image nowhere/nothing:9 cannot be pulled: there is no such image\.", image="nowhere/nothing:9"),
    Launch("no-such-command", r"The program cannot be started: its command no-such-program does not exist in the image\.",
           ("no-such-program",)),
    Launch("not-executable", r"The program cannot be started: its command /etc/passwd is not executable\.", ("/etc/passwd",)),
    Launch("no-such-module", rf"{WITH_CODE}1\. Python module nosuch is not installed\.", python("import nosuch")),
    Launch("out-of-memory", r"The program used more memory than its limit of 48 MiB and was ended\.",
           python("import time; held = b'x' * (200 << 20); time.sleep(60)")),
    Launch("disk-full", rf"{WITH_CODE}1\. The disk is full\.",
           python("open('/dev/full', 'w', buffering=1).write('line\\n')")),
    Launch("own-limit-of-disk", r"It wrote more to its node's disk than its tier allows, and was evicted\.",
           python("import tempfile, time; file = tempfile.NamedTemporaryFile(); file.write(b'x' * (9 << 20)); time.sleep(120)"),
           tier="little-disk"),
    Launch("silent", r"The program is starting and does not answer( on port 8888)? yet\.", ("sleep", "600"),
           kind="workspace"),
    Launch("too-large", rf"{TOO_LARGE}64 cores, the largest has [\d.]+ cores{OF_A_NEW_ONE}", tier="sixty-four-cores"),
    Launch("no-such-resource", r"No node has a GPU, which this needs\.", tier="a-card"),
)  # fmt: skip
LIVENESS = r"liveness probe\."
AGAIN = r"The program is restarted again and again \(\d+ restarts?\)"  # while it waits to be started again
PODS = (
    BarePod("no-secret", r"The program cannot be started: Secret absent does not exist\.",
            (container("true", envFrom=[{"secretRef": {"name": "absent"}}]),)),
    BarePod("setup-fails", r"Setup step prepare keeps failing \(\d+ restarts?\): exit code 1\.",
            (container("true"),), {"initContainers": [{**container("false"), "name": "prepare"}]}),
    BarePod("not-alive", rf"Program restarted .{{1,12}} ago: it failed its {LIVENESS}|{AGAIN}: it fails its {LIVENESS}", (
        container("sleep", "600", livenessProbe={"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}),
    ), {"terminationGracePeriodSeconds": 1}),
    BarePod("evicted", r"The node ran short of memory and evicted this: it used 900 MiB and requests none\.",
            (container("sleep", "600"),), status={"phase": "Failed", "reason": "Evicted", "message": LOW_ON_MEMORY}),
    BarePod("lost", r"Node no-kubelet no longer answers\.", (container("sleep", "600"),), status={
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{
            "name": "main", "image": IMAGE, "imageID": "", "ready": True, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }],
    }),
)  # fmt: skip


def test_each_failure_is_said_on_its_open_page(grid: Grid, browser: Browser, tmp_path: Path) -> None:
    grid.start()
    admin, scientist = Session(grid, "admin"), Session(grid, "scientist")
    furnish(admin)
    apply(grid, tmp_path, NO_KUBELET)
    patch_status(grid, "node", NO_KUBELET["metadata"]["name"], NO_KUBELET["status"])
    mine, operators = log_in(browser, grid, "scientist"), log_in(browser, grid, "operator")
    pages: dict[str, tuple[Page, str]] = {}
    for launch in LAUNCHES:
        fields = {"project": "churn", "title": launch.name, "environment": launch.name, "tier": launch.tier}
        id = scientist.launch({"kind": launch.kind, **fields})
        pages[launch.name] = opened(mine, f"/executions/{id}/"), launch.sentence
    for pod in PODS:
        apply(grid, tmp_path, manifest(pod))
        pages[pod.name] = opened(operators, f"/pods/default/{pod.name}/"), pod.sentence
        if pod.status:
            patch_status(grid, "pod", pod.name, pod.status)

    unsaid = dict(pages)

    def all_are_said() -> bool:
        """Some sentences are there for a while only."""
        for name, (page, sentence) in list(unsaid.items()):
            if re.search(sentence, words_on(page)):
                del unsaid[name]
        return not unsaid

    with contextlib.suppress(AssertionError):
        wait_until(all_are_said, 180, "all sentences")
    assert {name: words_on(page) for name, (page, _) in unsaid.items()} == {}


def words_on(page: Page) -> str:
    return " ".join(page.locator("main").inner_text().split())


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


def opened(context: BrowserContext, path: str) -> Page:
    """Before it fails; never loaded again."""
    page = context.new_page()
    wait_until(
        lambda: (answer := page.goto(path)) is not None and answer.ok, 20, f"{path}, of a pod that was just made"
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
