"""Where a passage leads: to the execution's own pod, once that has an address, and to no other."""

from dataclasses import replace
from typing import Any

import pytest

from dashboard.proxy.gate import GrantGate, Target
from dashboard.proxy.grants import Passage
from grid.kube.objects import Pod, RawObject
from tests.support.builders import decode, pod

PASSAGE = Passage(execution_id="abc", state="running", message="", port=8888)


def running(
    name: str, address: str, *, namespace: str = "compute-grid", phase: str = "Running", **fields: Any
) -> RawObject:
    made = pod(name, namespace=namespace, node="n1", phase=phase, **fields)
    made["status"]["podIP"] = address
    return made


def target(*pods: RawObject, passage: Passage = PASSAGE) -> Target | None:
    gate = GrantGate(lambda execution_id: [decode(one, Pod) for one in pods], namespace="compute-grid")
    return gate.target(passage)


def test_a_running_pod_is_reached_at_its_address() -> None:
    assert target(running("mine", "10.0.0.7")) == Target("10.0.0.7", 8888)


def test_a_pod_of_another_namespace_never_gets_the_owners_requests_whatever_its_labels_say() -> None:
    foreign = running("bait", "10.6.6.6", namespace="elsewhere")
    assert target(foreign) is None
    assert target(foreign, running("mine", "10.0.0.7")) == Target("10.0.0.7", 8888)


@pytest.mark.parametrize(("address", "phase"), [("", "Running"), ("10.0.0.7", "Pending"), ("10.0.0.7", "Failed")])
def test_a_pod_without_an_address_or_that_does_not_run_is_not_reached(address: str, phase: str) -> None:
    assert target(running("mine", address, phase=phase)) is None


@pytest.mark.parametrize(("execution_id", "secret"), [("abc", "s" * 60_000), ("a" * 60_000, "s")])
async def test_what_is_too_long_to_be_ours_is_neither_looked_up_nor_kept(execution_id: str, secret: str) -> None:
    """Without a database here, a look-up would fail."""
    gate = GrantGate(lambda execution_id: [], namespace="compute-grid")
    assert await gate.passage(execution_id, secret) is None


def test_an_address_of_the_sixth_version_is_written_as_addresses_of_requests_are() -> None:
    found = target(running("mine", "fd00::7"))
    assert found is not None
    assert found.netloc == "[fd00::7]:8888"


def test_of_a_cluster_the_head_answers_and_of_two_heads_the_one_that_stays() -> None:
    passage = replace(PASSAGE, component="head", port=8265)
    head = {"app.kubernetes.io/component": "head"}
    worker = running("worker", "10.0.0.1", labels={"app.kubernetes.io/component": "worker"})
    leaving = running("old", "10.0.0.2", labels=head, deletionTimestamp="2026-03-04T09:00:00Z")
    assert target(worker, passage=passage) is None
    assert target(worker, leaving, passage=passage) == Target("10.0.0.2", 8265)
    assert target(worker, leaving, running("new", "10.0.0.3", labels=head), passage=passage) == Target("10.0.0.3", 8265)
