"""Claims that pods describe: made before the pod is scheduled, and never taken from somebody else."""

from pathlib import Path
from typing import Any

from grid.sandbox.client import (
    EVENTS,
    PODS,
    VOLUME_CLAIMS,
    Object,
    name_of,
)
from grid.sandbox.controllers.claimprotection import ClaimProtection
from grid.sandbox.controllers.ephemeral import EphemeralVolumeController, claim_of, ownership_problem
from grid.sandbox.controllers.manager import ControllerManager
from grid.sandbox.controllers.scheduler import Scheduler
from grid.sandbox.controllers.scheduling import schedule
from grid.sandbox.provisioner import DirectoryProvisioner
from tests.sandbox.support import FastClock, add_node, api_server, make_node, make_pod, running
from tests.support.waiting import eventually

SPEC: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def with_scratch(name: str, **fields: Any) -> Object:
    template = {"spec": SPEC, **fields}
    return make_pod(name, volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}])


def test_ephemeral_claim_equals_template_with_pod_as_owner() -> None:
    pod = with_scratch("p", metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}, "creationTimestamp": None})
    pod["metadata"]["uid"] = "1"
    claim = claim_of(pod, pod["spec"]["volumes"][0])
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": True, "blockOwnerDeletion": True}
    assert claim["metadata"] == {
        "name": "p-scratch",
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "ownerReferences": [owner],
    }
    assert claim["spec"] == SPEC
    assert ownership_problem(pod, {**claim, "metadata": claim["metadata"] | {"namespace": "default"}}) == ""


def test_another_s_claim_keeps_the_pod_from_its_node() -> None:
    pod = with_scratch("p")
    claim = {"metadata": {"name": "p-scratch", "namespace": "default"}, "spec": {"volumeName": "v"}}
    decision = schedule(pod, [make_node("a")], [], [claim])
    assert decision.message == (
        "0/1 nodes are available: PVC default/p-scratch was not created for pod default/p (pod is not owner). not found"
    )


async def test_pod_waits_for_its_claim_and_takes_it_along(tmp_path: Path) -> None:
    clock = FastClock(speed=10)
    async with (
        api_server(tmp_path, clock) as client,
        running(
            ControllerManager(client, clock=clock),
            Scheduler(client, clock=clock),
            DirectoryProvisioner(client, directory=tmp_path / "volumes", clock=clock),
        ),
    ):
        await add_node(client, make_node("a", now=clock.now()))
        await client.create(PODS.path("default"), with_scratch("p"))
        pod = await eventually(
            lambda: client.get(PODS.path("default", "p")), holds=lambda pod: pod["spec"].get("nodeName") == "a"
        )
        claim = await client.get(VOLUME_CLAIMS.path("default", "p-scratch"))
        assert claim["status"]["phase"] == "Bound"
        assert claim["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
        await client.delete(PODS.path("default", "p"), grace_seconds=0)
        await eventually(lambda: client.list(VOLUME_CLAIMS.path("default")), holds=lambda claims: not claims)


async def test_deleted_claim_of_waiting_pod_is_made_again(tmp_path: Path) -> None:
    clock = FastClock(speed=10)
    async with (
        api_server(tmp_path, clock) as client,
        running(EphemeralVolumeController(client, clock=clock), ClaimProtection(client, clock=clock)),
    ):
        await client.create(PODS.path("default"), with_scratch("p"))
        path = VOLUME_CLAIMS.path("default", "p-scratch")
        first = (await eventually(lambda: client.list(VOLUME_CLAIMS.path("default")), holds=lambda claims: claims))[0]
        await client.delete(path)
        again = await eventually(
            lambda: client.list(VOLUME_CLAIMS.path("default")),
            holds=lambda claims: claims and claims[0]["metadata"]["uid"] != first["metadata"]["uid"],
        )
        assert name_of(again[0]) == "p-scratch"


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
        assert (events[0]["reason"], events[0]["type"]) == ("FailedBinding", "Warning")
        assert events[0]["source"]["component"] == "ephemeral_volume"
        assert events[0]["message"] == (
            "ephemeral volume scratch: PVC default/p-scratch was not created for pod default/p (pod is not owner)"
        )
        await client.delete(VOLUME_CLAIMS.path("default", "p-scratch"))
        await eventually(
            lambda: client.list(VOLUME_CLAIMS.path("default")),
            holds=lambda claims: claims and claims[0]["metadata"].get("ownerReferences"),
        )
