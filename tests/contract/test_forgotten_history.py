"""Who asks for a moment that the server no longer knows is told so with 410, and can begin again without losing anything.

A server forgets in its own time, after minutes: here it is made to. Events are used, because a real API server keeps no
cache of them, so that what its storage forgot is forgotten at once.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest_asyncio

from tests.contract.client import Client
from tests.contract.kubeconfig import Connection
from tests.contract.manifests import config_map, event
from tests.contract.space import Space


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a client remembers from before, and the events that there are."""

    version: str
    next_page: str
    names: list[str]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def forgotten(
    connection: Connection, namespace: str, forget_history: Callable[[str], None]
) -> AsyncIterator[Forgotten]:
    async with Client.connected(connection) as client:
        space = Space(client, namespace)
        about = (await space.create("configmaps", config_map("subject"))).ok(201)
        for name in "abc":
            (await space.create("events", event(name, about))).ok(201)
        before = (await space.listing("events", limit="1")).ok(200)["metadata"]
        for name in "def":
            (await space.create("events", event(name, about))).ok(201)
        now = (await space.listing("events")).ok(200)["metadata"]
    forget_history(now["resourceVersion"])
    yield Forgotten(before["resourceVersion"], before["continue"], list("abcdef"))


async def test_watch_from_forgotten_version_yields_one_error_event(space: Space, forgotten: Forgotten) -> None:
    async with space.watch("events", resourceVersion=forgotten.version) as watch:
        (error,) = await watch.rest()
    assert error["type"] == "ERROR"
    status = error["object"]
    assert (status["kind"], status["status"], status["code"], status["reason"]) == ("Status", "Failure", 410, "Expired")


async def test_client_that_lists_and_watches_again_misses_nothing(space: Space, forgotten: Forgotten) -> None:
    listed = (await space.listing("events")).ok(200)
    assert [item["metadata"]["name"] for item in listed["items"]] == forgotten.names
    async with space.watch("events", resourceVersion=listed["metadata"]["resourceVersion"]) as watch:
        (await space.patch("events", "a", {"count": 2})).ok(200)
        seen = await watch.next()
    assert (seen["type"], seen["object"]["metadata"]["name"]) == ("MODIFIED", "a")


async def test_forgotten_list_page_expires_and_offers_to_continue(space: Space, forgotten: Forgotten) -> None:
    refusal = (await space.listing("events", **{"continue": forgotten.next_page})).refused(410, "Expired")
    present = (await space.listing("events", **{"continue": refusal["metadata"]["continue"]})).ok(200)
    assert [item["metadata"]["name"] for item in present["items"]] == forgotten.names[1:]
