"""Node groups of the autoscaler, under the names that clouds give them, and the pools that they are of."""

from dataclasses import replace

import pytest

from grid.kube.objects import ConfigMap, Metadata
from grid.kube.pools import NodeGroup, NodeGroups, PoolName, cloud_names, groups_by_pool, names_as_text, names_from_text
from grid.kube.store import Store

UUID = "0cc1a2b3-4c5d-6e7f-8a9b-0c1d2e3f4a5b"
GROUP = f"eks-gpu-a-{UUID}"
MIG = "https://www.googleapis.com/compute/v1/projects/lab/zones/z/instanceGroups"


def pool_of(group: str, *names: tuple[str, str]) -> str:
    """Return the key under which a group of this name is known."""
    (pool,) = groups_by_pool({group: NodeGroup(group, 0, 5, 1)}, [PoolName(*name) for name in names])
    return pool


@pytest.mark.parametrize(
    ("group", "cloud"),
    [
        (f"eks-gpu-pool-{UUID}", "gpu-pool"),
        ("eks-gpu-pool-0cc1", "gpu-pool"),
        ("eksctl-lab-nodegroup-gpu-pool-NodeGroup-1ABC2DEF", "gpu-pool"),
        (f"{MIG}/gke-lab-gpu-pool-1a2b3c4d-grp", "gpu-pool"),
        ("aks-gpupool-12345678-vmss", "gpupool"),
        ("MachineDeployment/capi/lab-gpu-pool", "gpu-pool"),
    ],
)
def test_group_is_of_the_pool_whose_nodes_name_it(group: str, cloud: str) -> None:
    assert pool_of(group, ("fast", cloud), ("slow", "cpu")) == "fast"
    assert pool_of(group, ("slow", "cpu")) == group, "it keeps its own name"


@pytest.mark.parametrize(
    ("group", "names", "pool"),
    [
        ("gpu", [("gpu", "other"), ("fast", "gpu")], "gpu"),  # an equal name goes first
        (f"eks-gpu-large-{UUID}", [("a", "gpu"), ("b", "gpu-large")], "b"),
        (f"eks-gpu-large-{UUID}", [("a", "gpu"), ("b", "cpu")], f"eks-gpu-large-{UUID}"),  # another group of the cloud
        ("gke-gpu-cpu-1a2b3c4d-grp", [("a", "gpu"), ("b", "cpu")], "b"),  # the cluster's name is gpu
        ("lab-gpu-cpu", [("a", "gpu"), ("b", "cpu")], "lab-gpu-cpu"),
        ("lab-gpu", [("a", "gpu"), ("b", "gpu")], "lab-gpu"),  # one group of the cloud with nodes of two pools
        ("lab-gpus", [("a", "gpu")], "lab-gpus"),  # only a whole part
    ],
)
def test_group_of_several_pools_or_none_keeps_its_name(group: str, names: list[tuple[str, str]], pool: str) -> None:
    assert pool_of(group, *names) == pool


@pytest.mark.parametrize(
    ("names", "pool"),
    [
        ([PoolName("gpu", has_nodes=False)], "gpu"),
        ([PoolName("gpu", has_nodes=False), PoolName("gpu-a", has_nodes=False)], "gpu-a"),
        ([PoolName("gpu", has_nodes=False), PoolName("a", has_nodes=False)], GROUP),
        ([PoolName("gpu", "gpu-b"), PoolName("gpu", has_nodes=False)], GROUP),  # its nodes say another group
        ([PoolName("gpu")], GROUP),  # its nodes say nothing, so it may be another pool's
        ([PoolName("gpu", has_nodes=False), PoolName("fast", "gpu-a")], "fast"),  # what nodes say goes first
    ],
)
def test_group_without_nodes_is_known_by_pool_name(names: list[PoolName], pool: str) -> None:
    assert groups_by_pool({GROUP: NodeGroup(GROUP, 0, 5, 1)}, names).keys() == {pool}


@pytest.mark.parametrize(
    ("group", "pool", "cloud", "is_joined"),
    [
        (f"eks-gpu-1b-{UUID}", "gpu", "gpu-1a", True),
        ("lab-gpu-us-east-1b", "gpu", "lab-gpu-us-east-1a", True),
        (f"{MIG}/lab-gpu-europe-west1-c", "gpu", "lab-gpu-europe-west1-b", True),
        ("lab-gpu-az2", "gpu", "lab-gpu-az1", True),
        ("gpu-large-1b", "gpu", "gpu-1a", False),
        ("team-1b", "team-1a", "team-1a", False),  # each zone is a pool
    ],
)
def test_group_without_nodes_joins_its_pool_in_other_zones(group: str, pool: str, cloud: str, is_joined: bool) -> None:
    assert pool_of(group, (pool, cloud)) == (pool if is_joined else group)


def test_pool_with_a_group_of_its_name_takes_no_other() -> None:
    groups = {name: NodeGroup(name, 0, 5, 1) for name in ("default", "default-gpu")}
    assert groups_by_pool(groups, [PoolName("default", has_nodes=False)]) == groups


def sum_of(*groups: NodeGroup) -> NodeGroup:
    names = [PoolName("gpu", f"zone-{place}") for place in range(len(groups))]
    named = {f"lab/zone-{place}": replace(group, name=f"lab/zone-{place}") for place, group in enumerate(groups)}
    (group,) = groups_by_pool(named, names).values()
    return group


def test_groups_of_one_pool_are_summed() -> None:
    assert sum_of(NodeGroup("", 1, 3, 2, False), NodeGroup("", 0, 4, 1, False)) == NodeGroup("gpu", 1, 7, 3, False)
    assert sum_of(NodeGroup("", 1, 3, 2, True, "sold out")) == NodeGroup("gpu", 1, 3, 2, True, "sold out")


@pytest.mark.parametrize(
    ("others", "is_backed_off"),
    [
        ([(4, True)], True),
        ([(4, False)], False),
        ([(1, False)], True),  # which is at its maximum
        ([(4, None)], None),
        ([(4, None), (4, False)], False),
    ],
)
def test_pool_is_out_of_stock_with_all_growing_groups(
    others: list[tuple[int, bool | None]], is_backed_off: bool | None
) -> None:
    rest = [NodeGroup("", 0, maximum, 1, state) for maximum, state in others]
    group = sum_of(NodeGroup("", 0, 3, 2, True, "sold out"), *rest)
    assert (group.is_backed_off, group.error) == (is_backed_off, "sold out" if is_backed_off else "")


def test_nodes_tell_all_cloud_names_of_their_pool() -> None:
    labels = {"eks.amazonaws.com/nodegroup": "a", "alpha.eksctl.io/nodegroup-name": "b", "x": "c"}
    assert cloud_names("gpu", labels) == [PoolName("gpu", "a"), PoolName("gpu", "b")]
    assert names_from_text(names_as_text("gpu", labels)) == cloud_names("gpu", labels)
    assert names_from_text(names_as_text("gpu", {})) == [PoolName("gpu")]
    assert names_as_text("", labels) == ""


def status(*names: str) -> ConfigMap:
    groups = ", ".join(f"{{name: {name}, health: {{minSize: 0, maxSize: 2}}}}" for name in names)
    metadata = Metadata(name="cluster-autoscaler-status", namespace="kube-system")
    return ConfigMap(metadata=metadata, data={"status": f"nodeGroups: [{groups}]"})


def test_groups_are_matched_once_for_each_version() -> None:
    store, names, version = Store[ConfigMap]("config_maps"), [PoolName("fast", "gpu")], [0]
    groups = NodeGroups(store, names=lambda: names, version=lambda: version[0])
    assert groups.by_pool() == {}
    store.apply(status("lab-gpu"))
    first = groups.by_pool()
    assert first.keys() == {"fast"}
    assert groups.by_pool() is first
    names[:] = [PoolName("slow", "gpu")]
    assert groups.by_pool() is first
    version[0] = 1
    assert groups.by_pool().keys() == {"slow"}
    store.apply(status("lab-gpu", "cpu"))
    assert groups.by_pool().keys() == {"slow", "cpu"}
