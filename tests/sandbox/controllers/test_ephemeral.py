"""Claims that pods describe: made before the pod is scheduled, and never taken from somebody else."""

from pathlib import Path
from typing import Any

from grid.sandbox.client import EVENTS, PODS, VOLUME_CLAIMS, Object
from grid.sandbox.controllers.claimprotection import ClaimProtection
from grid.sandbox.controllers.ephemeral import EphemeralVolumeController
from grid.sandbox.controllers.scheduling import schedule
from tests.sandbox.support import FastClock, api_server, make_node, make_pod, running
from tests.support.waiting import eventually

SPEC: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def with_scratch(name: str, **fields: Any) -> Object:
    template = {"spec": SPEC, **fields}
    return make_pod(name, volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}])


def test_another_s_claim_keeps_the_pod_from_its_node() -> None:
    pod = with_scratch("p")
    claim = {"metadata": {"name": "p-scratch", "namespace": "default"}, "spec": {"volumeName": "v"}}
    decision = schedule(pod, [make_node("a")], [], [claim])
    assert decision.message == (
        "0/1 nodes are available: PVC default/p-scratch was not created for pod default/p (pod is not owner). not found"
    )


async def test_obstacle_to_ephemeral_claim_is_reported_and_retried(tmp_path: Path) -> None:
    clock = FastClock(speed=10)
    async with (
        api_server(tmp_path, clock) as client,
        running(EphemeralVolumeController(client, clock=clock), ClaimProtection(client, clock=clock)),
    ):
        mine = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "p-scratch"}, "spec": SPEC}
        await client.create(VOLUME_CLAIMS.path("default"), mine)
        await client.create(PODS.path("default"), with_scratch("p"))
        events = await eventually(lambda: client.list(EVENTS.path("default")), holds=lambda events: events)
        assert events[0]["message"] == (
            "ephemeral volume scratch: PVC default/p-scratch was not created for pod default/p (pod is not owner)"
        )
        await client.delete(VOLUME_CLAIMS.path("default", "p-scratch"))
        await eventually(
            lambda: client.list(VOLUME_CLAIMS.path("default")),
            holds=lambda claims: claims and claims[0]["metadata"].get("ownerReferences"),
        )
