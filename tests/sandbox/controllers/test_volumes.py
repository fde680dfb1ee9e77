"""Claims get PersistentVolumes, by Kubernetes' rules: made for them, or an admin's; and what becomes of both."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grid.core.errors import GridError, NotAllowed
from grid.diagnosis.placement.explain import explain_placement
from grid.executions.cluster_snapshot import ClusterSnapshotLister
from grid.kube.events import EventStore
from grid.kube.http import HttpKubeApi
from grid.kube.objects import Pod
from grid.sandbox.client import (
    EVENTS,
    PODS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
    Client,
    Object,
    condition_of,
    uid_of,
)
from grid.sandbox.controllers.manager import ControllerManager
from grid.sandbox.controllers.scheduler import Scheduler
from grid.sandbox.controllers.volumebinding import BIND_COMPLETED, BOUND_BY_CONTROLLER
from grid.sandbox.provisioner import FINALIZER, DirectoryProvisioner, chosen_topology
from grid.sandbox.storage import DEFAULT_CLASS, PROVISIONED_BY, PROVISIONER
from tests.executions.test_cluster_snapshot import nothing_remembered
from tests.sandbox.support import FastClock, add_node, api_server, make_node, make_pod, running
from tests.support.waiting import eventually

ZONE = "topology.kubernetes.io/zone"


def claim(name: str, size: str = "1Gi", **spec: Any) -> Object:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"metadata": {"name": name}, "spec": wanted}


def volume(name: str, size: str = "1Gi", **spec: Any) -> Object:
    offered = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/srv"}, **spec}
    return {"metadata": {"name": name}, "spec": offered}


def storage_class(name: str, *, is_default: bool = False, **fields: Any) -> Object:
    annotations = {DEFAULT_CLASS: "true"} if is_default else {}
    return {"metadata": {"name": name, "annotations": annotations}, "provisioner": PROVISIONER, **fields}


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

    async def explained(self, pod: Object) -> str:
        """What the pages say about a pod, from what they read of this cluster."""
        reader = HttpKubeApi(self.client._source)
        try:
            lister = ClusterSnapshotLister(
                reader,
                "default",
                templates=nothing_remembered,
                claim_events=EventStore().about_claim,
                clock=lambda: datetime.now(UTC),
                monotonic=time.monotonic,
            )
            asked = msgspec.convert(pod, Pod)
            explanation = explain_placement(asked, [], await lister.of(asked), now=datetime.now(UTC))
        finally:
            await reader.close()
        return f"{explanation.sentence} {explanation.next_step} {explanation.table}"

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
        assert made["metadata"]["name"] == f"pvc-{uid_of(mine)}"
        assert made["metadata"]["annotations"] == {PROVISIONED_BY: PROVISIONER}
        assert sorted(made["metadata"]["finalizers"]) == [FINALIZER, "kubernetes.io/pv-protection"]
        assert made["spec"]["claimRef"]["uid"] == uid_of(mine)
        assert made["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
        assert mine["metadata"]["annotations"].items() >= {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}.items()
        assert mine["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
        assert await cluster.event_message("files", "ProvisioningSucceeded")
        place = Path(made["spec"]["hostPath"]["path"])
        (place / "notes.txt").write_text("kept as long as the claim")
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


async def test_claim_of_unknown_class_waits_for_it(tmp_path: Path) -> None:
    async with storage(tmp_path, make_node("n")) as cluster:
        await cluster.make(claim("files", storageClassName="fast"))
        assert (
            await cluster.event_message("files", "ProvisioningFailed") == 'storageclass.storage.k8s.io "fast" not found'
        )
        assert (await cluster.claim("files"))["status"]["phase"] == "Pending"
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "files"}}]
        await cluster.client.create(PODS.path("default"), make_pod("p", volumes=volumes))
        pod = await eventually(
            lambda: cluster.client.get(PODS.path("default", "p")), holds=lambda pod: condition_of(pod, "PodScheduled")
        )
        message = (condition_of(pod, "PodScheduled") or {})["message"]
        assert message.startswith(
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
        )
        explanation = await cluster.explained(pod)
        assert "there is no storage class fast. Ask your admin to create the class" in explanation
        assert "one that exists: standard." in explanation
        await cluster.make(storage_class("fast"))
        await cluster.bound("files")


async def test_new_default_class_serves_waiting_claims(tmp_path: Path) -> None:
    async with storage(tmp_path) as cluster:
        await cluster.client.delete(STORAGE_CLASSES.path(name="standard"))
        await cluster.make(claim("files"))
        message = "no persistent volumes available for this claim and no storage class is set"
        assert await cluster.event_message("files", "FailedBinding") == message
        await cluster.make(storage_class("new", is_default=True))
        mine, _ = await cluster.bound("files")
        assert mine["spec"]["storageClassName"] == "new"


async def test_admin_volumes_are_bound_by_size_and_name(tmp_path: Path) -> None:
    async with storage(tmp_path) as cluster:
        await cluster.make(volume("large", "9Gi"), volume("small", "3Gi"), volume("tiny", "1Gi"))
        await cluster.volume("tiny", "Available")
        await cluster.make(claim("files", "2Gi", storageClassName=""))
        mine, _ = await cluster.bound("files")
        assert (mine["spec"]["volumeName"], mine["status"]["capacity"]) == ("small", {"storage": "3Gi"})
        await cluster.make(claim("named", "2Gi", storageClassName="", volumeName="tiny"))
        problem = 'Cannot bind to requested volume "tiny": requested PV is too small'
        assert await cluster.event_message("named", "VolumeMismatch") == problem
        await cluster.make(claim("late", "2Gi", storageClassName="", volumeName="small"))
        assert (
            await cluster.event_message("late", "FailedBinding") == 'volume "small" already bound to a different claim.'
        )
        await cluster.client.delete(VOLUMES.path(name="small"))
        bound = await cluster.client.get(VOLUMES.path(name="small"))
        assert bound["metadata"]["deletionTimestamp"], "it waits for its claim"
        await cluster.client.delete(VOLUME_CLAIMS.path("default", "files"))
        await cluster.gone(VOLUMES.path(name="small"))


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


async def test_a_claim_whose_volume_is_gone_is_lost(tmp_path: Path) -> None:
    async with storage(tmp_path) as cluster:
        await cluster.make(claim("files"))
        _, made = await cluster.bound("files")
        path = VOLUMES.path(name=made["metadata"]["name"])
        await cluster.client.delete(path)
        await cluster.client.patch(path, {"metadata": {"finalizers": None}})
        await eventually(lambda: cluster.claim("files"), holds=lambda claim: claim["status"]["phase"] == "Lost")
        message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        assert await cluster.event_message("files", "ClaimLost") == message


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
    nodes = [make_node(zone, labels={ZONE: zone}) for zone in ("b", "c")]
    async with storage(tmp_path, *nodes) as cluster:
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


async def test_admin_volume_waits_for_the_pod_too(tmp_path: Path) -> None:
    local = {
        "name": "local",
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    reach = {
        "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]}
    }
    nodes = [make_node(zone, labels={ZONE: zone}) for zone in ("a", "b")]
    async with storage(tmp_path, *nodes) as cluster:
        await cluster.make(
            {"metadata": {"name": local.pop("name")}, **local},
            volume("disk", storageClassName="local", nodeAffinity=reach),
            claim("files", storageClassName="local"),
        )
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "files"}}]
        await cluster.client.create(PODS.path("default"), make_pod("p", volumes=volumes))
        pod = await eventually(
            lambda: cluster.client.get(PODS.path("default", "p")), holds=lambda pod: pod["spec"].get("nodeName")
        )
        assert pod["spec"]["nodeName"] == "b"
        mine, _ = await cluster.bound("files")
        assert mine["spec"]["volumeName"] == "disk"


async def test_pod_goes_only_where_its_volume_is_reachable(tmp_path: Path) -> None:
    zonal = storage_class("zonal", allowedTopologies=in_zones("a"))
    async with storage(tmp_path, make_node("n", labels={ZONE: "b"})) as cluster:
        await cluster.make(zonal, claim("files", storageClassName="zonal"))
        await cluster.bound("files")
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "files"}}]
        await cluster.client.create(PODS.path("default"), make_pod("p", volumes=volumes))
        pod = await eventually(
            lambda: cluster.client.get(PODS.path("default", "p")), holds=lambda pod: condition_of(pod, "PodScheduled")
        )
        message = (condition_of(pod, "PodScheduled") or {})["message"]
        assert "1 node(s) didn't match PersistentVolume's node affinity" in message
        assert "zone a" in await cluster.explained(pod)
        await add_node(cluster.client, make_node("other", labels={ZONE: "a"}))
        await eventually(
            lambda: cluster.client.get(PODS.path("default", "p")),
            holds=lambda pod: pod["spec"].get("nodeName") == "other",
        )


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
