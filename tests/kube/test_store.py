"""The store and the hub: keys, indexes and versions; nothing is lost, much is merged, and nobody is woken for nothing."""

import asyncio
import threading
import time

import pytest

from grid.kube.hub import Hub, Topic
from grid.kube.objects import DEFAULT_SCHEDULER, Node, Pod, PodSpec
from grid.kube.resources import PODS
from grid.kube.store import Freshness, Store, announce
from grid.runtime.caches import share_unchanged
from tests.kube.following import cluster_of, following
from tests.support.builders import decode, node, pod
from tests.support.virtual import passes, until, virtual_time


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


def test_heartbeat_is_no_change_and_leaves_the_newest_version() -> None:
    nodes, changes = Store[Node]("nodes", indexes={"pool": lambda node: "p"}, has_heartbeats=True), []
    nodes.subscribe(lambda old, new: changes.append((old, new)))
    body = node("n1")
    for version in ("7", "8"):
        body["metadata"]["resourceVersion"] = version
        assert nodes.apply(decode(body, Node)) is (version == "7")
    (known,) = nodes.by("pool", "p")
    assert (known, nodes.version, len(changes)) == (nodes.get("n1"), 1, 1)
    assert known.metadata.resource_version == "8"
    body["metadata"] |= {"resourceVersion": "9", "labels": {"a": "b"}}
    assert nodes.apply(decode(body, Node))
    assert (known.metadata.resource_version, nodes.version) == ("8", 2)


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


@virtual_time
async def test_a_subscriber_hears_of_its_topics_only() -> None:
    hub = Hub()
    with hub.subscribe({"pods", "nodes"}) as subscription:
        hub.publish("events")
        hub.publish("nodes")
        assert await subscription.changed() == {"nodes"}
        hub.publish("pods")
        hub.publish("nodes")
        hub.publish("pods")
        assert await subscription.changed() == {"pods", "nodes"}


@virtual_time
async def test_leaving_unsubscribes_and_is_watched_says_so() -> None:
    hub = Hub()
    assert not hub.is_watched("pods")
    with hub.subscribe({"pods"}):
        assert hub.is_watched("pods")
        with hub.subscribe({"pods"}):
            pass
        assert hub.is_watched("pods"), "one of two has left"
    assert not hub.is_watched("pods")
    hub.publish("pods")


@virtual_time
async def test_last_of_many_quick_changes_is_seen() -> None:
    cluster = cluster_of("a")
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        wake_ups = 0
        seen = 0

        async def watch() -> None:
            nonlocal wake_ups, seen
            with it.hub.subscribe({"pods"}) as subscription:
                while True:
                    await subscription.changed()
                    wake_ups += 1
                    seen = len(it.store)

        looking = asyncio.create_task(watch())
        for number in range(300):
            cluster.put(PODS, pod(f"p{number}"))
            await passes(0.0005)
        await until(lambda: seen == 301, within=1)
        assert wake_ups <= 301
        looking.cancel()


async def test_publishing_from_another_thread_wakes_too() -> None:
    hub = Hub()
    with hub.subscribe({"executions"}) as subscription:
        thread = threading.Thread(target=hub.publish, args=("executions",))
        thread.start()
        async with asyncio.timeout(10):
            assert await subscription.changed() == {"executions"}
        thread.join()


@virtual_time
async def test_subscriber_that_follows_another_topic_leaves_the_former() -> None:
    hub = Hub()
    with hub.subscribe({"pods"}) as subscription:
        subscription.follow({("nodes", "pool", "gpu")})
        hub.publish("pods")
        hub.publish(("nodes", "pool", "gpu"))
        assert await subscription.changed() == {("nodes", "pool", "gpu")}
        assert not hub.is_watched("pods")
        assert hub.is_watched("nodes")
    assert not hub.is_watched("nodes")


@virtual_time
async def test_subscriber_knows_since_when_it_lacks_changes() -> None:
    hub = Hub()
    with hub.subscribe({"pods", "nodes"}) as subscription:
        subscription.mark("pods")
        assert subscription.published_since() is None, "a mark of the subscriber's own is no news"
        hub.publish("pods")
        first = time.monotonic()
        hub.publish("nodes")
        since = subscription.published_since()
        assert since is not None and since <= first
        assert subscription.published_since() is None
        hub.publish("pods")  # still dirty, and lacked again
        assert (subscription.published_since() or 0.0) >= first


@virtual_time
async def test_resting_subscriber_is_woken_once_after_its_rest() -> None:
    hub, loop = Hub(), asyncio.get_running_loop()
    with hub.subscribe({"pods", "nodes"}) as subscription:
        hub.publish("pods")
        loop.call_later(1, hub.publish, "nodes")
        assert await subscription.changed(not_before=loop.time() + 2) == {"pods", "nodes"}
        assert loop.time() == pytest.approx(2)
        loop.call_later(5, hub.publish, "pods")
        assert await subscription.changed(not_before=loop.time() + 2) == {"pods"}
        assert loop.time() == pytest.approx(7), "after its rest it is woken at once"


TOKEN = {"name": "kube-api-access-2lwbc", "projected": {"sources": []}}


def spec_of(**spec: object) -> PodSpec:
    return decode(pod("p", spec=spec), Pod).spec


def test_volumes_without_a_claim_are_not_kept() -> None:
    claim = {"name": "files", "persistentVolumeClaim": {"claimName": "project-1"}}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}
    kept = spec_of(volumes=[TOKEN, claim, scratch]).volumes
    assert [volume.claim_of("p") for volume in kept] == ["project-1", "p-scratch"]


def test_a_pod_that_demands_nothing_shares_its_empty_values() -> None:
    plain = {"volumes": [TOKEN], "schedulerName": "default-scheduler", "preemptionPolicy": "PreemptLowerPriority"}
    first, second = spec_of(**plain), spec_of(**plain)
    assert first.volumes is second.volumes is PodSpec().volumes
    assert first.scheduler_name is second.scheduler_name is DEFAULT_SCHEDULER
    assert first.preemption_policy is second.preemption_policy
    assert first.affinity is None
    assert first.containers[0].ports is second.containers[0].ports


def test_only_host_ports_are_kept() -> None:
    ports = [{"containerPort": 8888}, {"containerPort": 80, "hostPort": 8080, "protocol": "UDP"}]
    (kept,) = spec_of(containers=[{"name": "run", "ports": ports}]).containers[0].ports
    assert (kept.host_port, kept.protocol, kept.host_ip) == (8080, "UDP", "")
