"""Candidates are never fewer than what the selectors select, whatever came, changed and went; and not all there is."""

from hypothesis import given
from hypothesis import strategies as st

from grid.sandbox.client import Object
from grid.sandbox.serviceproxy.endpoints import selects
from grid.sandbox.serviceproxy.index import PodIndex, ServiceIndex

_NAMES = st.sampled_from(["a", "b", "c"])
_LABELS = st.dictionaries(st.sampled_from(["app", "part", "x"]), st.sampled_from(["1", "2"]), max_size=3)
_CHANGES = st.lists(st.tuples(st.sampled_from(["n", "m"]), _NAMES, st.none() | _LABELS), max_size=25)


def service(namespace: str, name: str, selector: dict[str, str]) -> Object:
    return {"metadata": {"namespace": namespace, "name": name}, "spec": {"selector": selector}}


def pod(namespace: str, name: str, labels: dict[str, str]) -> Object:
    return {"metadata": {"namespace": namespace, "name": name, "labels": labels}}


@given(pods=_CHANGES, services=_CHANGES)
def test_everything_that_is_selected_is_a_candidate(
    pods: list[tuple[str, str, dict[str, str] | None]], services: list[tuple[str, str, dict[str, str] | None]]
) -> None:
    """A change to None is a deletion."""
    pod_index, service_index = PodIndex(), ServiceIndex()
    known_pods: dict[tuple[str, str], Object] = {}
    known_services: dict[tuple[str, str], Object] = {}
    for namespace, name, labels in pods:
        old = known_pods.pop((namespace, name), None)
        new = None if labels is None else pod(namespace, name, labels)
        pod_index.changed(old, new)
        if new is not None:
            known_pods[namespace, name] = new
    for namespace, name, selector in services:
        old = known_services.pop((namespace, name), None)
        new = None if selector is None else service(namespace, name, selector)
        service_index.changed(old, new)
        if new is not None:
            known_services[namespace, name] = new
    for each in known_services.values():
        wanted = [known_pod for known_pod in known_pods.values() if selects(each, known_pod)]
        assert [
            known_pod
            for known_pod in known_pods.values()
            if known_pod in list(pod_index.candidates(each)) and selects(each, known_pod)
        ] == wanted
        assert all(known_pod in known_pods.values() for known_pod in pod_index.candidates(each))
    for known_pod in known_pods.values():
        candidates = list(service_index.candidates(known_pod))
        assert len({each["metadata"]["name"] for each in candidates}) == len(candidates)
        assert all(each in candidates for each in known_services.values() if selects(each, known_pod))


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
