"""The room of nodes: sums that follow the pods' changes are those of a recount."""

from collections import Counter
from typing import Any

from hypothesis import given, settings, strategies as st

from grid.diagnosis.requests import Amounts, summary
from grid.diagnosis.resources import requested_amounts
from grid.diagnosis.room import NodeRoom
from grid.kube.objects import Pod
from grid.kube.store import Store
from tests.support.builders import decode, pod
from tests.support.runtime import become

APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


DAEMON = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "uid": "agent"}}


def a_pod(name: str, *, on: str = "", phase: str = "Running", cpu: str = "1", apart: bool = False, **more: Any) -> Pod:
    requests = {"cpu": cpu, "memory": "1Mi", "nvidia.com/gpu": "2", "example.com/fpga": "3"}
    spec = {"affinity": APART} if apart else {}
    return decode(pod(name, node=on, phase=phase, requests=requests, spec=spec, **more), Pod)


pods = st.builds(
    a_pod,
    st.sampled_from("abcde"),
    on=st.sampled_from(["", "n1", "n2"]),
    phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
    cpu=st.sampled_from(["500m", "2"]),
    apart=st.booleans(),
    owner=st.sampled_from([None, DAEMON]),
    uid=st.sampled_from(["1", "2"]),
)
changes = st.one_of(pods, st.sampled_from([f"compute-grid/{name}" for name in "abcde"]), st.lists(pods, max_size=5))


@settings(max_examples=100, deadline=None)
@given(st.lists(changes, max_size=25))
def test_room_sums_equal_a_recount_after_any_changes(each: list[Pod | str | list[Pod]]) -> None:
    store, room = Store[Pod]("pods"), NodeRoom()
    store.subscribe(room.pod_changed)
    for change in each:
        if isinstance(change, Pod):
            store.apply(change)
        elif isinstance(change, str):
            store.discard(change)
        else:
            become(store, change)
    for node in ("n1", "n2", "n3"):
        holding = [
            each_pod
            for each_pod in store.values()
            if each_pod.spec.node_name == node and each_pod.status.phase not in ("Succeeded", "Failed")
        ]
        expected = Counter[str]()
        for each_pod in holding:
            expected.update(requested_amounts(each_pod))
        assert Counter(room.requested(node)) == expected
        own = Counter[str]()
        for each_pod in holding:
            if each_pod.metadata.owner_references:
                own.update(requested_amounts(each_pod))
        assert Counter(room.own(node)) == own
        assert room.requested(node).get("pods", 0) == len(holding)
    running = [
        each_pod
        for each_pod in store.values()
        if each_pod.spec.node_name and each_pod.status.phase not in ("Succeeded", "Failed")
    ]
    apart = {each_pod.metadata.name: each_pod for each_pod in running if each_pod.spec.affinity is not None}
    assert {each_pod.metadata.name: each_pod for each_pod in room.keeping_apart()} == apart


def test_amounts_are_summed_over_all_makes_of_gpus() -> None:
    room = NodeRoom()
    room.pod_changed(None, a_pod("a", on="n1"))
    room.pod_changed(None, a_pod("b", on="n1"))
    assert room.amounts("n1") == Amounts(cpu=2000, memory=2 * 2**20, gpus=4)
    assert room.amounts("n2") == Amounts()
    assert summary({"nvidia.com/gpu": 1, "amd.com/gpu": 2, "cpu": 5}) == Amounts(cpu=5, gpus=3)


def test_node_that_no_pod_holds_any_more_is_forgotten() -> None:
    room, held = NodeRoom(), a_pod("a", on="n1")
    room.pod_changed(None, held)
    room.pod_changed(held, None)
    assert room.requested("n1") is room.requested("never seen")
