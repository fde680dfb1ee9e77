"""What controllers know: a client of the server, mirrors of its objects, and what is awaited of them. More is in `tests/kube`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from grid.core.errors import NotFound, Rejected
from grid.sandbox.client import CONFIG_MAPS, EVENTS, PODS, Client, EventRecorder, Mirror, Object, name_of, reference_to
from grid.sandbox.controllers.owned import Expectations
from tests.sandbox.support import FastClock, api_server
from tests.support.builders import NAMESPACE, pod
from tests.support.cluster import FakeCluster
from tests.support.virtual import cancelled
from tests.support.waiting import eventually


@dataclass
class Watched:
    mirror: Mirror
    heard: list[tuple[str, str]] = field(default_factory=list)

    def listen(self, old: Object | None, new: Object | None) -> None:
        kind = "added" if old is None else "deleted" if new is None else "changed"
        self.heard.append((kind, name_of(new or old or {})))


@asynccontextmanager
async def watched(cluster: FakeCluster) -> AsyncIterator[Watched]:
    """A mirror that has synced."""
    listener = Watched(Mirror(cluster, PODS))
    listener.mirror.subscribe(listener.listen)
    task = asyncio.create_task(listener.mirror.run())
    await listener.mirror.synced()
    await eventually(lambda: cluster.count("watch") == 1, "a watch is open")
    try:
        yield listener
    finally:
        await cancelled(task)


async def test_mirror_equals_the_server_and_reports_changes_once() -> None:
    cluster = FakeCluster()
    cluster.put(PODS, pod("a"))
    async with watched(cluster) as seen:
        cluster.put(PODS, pod("b") | {"unknown": {"field": [1, None]}})
        cluster.put(PODS, pod("a", node="n1"))
        cluster.remove(PODS, "b", namespace=NAMESPACE)
        await eventually(lambda: len(seen.heard) == 4, "all changes are heard of")
        assert seen.heard == [("added", "a"), ("added", "b"), ("changed", "a"), ("deleted", "b")]
        assert [*seen.mirror.values()] == cluster.objects(PODS)


async def test_recreation_between_lists_is_heard_as_two_events() -> None:
    cluster = FakeCluster()
    cluster.put(PODS, pod("a", uid="first"))
    async with watched(cluster) as seen:
        cluster.lose_events(2)
        cluster.remove(PODS, "a", namespace=NAMESPACE)
        cluster.put(PODS, pod("a", uid="second"))
        cluster.compact()
        cluster.drop_watch()
        await eventually(lambda: len(seen.heard) == 3, "the new object is heard of")
        assert seen.heard == [("added", "a"), ("deleted", "a"), ("added", "a")]


def pod_named(uid: str, **metadata: str) -> Object:
    return {"metadata": {"name": uid, "namespace": "ns", "uid": uid, **metadata}}


def test_created_pod_is_expected_until_mirror_shows_it() -> None:
    expectations = Expectations(FastClock())
    expectations.created("owner", "a")
    assert not expectations.settle("owner", [])
    assert expectations.settle("owner", [pod_named("a")])
    assert expectations.settle("owner", [])


def test_created_pod_that_vanished_unseen_is_not_expected() -> None:
    expectations = Expectations(FastClock())
    expectations.created("owner", "a")
    expectations.left("a")
    assert expectations.settle("owner", [])


def test_pod_gone_before_creation_answer_is_not_expected() -> None:
    expectations = Expectations(FastClock())
    expectations.left("a")
    expectations.created("owner", "a")
    assert expectations.settle("owner", [])


def test_deleted_pod_is_expected_until_it_ends() -> None:
    expectations = Expectations(FastClock())
    expectations.deleted("owner", "a")
    assert not expectations.settle("owner", [pod_named("a")])
    assert expectations.settle("owner", [pod_named("a", deletionTimestamp="2026-01-01T00:00:00Z")])


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with api_server(tmp_path, FastClock()) as api_client:
        yield api_client


async def test_a_hostile_name_stays_inside_its_path_segment(client: Client) -> None:
    with pytest.raises((NotFound, Rejected)):
        await client.get(CONFIG_MAPS.path("default", "../secrets?watch=true"))


async def about(client: Client, name: str) -> Object:
    config_map: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {}}
    made = await client.create(CONFIG_MAPS.path("default"), config_map)
    return reference_to(made, kind="ConfigMap", api_version="v1")


async def test_the_same_event_again_is_counted_not_repeated(client: Client) -> None:
    recorder = EventRecorder(client, "tester")
    subject = await about(client, "subject")
    await asyncio.gather(*(recorder.record(subject, "Tried", "It was tried.") for _ in range(5)))
    events = await client.list(EVENTS.path("default"))
    assert [(event["message"], event["count"], event["source"]) for event in events] == [
        ("It was tried.", 5, {"component": "tester"})
    ]


async def test_many_similar_events_combine_into_one(client: Client) -> None:
    recorder = EventRecorder(client, "tester")
    subject = await about(client, "subject")
    for index in range(15):
        await recorder.record(subject, "Tried", f"Attempt {index} failed.", type="Warning")
    events = await client.list(EVENTS.path("default"))
    combined = [event for event in events if event["message"].startswith("(combined from similar events): ")]
    assert len(events) == 11
    assert [(event["message"], event["count"]) for event in combined] == [
        ("(combined from similar events): Attempt 14 failed.", 5)
    ]


async def test_an_event_that_somebody_deleted_is_written_anew(client: Client) -> None:
    recorder = EventRecorder(client, "tester")
    subject = await about(client, "subject")
    await recorder.record(subject, "Tried", "It was tried.")
    first = (await client.list(EVENTS.path("default")))[0]
    await client.delete(EVENTS.path("default", first["metadata"]["name"]))
    await recorder.record(subject, "Tried", "It was tried.")
    assert [event["count"] for event in await client.list(EVENTS.path("default"))] == [1]


async def test_unwritable_event_does_not_fail_its_writer(caplog: pytest.LogCaptureFixture) -> None:
    async with Client.with_token("http://127.0.0.1:1", "none") as client:
        await EventRecorder(client, "tester").record({"name": "x", "namespace": "default"}, "Tried", "It was tried.")
    assert "event not written reason=Tried about=x" in caplog.text
