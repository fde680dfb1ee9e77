"""The store by itself: keys, indexes, versions, freshness."""

from grid.kube.hub import Hub, Topic
from grid.kube.objects import Node, Pod
from grid.kube.store import Freshness, Store, announce
from grid.runtime.caches import share_unchanged
from tests.support.builders import decode, node, pod


def store() -> Store[Pod]:
    return Store("pods", indexes={"node": lambda pod: pod.spec.node_name})


def a_pod(name: str, *, on: str = "") -> Pod:
    return decode(pod(name, node=on), Pod)


def test_objects_are_found_by_key_with_and_without_namespace() -> None:
    pods, nodes = store(), Store[Node]("nodes")
    pods.apply(a_pod("a"))
    nodes.apply(decode(node("n1"), Node))
    assert pods.get("compute-grid/a") == a_pod("a")
    assert nodes.get("n1") is not None
    assert pods.get("a") is None


def test_objects_are_counted_by_the_values_of_an_index() -> None:
    pods = store()
    for name, node_name in (("a", "n1"), ("b", "n1"), ("c", "n2"), ("d", "")):
        pods.apply(a_pod(name, on=node_name))
    pods.discard("compute-grid/c")
    assert pods.counts("node") == {"n1": 2}


def test_an_object_moves_between_index_values() -> None:
    pods = store()
    pods.apply(a_pod("a"))
    assert pods.by("node", "") == (), "an empty value is not indexed"
    pods.apply(a_pod("a", on="n1"))
    pods.apply(a_pod("b", on="n1"))
    assert [pod.metadata.name for pod in pods.by("node", "n1")] == ["a", "b"]
    pods.apply(a_pod("a", on="n2"))
    assert [pod.metadata.name for pod in pods.by("node", "n1")] == ["b"]
    pods.discard("compute-grid/b")
    assert pods.by("node", "n1") == ()


def test_changed_pod_shares_its_unchanged_spec_and_labels() -> None:
    pods = Store[Pod]("pods", share=share_unchanged)
    first, moved = a_pod("a"), a_pod("a", on="n1")
    ready = decode(pod("a", node="n1") | {"status": {"phase": "Running"}}, Pod)
    for changed in (first, moved, ready):
        assert pods.apply(changed)
    assert moved.spec is not first.spec
    assert moved.metadata.labels is first.metadata.labels
    assert ready.spec is moved.spec
    assert (ready.spec.node_name, ready.status.phase) == ("n1", "Running")


def test_listeners_are_told_what_was_and_what_is() -> None:
    pods = store()
    changes: list[tuple[Pod | None, Pod | None]] = []
    pods.subscribe(lambda old, new: changes.append((old, new)))
    here, there = a_pod("a", on="n1"), a_pod("a", on="n2")
    pods.apply(here)
    pods.apply(there)
    pods.discard(there.metadata.key)
    assert changes == [(None, here), (here, there), (there, None)]


def test_change_is_published_at_the_old_and_new_place() -> None:
    pods, hub = store(), Told()
    announce(pods, hub)
    pods.apply(a_pod("a", on="n1"))
    hub.topics.clear()
    pods.apply(a_pod("a", on="n2"))
    assert {("pods", "node", "n1"), ("pods", "node", "n2")} < hub.topics
    hub.topics.clear()
    pods.discard("compute-grid/a")
    assert ("pods", "node", "n2") in hub.topics


class Told(Hub):
    """Keeps what was published, as if somebody followed everything."""

    def __init__(self) -> None:
        super().__init__()
        self.topics: set[Topic] = set()

    def is_watched(self, kind: str) -> bool:
        return True

    def publish(self, topic: Topic) -> None:
        self.topics.add(topic)


def test_freshness_tells_first_list_failure_and_silence() -> None:
    pods, away = store(), "The cluster does not answer."
    assert pods.freshness(5.0) == Freshness(False, 0.0, "Not yet read from the cluster.")
    pods.mark_failed(away)
    assert pods.freshness(5.0) == Freshness(False, 0.0, away)
    pods.mark_heard(6.0)
    assert pods.freshness(7.0) == Freshness(False, 0.0, "The first list is being read from the cluster.")
    pods.mark_synced(10.0)
    assert pods.freshness(190.0) == Freshness(True, 0.0, "")
    assert pods.freshness(191.0) == Freshness(True, 181.0, "The cluster has sent nothing for longer than it should.")
    pods.mark_failed(away)
    assert pods.freshness(25.0) == Freshness(True, 15.0, away)
    assert pods.freshness(9.0) == Freshness(True, 0.0, away), "a clock before the last word"
    pods.mark_heard(26.0)
    for failed_at in (70.0, 80.0):
        pods.mark_failed(away, failed_at)
    assert pods.freshness(81.0) == Freshness(True, 11.0, away), "from the first failure, not from the last word"
    pods.mark_heard(30.0)
    assert pods.freshness(31.0) == Freshness(True, 0.0, "")


def test_every_change_counts_once() -> None:
    pods = store()
    assert not pods.discard("compute-grid/a")
    assert [pods.apply(a_pod(name)) for name in ("a", "b", "b")] == [True, True, False]
    assert pods.discard("compute-grid/a")
    assert (pods.version, len(pods), set(pods.keys())) == (3, 1, {"compute-grid/b"})
