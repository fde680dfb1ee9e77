"""Candidates are never fewer than what the selectors select, whatever came, changed and went; and not all there is."""

from collections.abc import Callable
from typing import TypeAlias

from hypothesis import given, strategies as st

from grid.sandbox.client import Object
from grid.sandbox.serviceproxy.endpoints import selects
from grid.sandbox.serviceproxy.index import PodIndex, ServiceIndex

_NAMES = st.sampled_from(["a", "b", "c"])
_LABELS = st.dictionaries(st.sampled_from(["app", "part", "x"]), st.sampled_from(["1", "2"]), max_size=3)
_Changes: TypeAlias = list[tuple[str, str, dict[str, str] | None]]
_CHANGES = st.lists(st.tuples(st.sampled_from(["n", "m"]), _NAMES, st.none() | _LABELS), max_size=25)


def service(namespace: str, name: str, selector: dict[str, str]) -> Object:
    return {"metadata": {"namespace": namespace, "name": name}, "spec": {"selector": selector}}


def pod(namespace: str, name: str, labels: dict[str, str]) -> Object:
    return {"metadata": {"namespace": namespace, "name": name, "labels": labels}}


def followed(index: PodIndex | ServiceIndex, changes: _Changes, make: Callable[..., Object]) -> list[Object]:
    """What is there after the changes, of which one to None is a deletion; the index has heard of each."""
    known: dict[tuple[str, str], Object] = {}
    for namespace, name, labels in changes:
        old = known.pop((namespace, name), None)
        new = None if labels is None else make(namespace, name, labels)
        index.changed(old, new)
        if new is not None:
            known[namespace, name] = new
    return list(known.values())


@given(pods=_CHANGES, services=_CHANGES)
def test_everything_that_is_selected_is_a_candidate(pods: _Changes, services: _Changes) -> None:
    pod_index, service_index = PodIndex(), ServiceIndex()
    known_pods, known_services = followed(pod_index, pods, pod), followed(service_index, services, service)
    for each in known_services:
        candidates = list(pod_index.candidates(each))
        assert all(known_pod in candidates for known_pod in known_pods if selects(each, known_pod))
        assert all(candidate in known_pods for candidate in candidates)
    for known_pod in known_pods:
        candidates = list(service_index.candidates(known_pod))
        assert len({each["metadata"]["name"] for each in candidates}) == len(candidates)
        assert all(each in candidates for each in known_services if selects(each, known_pod))


def test_two_hundred_clusters_do_not_look_at_each_other() -> None:
    pod_index, service_index = PodIndex(), ServiceIndex()
    labels = [{"part": "head", "id": str(number)} for number in range(200)]
    for number, selector in enumerate(labels):
        service_index.changed(None, service("n", f"head-{number}", selector))
        pod_index.changed(None, pod("n", f"head-{number}", selector))
        pod_index.changed(None, pod("n", f"worker-{number}", {"part": "worker", "id": str(number)}))
    assert all(len(pod_index.candidates(service("n", "any", selector))) == 2 for selector in labels)
    # The very first one could not know which of its labels is the rare one.
    assert all(len(list(service_index.candidates(pod("n", "any", selector)))) <= 2 for selector in labels)
