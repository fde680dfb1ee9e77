"""Claims in use are kept; those from before there was protection get it too."""

from pathlib import Path

import pytest

from grid.sandbox.client import VOLUME_CLAIMS, Object
from grid.sandbox.controllers.claimprotection import PROTECTION, uses
from grid.sandbox.controllers.manager import ControllerManager
from tests.sandbox.controllers.test_ephemeral import SPEC, with_scratch
from tests.sandbox.support import FastClock, api_server, make_pod, running
from tests.support.waiting import eventually

CLAIM: Object = {"metadata": {"name": "files", "namespace": "default"}, "spec": SPEC}
VOLUMES = [{"name": "v", "persistentVolumeClaim": {"claimName": "files"}}]
ENDED: Object = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}


@pytest.mark.parametrize(
    ("pod", "used"),
    [
        (make_pod("p", nodeName="a", volumes=VOLUMES), True),
        (make_pod("p", nodeName="a", volumes=VOLUMES) | {"status": {"phase": "Succeeded"}}, True),
        (make_pod("p", volumes=VOLUMES), False),
        (make_pod("p", nodeName="a", namespace="other", volumes=VOLUMES), False),
        (make_pod("p", nodeName="a", volumes=[{"name": "files", "emptyDir": {}}]), False),
    ],
)
def test_pods_on_a_node_use_their_claims(pod: Object, used: bool) -> None:
    assert uses(pod, CLAIM) is used


def test_ephemeral_claim_is_protected_until_its_pod_ends() -> None:
    pod = with_scratch("p")
    pod["spec"]["nodeName"] = "a"
    pod["metadata"]["uid"] = "1"
    owner = {"kind": "Pod", "name": "p", "uid": "1", "controller": True}
    mine = {"metadata": {"name": "p-scratch", "namespace": "default", "ownerReferences": [owner]}}
    assert uses(pod, mine)
    assert not uses(pod, {"metadata": mine["metadata"] | {"ownerReferences": []}})
    assert not uses(pod | {"metadata": pod["metadata"] | ENDED}, mine)


async def test_an_unprotected_claim_is_protected(tmp_path: Path) -> None:
    clock = FastClock(speed=10)
    path = VOLUME_CLAIMS.path("default", "files")
    async with api_server(tmp_path, clock) as client:
        await client.create(VOLUME_CLAIMS.path("default"), CLAIM)
        await client.patch(path, {"metadata": {"finalizers": None}})
        async with running(ControllerManager(client, clock=clock)):
            await eventually(
                lambda: client.get(path), holds=lambda claim: claim["metadata"].get("finalizers") == [PROTECTION]
            )
