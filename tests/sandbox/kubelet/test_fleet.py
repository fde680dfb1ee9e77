"""The machine's nodes: booted, removed, and the same ones again after a restart."""

import asyncio
import ipaddress
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from grid.sandbox.client import NODES
from grid.sandbox.controllers.claimprotection import ClaimProtection
from grid.sandbox.controllers.volumeprotection import VolumeProtection
from grid.sandbox.imagestore import ImageStore
from grid.sandbox.kubelet import Fleet, FleetSettings, allocatable_of
from grid.sandbox.kubelet.addresses import AddressBook, NoAddressLeft
from grid.sandbox.kubelet.localvolumes import LocalVolumes
from grid.sandbox.pools import NodePool, PoolTaint
from tests.sandbox.kubelet.support import CLAIM_SPEC, FakeApi, JumpClock, pod, running
from tests.sandbox.support import running as running_part
from tests.support.waiting import eventually

POOLS = (
    NodePool("small", "m5.2xlarge", {"cpu": "8", "memory": "32Gi", "pods": "110"}, minimum=0, maximum=3, initial=1),
    NodePool(
        "gpu",
        "g4dn.xlarge",
        {"cpu": "4", "nvidia.com/gpu": "1"},
        minimum=0,
        maximum=1,
        taints=(PoolTaint("g", "p", "NoSchedule"),),
    ),
)
MakeFleet = Callable[[], Fleet]


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def clock() -> JumpClock:
    return JumpClock()


@pytest.fixture
async def make(tmp_path: Path, api: FakeApi, clock: JumpClock) -> AsyncIterator[MakeFleet]:
    fleets: list[Fleet] = []

    def make_fleet() -> Fleet:
        settings = FleetSettings(stop_seconds=1.0)
        images = ImageStore(tmp_path / "images")
        fleet = Fleet(api, data_dir=tmp_path / "data", images=images, pools=POOLS, settings=settings, clock=clock)
        fleets.append(fleet)
        return fleet

    yield make_fleet
    await fleets[-1].stop()


def ready(api: FakeApi, name: str) -> str:
    conditions = api.objects.get(f"/api/v1/nodes/{name}", {}).get("status", {}).get("conditions", ())
    return next((str(item["status"]) for item in conditions if item["type"] == "Ready"), "")


async def up(api: FakeApi, clock: JumpClock, name: str) -> dict[str, Any]:
    """Lets a node boot and become ready, and returns it."""
    await asyncio.sleep(0)
    clock.jump(3)
    await eventually(lambda: ready(api, name), f"{name} joins")
    clock.jump(2)
    await eventually(lambda: ready(api, name) == "True", f"{name} is ready")
    return api.objects[f"/api/v1/nodes/{name}"]


async def test_the_initial_nodes_join_not_ready_and_become_ready(
    make: MakeFleet, api: FakeApi, clock: JumpClock
) -> None:
    fleet = make()
    await fleet.start()
    (name,) = fleet.instances("small")
    api.down = True
    await asyncio.sleep(0)
    clock.jump(3)
    await eventually(lambda: api.cluster.count() > 0, "it tries to join a server that is away")
    api.down = False
    clock.jump(10)
    await eventually(lambda: ready(api, name) == "False", "it joins not ready")
    node = await up(api, clock, name)
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "m5.2xlarge"
    assert (node["status"]["capacity"]["cpu"], node["status"]["allocatable"]["cpu"]) == ("8", "7920m")
    address = ipaddress.ip_address(node["status"]["addresses"][0]["address"])
    assert address in ipaddress.ip_network("127.32.0.0/12")
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}"
    lease = (await eventually(lambda: api.objects, "its lease", holds=lambda objects: path in objects))[path]
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    renewed = lease["spec"]["renewTime"]
    clock.jump(10)
    await eventually(lambda: api.objects[path]["spec"]["renewTime"] != renewed, "the lease is renewed")


async def test_node_is_made_with_taints_and_removed_with_pods(
    make: MakeFleet, api: FakeApi, clock: JumpClock, tmp_path: Path
) -> None:
    fleet = make()
    await fleet.start()
    name = await fleet.create("gpu")
    assert name.startswith("gpu-")
    assert len(name) == len("gpu-") + 5
    with pytest.raises(OSError, match="already has its maximum of 1"):
        await fleet.create("gpu")
    with pytest.raises(OSError, match="no node pool other"):
        await fleet.create("other")
    node = await up(api, clock, name)
    assert node["spec"]["taints"] == [{"key": "g", "value": "p", "effect": "NoSchedule"}]
    body = pod("work", "sleep", "861")
    body["spec"]["nodeName"] = name
    await api.create("/api/v1/namespaces/default/pods", body)
    await eventually(lambda: api.container("work").get("ready"))
    await fleet.delete(name)
    await fleet.delete(name)
    assert fleet.instances("gpu") == []
    assert not running(tmp_path, "sleep", "861")
    assert not (tmp_path / "data" / "nodes" / name).exists()


async def test_restarted_fleet_has_same_nodes_and_addresses(make: MakeFleet, api: FakeApi, clock: JumpClock) -> None:
    fleet = make()
    await fleet.start()
    extra = await fleet.create("small")
    for name in fleet.instances("small"):
        await up(api, clock, name)
    names = fleet.instances("small")
    addresses = [api.objects[f"/api/v1/nodes/{name}"]["status"]["addresses"] for name in names]
    boot = api.objects[f"/api/v1/nodes/{extra}"]["status"]["nodeInfo"]["bootID"]
    await fleet.detach()
    api.cluster.remove(NODES, extra)
    again = make()
    await again.start()
    assert again.instances("small") == names
    await eventually(lambda: ready(api, extra), "the deleted node registers again")
    assert [api.objects[f"/api/v1/nodes/{name}"]["status"]["addresses"] for name in names] == addresses
    assert api.objects[f"/api/v1/nodes/{extra}"]["status"]["nodeInfo"]["bootID"] == boot
    assert not api.messages(extra, "Rebooted")


def test_two_clusters_of_one_machine_never_share_addresses(tmp_path: Path) -> None:
    books = [AddressBook(tmp_path / f"{number}.json", rng=random.Random(7)) for number in range(3)]
    for book in books:
        book.open()
    try:
        taken = [book.pod(f"uid-{number}") for book in books for number in range(50)]
        taken += [book.node(f"node-{number}") for book in books for number in range(20)]
        taken += [book.service(f"10.96.0.{number}") for book in books for number in range(20)]
        assert len(set(taken)) == len(taken)
        assert all(address.startswith("127.") for address in taken)
    finally:
        for book in books:
            book.close()


def test_addresses_are_kept_over_a_restart_and_reused_late(tmp_path: Path) -> None:
    book = AddressBook(tmp_path / "book.json")
    book.open()
    first = book.pod("a")
    assert book.pod("a") == first
    book.release_pod("a")
    assert book.pod("b") != first
    second = book.pod("b")
    book.close()
    again = AddressBook(tmp_path / "book.json")
    again.open()
    assert again.pod("b") == second
    again.close()
    (tmp_path / "book.json").write_text("{")
    damaged = AddressBook(tmp_path / "book.json")
    damaged.open()
    assert damaged.pod("a").startswith("127.")
    damaged.close()


def test_service_address_derives_from_cluster_ip_and_is_kept(tmp_path: Path) -> None:
    book = AddressBook(tmp_path / "book.json", rng=random.Random(7))
    book.open()
    first, second = book.service("10.96.3.7"), book.service("10.96.3.8")
    collides = str(ipaddress.ip_address("10.96.3.7") + 4095)
    other = book.service(collides)
    assert len({first, second, other}) == 3
    assert all(ipaddress.ip_address(place) in ipaddress.ip_network("127.48.0.0/12") for place in (first, other))
    book.release_service("10.96.3.7")
    book.release_service("10.96.3.7")
    assert book.service("10.96.3.7") == first
    book.close()
    again = AddressBook(tmp_path / "book.json")
    again.open()
    assert again.service(collides) == other
    assert set(again.services()) == {"10.96.3.7", "10.96.3.8", collides}
    again._services.update({f"10.97.0.{number}": number for number in range(1, 4096)})
    with pytest.raises(NoAddressLeft, match=r"for another Service: 10\.96\.3\.9"):
        again.service("10.96.3.9")
    again.close()


def test_a_node_keeps_something_back_for_itself() -> None:
    capacity = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110", "nvidia.com/gpu": "1"}
    assert allocatable_of(capacity) == {
        "cpu": "7920m",
        "memory": f"{31 * 2**20}Ki",
        "ephemeral-storage": str(90 * 2**30),
        "pods": "110",
        "nvidia.com/gpu": "1",
    }
    assert allocatable_of({"cpu": "500m", "memory": "512Mi"}) == {"cpu": "469m", "memory": f"{480 * 1024}Ki"}


async def test_claim_on_foreign_server_gets_a_volume(tmp_path: Path, api: FakeApi, clock: JumpClock) -> None:
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    spec = {"resources": {"requests": {"storage": "5Gi"}}, "accessModes": ["ReadWriteMany"]}
    mine = await api.create(claims, {"metadata": {"name": "project"}, "spec": spec})
    await api.create(claims, {"metadata": {"name": "other"}, "spec": {**CLAIM_SPEC, "storageClassName": "fast"}})
    protections = ClaimProtection(api, clock=clock), VolumeProtection(api, clock=clock)
    async with running_part(LocalVolumes(api, tmp_path, clock=clock), *protections):
        path = f"/api/v1/persistentvolumes/pvc-{mine['metadata']['uid']}"
        await eventually(lambda: path in api.objects, "the volume is made")
        volume = api.objects[path]["spec"]
        assert volume["claimRef"]["uid"] == mine["metadata"]["uid"]
        assert volume["hostPath"]["path"] == str(tmp_path / "default" / "project")
        assert volume["capacity"] == {"storage": "5Gi"}
        assert len([name for name in api.objects if "persistentvolumes/" in name]) == 1
        await api.delete(f"{claims}/project")
        await eventually(lambda: path not in api.objects, "the volume is removed")
