"""A watch from a version shows every change after it, once, in order, and can be resumed without a gap."""

import asyncio

import pytest
import pytest_asyncio

from tests.contract.client import Answer, Object
from tests.contract.manifests import config_map, pod
from tests.contract.space import Space


async def version_of(space: Space, resource: str = "configmaps") -> str:
    return str((await space.listing(resource)).ok(200)["metadata"]["resourceVersion"])


def seen(event: Object) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"]["name"]


async def test_every_change_after_the_version_arrives_in_order(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(f"{name}-before"))).ok(201)
    start = await version_of(space)
    made = (await space.create("configmaps", config_map(name, {"n": "0"}))).ok(201)
    async with space.watch("configmaps", resourceVersion=start) as watch:
        changed = [(await space.patch("configmaps", name, {"data": {"n": str(n)}})).ok(200) for n in range(1, 6)]
        (await space.delete("configmaps", name)).ok(200)
        events = [await watch.next() for _ in range(7)]
    assert [event["type"] for event in events] == ["ADDED"] + ["MODIFIED"] * 5 + ["DELETED"]
    assert [event["object"] for event in events[:6]] == [made, *changed]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    assert versions[0] > int(start)


async def test_deletion_event_has_last_state_and_new_version(space: Space, name: str) -> None:
    made = (await space.create("configmaps", config_map(name, {"last": "words"}))).ok(201)
    async with space.watch("configmaps", resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        (await space.delete("configmaps", name)).ok(200)
        event = await watch.next()
    assert seen(event) == ("DELETED", name)
    assert event["object"]["data"] == {"last": "words"}
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


async def test_object_entering_and_leaving_selector_is_added_and_deleted(space: Space, name: str) -> None:
    start = await version_of(space)
    async with space.watch("configmaps", labelSelector=f"team={name}", resourceVersion=start) as watch:
        (await space.create("configmaps", config_map(name))).ok(201)
        entered = (await space.patch("configmaps", name, {"metadata": {"labels": {"team": name}}})).ok(200)
        (await space.patch("configmaps", name, {"data": {"k": "2"}})).ok(200)
        left = (await space.patch("configmaps", name, {"metadata": {"labels": {"team": "other"}}})).ok(200)
        (await space.patch("configmaps", name, {"data": {"k": "unseen"}})).ok(200)
        (await space.patch("configmaps", name, {"metadata": {"labels": {"team": name}}})).ok(200)
        events = [await watch.next() for _ in range(4)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED"]
    assert events[0]["object"] == entered
    assert events[2]["object"]["metadata"]["labels"] == {"team": name}, "the state it was last selected in"
    assert events[2]["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
    assert events[3]["object"]["data"]["k"] == "unseen"


async def test_finished_pod_leaves_the_watch_of_unfinished_pods(space: Space, name: str) -> None:
    (await space.create("pods", pod(name, labels={"of": name}))).ok(201)
    query = {"labelSelector": f"of={name}", "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
    async with space.watch("pods", resourceVersion=await version_of(space, "pods"), **query) as watch:
        (await space.patch("pods", name, {"status": {"phase": "Succeeded"}}, sub="status")).ok(200)
        assert seen(await watch.next()) == ("DELETED", name)


async def test_resumed_watch_has_no_gap_and_no_repetition(space: Space, name: str) -> None:
    last, got = await version_of(space), []
    for round_number in range(3):
        for index in range(3):
            (await space.create("configmaps", config_map(f"{name}-{round_number}-{index}", labels={"of": name}))).ok(
                201
            )
        # Only two of three are read before the connection is dropped, as a lost network would.
        async with space.watch("configmaps", labelSelector=f"of={name}", resourceVersion=last) as watch:
            for _ in range(2):
                event = await watch.next()
                last = event["object"]["metadata"]["resourceVersion"]
                got.append(event["object"]["metadata"]["name"])
    async with space.watch("configmaps", labelSelector=f"of={name}", resourceVersion=last) as watch:
        got += [(await watch.next())["object"]["metadata"]["name"] for _ in range(3)]
    assert got == [f"{name}-{round_number}-{index}" for round_number in range(3) for index in range(3)]


async def test_a_change_that_changes_nothing_is_no_event(space: Space, name: str) -> None:
    made = (await space.create("configmaps", config_map(name, {"a": "1"}, labels={"of": name}))).ok(201)
    start = made["metadata"]["resourceVersion"]
    async with space.watch("configmaps", labelSelector=f"of={name}", resourceVersion=start) as watch:
        assert (await space.patch("configmaps", name, {"data": {"a": "1"}})).ok(200) == made
        (await space.patch("configmaps", name, {"data": {"a": "2"}})).ok(200)
        assert (await watch.next())["object"]["data"] == {"a": "2"}


async def test_watch_ends_cleanly_at_its_timeout(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name, labels={"of": name}))).ok(201)
    async with space.watch("configmaps", labelSelector=f"of={name}", timeoutSeconds="1") as watch:
        assert [seen(event) for event in await watch.rest()] == [("ADDED", name)]


async def test_bookmarks_advance_a_quiet_watch_on_request(space: Space, name: str) -> None:
    # A server sends the last bookmark about two seconds before it ends a watch, so a short watch need not wait a minute.
    query = {"labelSelector": f"nobody={name}", "resourceVersion": await version_of(space), "timeoutSeconds": "5"}
    async with (
        space.watch("configmaps", allowWatchBookmarks="true", **query) as watch,
        space.watch("configmaps", **query) as without,
    ):
        other = (await space.create("configmaps", config_map(name))).ok(201)
        events, nothing = await asyncio.gather(watch.rest(timeout=60), without.rest(timeout=60))
    assert nothing == []
    assert {event["type"] for event in events} == {"BOOKMARK"}
    mark = events[-1]["object"]
    assert (mark["kind"], mark["apiVersion"]) == ("ConfigMap", "v1")
    assert int(mark["metadata"]["resourceVersion"]) >= int(other["metadata"]["resourceVersion"])
    async with space.watch("configmaps", resourceVersion=mark["metadata"]["resourceVersion"]) as resumed:
        (await space.delete("configmaps", name)).ok(200)
        assert seen(await resumed.next()) == ("DELETED", name)


STREAMING_LIST = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}


async def begin_streaming_list(space: Space) -> Answer:
    """Of nothing, so that an answer that is no refusal is one bookmark."""
    nothing = {"watch": "true", "timeoutSeconds": "1", "labelSelector": "nobody=nothing"}
    return await space.listing("configmaps", **nothing, **STREAMING_LIST)


@pytest_asyncio.fixture
async def streaming_lists(space: Space) -> None:
    if (await begin_streaming_list(space)).status != 200:
        pytest.skip("streaming lists came with Kubernetes 1.32, and this server does not serve them")


@pytest.mark.usefixtures("streaming_lists")
async def test_streaming_list_sends_items_bookmark_and_then_changes(space: Space, name: str) -> None:
    for suffix in "abc":
        (await space.create("configmaps", config_map(f"{name}-{suffix}", labels={"of": name}))).ok(201)
    (await space.create("configmaps", config_map(f"{name}-other"))).ok(201)
    listed = (await space.listing("configmaps", labelSelector=f"of={name}")).ok(200)
    async with space.watch("configmaps", labelSelector=f"of={name}", **STREAMING_LIST) as watch:
        events = [await watch.next() for _ in range(4)]
        (await space.delete("configmaps", f"{name}-b")).ok(200)
        assert seen(await watch.next()) == ("DELETED", f"{name}-b")
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "ADDED", "BOOKMARK"]
    objects = [{key: event["object"][key] for key in ("metadata", "data")} for event in events[:3]]
    assert objects == [{key: item[key] for key in ("metadata", "data")} for item in listed["items"]]
    end = events[3]["object"]["metadata"]
    assert end["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(end["resourceVersion"]) >= int(listed["metadata"]["resourceVersion"])
    async with space.watch("configmaps", labelSelector=f"of={name}", resourceVersion=end["resourceVersion"]) as resumed:
        assert seen(await resumed.next()) == ("DELETED", f"{name}-b")


async def test_streaming_list_is_not_mistaken_for_a_watch(space: Space) -> None:
    answer = await begin_streaming_list(space)
    if answer.status == 200:
        assert answer.body["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    else:
        answer.refused(422, "Invalid")
