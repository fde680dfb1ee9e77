"""Claims get PersistentVolumes, by Kubernetes' rules: made for them, or an admin's; what becomes of both, and who is protected."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grid.core.errors import GridError, NotAllowed
from grid.sandbox.client import EVENTS, PODS, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES, Client, Object, uid_of
from grid.sandbox.controllers.claimprotection import PROTECTION, ClaimProtection, uses
from grid.sandbox.controllers.ephemeral import EphemeralVolumeController
from grid.sandbox.controllers.manager import ControllerManager
from grid.sandbox.controllers.scheduler import Scheduler
from grid.sandbox.controllers.scheduling import schedule
from grid.sandbox.controllers.volumebinding import BIND_COMPLETED, BOUND_BY_CONTROLLER
from grid.sandbox.provisioner import FINALIZER, DirectoryProvisioner, chosen_topology
from grid.sandbox.storage import PROVISIONED_BY, PROVISIONER
from tests.sandbox.support import FastClock, add_node, api_server, make_node, make_pod, running
from tests.support.waiting import eventually

ZONE = "topology.kubernetes.io/zone"


def claim(name: str, size: str = "1Gi", **spec: Any) -> Object:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"metadata": {"name": name}, "spec": wanted}


def volume(name: str, size: str = "1Gi", **spec: Any) -> Object:
    offered = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/srv"}, **spec}
    return {"metadata": {"name": name}, "spec": offered}


def storage_class(name: str, **fields: Any) -> Object:
    return {"metadata": {"name": name}, "provisioner": PROVISIONER, **fields}


def in_zones(*zones: str) -> list[Object]:
    return [{"matchLabelExpressions": [{"key": ZONE, "values": [*zones]}]}]


@dataclass(frozen=True, slots=True)
class Storage:
    client: Client
    directory: Path

    async def make(self, *objects: Object) -> None:
        for item in objects:
            kind = (
                VOLUME_CLAIMS if "resources" in item.get("spec", {}) else VOLUMES if "spec" in item else STORAGE_CLASSES
            )
            await self.client.create(kind.path("default"), item)

    async def bound(self, name: str) -> tuple[Object, Object]:
        """A claim and its volume once both name each other."""
        claim = await eventually(lambda: self.claim(name), holds=lambda claim: claim["status"]["phase"] == "Bound")
        return claim, await self.volume(claim["spec"]["volumeName"], "Bound")

    async def claim(self, name: str) -> Object:
        return await self.client.get(VOLUME_CLAIMS.path("default", name))

    async def volume(self, name: str, phase: str) -> Object:
        return await eventually(
            lambda: self.client.get(VOLUMES.path(name=name)),
            holds=lambda volume: volume["status"].get("phase") == phase,
        )

    async def event_message(self, name: str, reason: str) -> str:
        """The message of an event about a claim or a volume."""

        async def messages() -> list[str]:
            events = await self.client.list(EVENTS.path("default"))
            return [
                event["message"]
                for event in events
                if (event["involvedObject"]["name"], event["reason"]) == (name, reason)
            ]

        return (await eventually(messages))[0]

    async def gone(self, path: str) -> None:
        async def is_gone() -> bool:
            try:
                await self.client.get(path)
            except GridError:
                return True
            return False

        await eventually(is_gone)


@asynccontextmanager
async def storage(folder: Path, *nodes: Object) -> AsyncIterator[Storage]:
    clock, directory = FastClock(speed=10), folder / "volumes"
    async with api_server(folder, clock) as client:
        for node in nodes:
            await add_node(client, node)
        parts = (
            ControllerManager(client, clock=clock),
            Scheduler(client, clock=clock),
            DirectoryProvisioner(client, directory=directory, clock=clock),
        )
        async with running(*parts):
            yield Storage(client, directory)


async def test_claim_gets_default_class_volume_that_goes_with_it(tmp_path: Path) -> None:
    async with storage(tmp_path) as cluster:
        await cluster.make(claim("files"))
        mine, made = await cluster.bound("files")
        assert mine["spec"]["storageClassName"] == made["spec"]["storageClassName"] == "standard"
        assert made["metadata"]["annotations"] == {PROVISIONED_BY: PROVISIONER}
        assert sorted(made["metadata"]["finalizers"]) == [FINALIZER, "kubernetes.io/pv-protection"]
        assert made["spec"]["claimRef"]["uid"] == uid_of(mine)
        assert made["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
        assert mine["metadata"]["annotations"].items() >= {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}.items()
        assert mine["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
        (Path(made["spec"]["hostPath"]["path"]) / "notes.txt").write_text("kept as long as the claim")
        await cluster.client.delete(VOLUME_CLAIMS.path("default", "files"))
        await cluster.gone(VOLUMES.path(name=made["metadata"]["name"]))
        assert not [*cluster.directory.iterdir()]


async def test_a_retained_volume_is_released_and_taken_by_nobody(tmp_path: Path) -> None:
    async with storage(tmp_path) as cluster:
        await cluster.make(storage_class("kept", reclaimPolicy="Retain"), claim("files", storageClassName="kept"))
        _, made = await cluster.bound("files")
        place = Path(made["spec"]["hostPath"]["path"])
        (place / "notes.txt").write_text("kept")
        await cluster.client.delete(VOLUME_CLAIMS.path("default", "files"))
        name = made["metadata"]["name"]
        await cluster.volume(name, "Released")
        await cluster.make(claim("files", storageClassName="kept"))
        again, _ = await cluster.bound("files")
        assert again["spec"]["volumeName"] != name
        assert (place / "notes.txt").read_text() == "kept"
        await cluster.client.delete(VOLUMES.path(name=name))
        await cluster.gone(VOLUMES.path(name=name))
        assert (place / "notes.txt").exists()


async def test_nobody_deletes_the_files_of_an_admin_s_volume(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    source: dict[str, Any] = {"hostPath": {"path": str(tmp_path / "theirs")}, "persistentVolumeReclaimPolicy": "Delete"}
    async with storage(tmp_path) as cluster:
        await cluster.make(volume("theirs", **source), claim("files", storageClassName=""))
        await cluster.bound("files")
        await cluster.client.delete(VOLUME_CLAIMS.path("default", "files"))
        failed = await cluster.volume("theirs", "Failed")
        assert failed["status"]["reason"] == "VolumeFailedDelete"
        assert failed["status"]["message"].endswith("no deletable volume plugin matched")
        assert (tmp_path / "theirs").is_dir()


async def test_a_claim_grows_where_its_class_allows_it(tmp_path: Path) -> None:
    grown = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
    async with storage(tmp_path) as cluster:
        await cluster.make(storage_class("fixed"), claim("files"), claim("stiff", storageClassName="fixed"))
        _, made = await cluster.bound("files")
        await cluster.bound("stiff")
        with pytest.raises(
            NotAllowed, match="only dynamically provisioned pvc can be resized and the storageclass that"
        ):
            await cluster.client.patch(VOLUME_CLAIMS.path("default", "stiff"), grown)
        await cluster.client.patch(VOLUME_CLAIMS.path("default", "files"), grown)
        await eventually(
            lambda: cluster.claim("files"), holds=lambda claim: claim["status"]["capacity"] == {"storage": "3Gi"}
        )
        await eventually(
            lambda: cluster.client.get(VOLUMES.path(name=made["metadata"]["name"])),
            holds=lambda volume: volume["spec"]["capacity"] == {"storage": "3Gi"},
        )


async def test_late_volume_is_made_where_its_pod_goes(tmp_path: Path) -> None:
    late = storage_class("late", volumeBindingMode="WaitForFirstConsumer", allowedTopologies=in_zones("a", "b"))
    async with storage(tmp_path, *[make_node(zone, labels={ZONE: zone}) for zone in ("b", "c")]) as cluster:
        await cluster.make(late, claim("files", storageClassName="late"))
        message = "waiting for first consumer to be created before binding"
        assert await cluster.event_message("files", "WaitForFirstConsumer") == message
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "files"}}]
        await cluster.client.create(PODS.path("default"), make_pod("p", volumes=volumes))
        pod = await eventually(
            lambda: cluster.client.get(PODS.path("default", "p")), holds=lambda pod: pod["spec"].get("nodeName")
        )
        assert pod["spec"]["nodeName"] == "b"
        _, made = await cluster.bound("files")
        (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term == {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}


async def test_claims_bound_without_volume_get_one_at_next_start(tmp_path: Path) -> None:
    """As the data directories of clusters that had no PersistentVolumes."""
    clock = FastClock(speed=10)
    directory = tmp_path / "volumes"
    (directory / "default" / "files").mkdir(parents=True)
    async with api_server(tmp_path, clock) as client:
        before = await client.create(VOLUME_CLAIMS.path("default"), claim("files", storageClassName=""))
        path = VOLUME_CLAIMS.path("default", "files")
        await client.patch(path, {"spec": {"volumeName": f"pvc-{uid_of(before)}"}})
        status = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
        await client.patch(f"{path}/status", {"status": status})
        parts = ControllerManager(client, clock=clock), DirectoryProvisioner(client, directory=directory, clock=clock)
        async with running(*parts):
            cluster = Storage(client, directory)
            await eventually(
                lambda: cluster.claim("files"),
                holds=lambda claim: BIND_COMPLETED in claim["metadata"].get("annotations", {}),
            )
            mine, made = await cluster.bound("files")
            assert mine["status"] == status
            assert made["spec"]["hostPath"]["path"] == str(directory / "default" / "files")
            await client.delete(path)
            await cluster.volume(made["metadata"]["name"], "Released")
            assert (directory / "default" / "files").is_dir()


def test_volume_zone_follows_selected_node_or_its_class() -> None:
    zonal = storage_class("z", allowedTopologies=in_zones("a", "b"))
    assert chosen_topology(zonal, "x", make_node("n", labels={ZONE: "b"})) == {ZONE: "b"}
    assert {chosen_topology(zonal, f"claim-{number}", None)[ZONE] for number in range(20)} == {"a", "b"}
    assert chosen_topology(storage_class("everywhere"), "x", None) == {}


SPEC: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CLAIM: Object = {"metadata": {"name": "files", "namespace": "default"}, "spec": SPEC}
USES_FILES = [{"name": "v", "persistentVolumeClaim": {"claimName": "files"}}]
ENDED: Object = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}


@pytest.mark.parametrize(
    ("pod", "used"),
    [
        (make_pod("p", nodeName="a", volumes=USES_FILES), True),
        (make_pod("p", nodeName="a", volumes=USES_FILES) | {"status": {"phase": "Succeeded"}}, True),
        (make_pod("p", volumes=USES_FILES), False),
        (make_pod("p", nodeName="a", namespace="other", volumes=USES_FILES), False),
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
