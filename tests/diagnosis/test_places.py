"""Nodes: which take new pods, what their taints mean, which images they have, and what room there is on them."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from grid.diagnosis.nodeimages import REPORTED, ImageOnNodes, full_name, has_image, on_nodes, size_of
from grid.diagnosis.places import (
    is_for_other_work,
    lasting_taints,
    state_of,
    taint_text,
    takes_pods,
    tolerates,
    untolerated,
)
from grid.diagnosis.requests import Amounts, summary
from grid.diagnosis.resources import requested_amounts
from grid.diagnosis.room import NodeRoom
from grid.kube.objects import Node, Pod, Taint, Toleration
from grid.kube.store import Store
from tests.support import builders
from tests.support.builders import decode, node, pod
from tests.support.runtime import become

GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def a_node(**more: Any) -> Node:
    return decode(node("n1", cpu="8", memory="16Gi", **more), Node)


LEAVING = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


@pytest.mark.parametrize(
    "more", [{"unschedulable": True}, {"ready": False}, {"taints": [LEAVING]}, {"taints": [UNREACHABLE]}]
)
def test_cordoned_unready_or_leaving_node_takes_no_pods(more: dict[str, Any]) -> None:
    assert takes_pods(a_node())
    assert not takes_pods(a_node(**more))
    assert lasting_taints(a_node(**more)) == ()


def test_lasting_taint_keeps_off_pods_without_toleration() -> None:
    tainted = a_node(taints=[GPU_TAINT, {**GPU_TAINT, "effect": "PreferNoSchedule"}])
    assert takes_pods(tainted)
    (taint,) = untolerated(lasting_taints(tainted), [])
    assert taint_text(taint) == "nvidia.com/gpu=present:NoSchedule"
    assert not untolerated(tainted.spec.taints, [Toleration(key="nvidia.com/gpu", operator="Exists")])


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key="", value="v"), False),
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", value="v", effect="NoExecute"), False),
        (Toleration(key="k", value="w"), False),
        (Toleration(key="k", operator="Exists"), True),
    ],
)
def test_tolerations_match_as_in_kubernetes(toleration: Toleration, expected: bool) -> None:
    assert tolerates([toleration], Taint(key="k", value="v", effect="NoSchedule")) is expected


@pytest.mark.parametrize(
    ("key", "kind", "words"),
    [
        ("node.cloudprovider.kubernetes.io/uninitialized", "not_ready", "still starting"),
        ("node.cilium.io/agent-not-ready", "not_ready", "still starting"),
        ("startup-taint.cluster-autoscaler.kubernetes.io/gpu-driver", "not_ready", "still starting"),
        ("karpenter.sh/disrupted", "leaving", "being removed by Karpenter"),
        ("ToBeDeletedByClusterAutoscaler", "leaving", "being removed by the autoscaler"),
        ("aws-node-termination-handler/spot-itn", "leaving", "being reclaimed by the cloud"),
        ("node.kubernetes.io/out-of-service", "not_ready", "out of service"),
    ],
)
def test_taint_of_a_state_says_which(key: str, kind: str, words: str) -> None:
    assert state_of(key) == (kind, words)
    assert not is_for_other_work(key)


@pytest.mark.parametrize("key", ["nvidia.com/gpu", "dedicated", "lab.example/dedicated-for", "CriticalAddonsOnly"])
def test_taint_of_dedicated_nodes_keeps_them_for_other_work(key: str) -> None:
    assert state_of(key) is None
    assert is_for_other_work(key)


@pytest.mark.parametrize("key", ["maintenance", "lab.example/look-at-me", "karpenter.sh/other"])
def test_unknown_taint_is_given_no_meaning(key: str) -> None:
    assert state_of(key) is None
    assert not is_for_other_work(key)


def node_with(*images: tuple[str, int]) -> Node:
    reported = [{"names": [name], "sizeBytes": size} for name, size in images]
    return decode(builders.node("a", status={"images": reported}), Node)


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("python", "docker.io/library/python:latest"),
        ("python:3.11", "docker.io/library/python:3.11"),
        ("team/lab", "docker.io/team/lab:latest"),
        ("registry:5000/lab", "registry:5000/lab:latest"),
        ("localhost/lab:1", "localhost/lab:1"),
        ("quay.io/team/lab@sha256:ab", "quay.io/team/lab@sha256:ab"),
    ],
)
def test_a_name_is_completed_as_runtimes_do(image: str, full: str) -> None:
    assert full_name(image) == full


def test_an_image_is_found_by_its_full_name() -> None:
    assert has_image(node_with(("docker.io/library/python:3.11", 5)), "python:3.11", None) is True
    assert has_image(node_with(("docker.io/library/python:3.12", 5)), "python:3.11", None) is False


def test_node_that_reports_no_image_is_unknown() -> None:
    assert has_image(node_with(), "python:3.11", 100) is None


def test_full_report_omits_only_images_smaller_than_all_listed() -> None:
    full = node_with(*((f"lab:{number}", 1000 + number) for number in range(REPORTED)))
    assert has_image(full, "python:3.11", 5000) is False
    assert has_image(full, "python:3.11", 500) is None
    assert has_image(full, "python:3.11", None) is None


def test_size_is_told_by_any_node_with_the_image() -> None:
    nodes = [node_with(("lab:1", 7)), node_with(("docker.io/library/python:3.11", 9))]
    assert size_of("python:3.11", nodes) == 9
    assert size_of("ruby:3", nodes) is None


def test_nodes_share_what_they_have() -> None:
    first, other = node_with(("lab:1", 7)), node_with(("lab:1", 7))
    assert first.status.images[0] is other.status.images[0]


def test_image_asked_by_two_names_is_counted_for_both() -> None:
    names = ("lab:1", "docker.io/library/lab:1", "ruby:3")
    counted = on_nodes(names, [node_with(("lab:1", 7)), node_with(("lab:1", 7)), node_with()])
    assert counted == dict.fromkeys(names[:2], ImageOnNodes(7, 2, 3)) | {"ruby:3": ImageOnNodes(nodes=3)}


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
    for name in ("n1", "n2", "n3"):
        holding = [
            each_pod
            for each_pod in store.values()
            if each_pod.spec.node_name == name and each_pod.status.phase not in ("Succeeded", "Failed")
        ]
        expected = Counter[str]()
        for each_pod in holding:
            expected.update(requested_amounts(each_pod))
        assert Counter(room.requested(name)) == expected
        own = Counter[str]()
        for each_pod in holding:
            if each_pod.metadata.owner_references:
                own.update(requested_amounts(each_pod))
        assert Counter(room.own(name)) == own
        assert room.requested(name).get("pods", 0) == len(holding)
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
