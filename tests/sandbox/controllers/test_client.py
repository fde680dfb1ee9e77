"""The client speaks over TLS with a token, and tells what the server said. What it sends is held to in `tests/kube`."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from grid.core.errors import NotFound, Rejected
from grid.sandbox.client import CONFIG_MAPS, EVENTS, Client, EventRecorder, Object, reference_to
from tests.sandbox.support import FastClock, api_server


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with api_server(tmp_path, FastClock()) as api_client:
        yield api_client


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_a_hostile_name_stays_inside_its_path_segment(client: Client) -> None:
    with pytest.raises((NotFound, Rejected)):
        await client.get(CONFIG_MAPS.path("default", "../secrets?watch=true"))


async def about(client: Client, name: str) -> Object:
    made = await client.create(CONFIG_MAPS.path("default"), config_map(name))
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
