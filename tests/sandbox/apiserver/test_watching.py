"""Watches see every change once, in order, and end in ways that clients understand."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from grid.sandbox.apiserver import ApiServer, Tokens
from grid.sandbox.apiserver.store import ObjectStore
from grid.sandbox.apiserver.watching import Interest, Watch
from tests.sandbox.apiserver.conftest import MERGE, Api

MAPS = "/api/v1/namespaces/default/configmaps"


class Events:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self) -> Any:
        async with asyncio.timeout(60):
            return json.loads(await self._response.content.readline())

    async def next_change(self) -> tuple[str, str]:
        while True:
            event = await self.next()
            if event["type"] != "BOOKMARK":
                return event["type"], event["object"]["metadata"]["name"]

    async def ended(self) -> bool:
        async with asyncio.timeout(60):
            return await self._response.content.read() == b""


@asynccontextmanager
async def watching(api: Api, query: str, path: str = MAPS) -> AsyncIterator[Events]:
    headers = {"Authorization": f"Bearer {api.server.tokens.by_name['admin']}"}
    async with api.session.get(f"{api.url}{path}?watch=1&{query}", headers=headers) as response:
        assert response.status == 200
        yield Events(response)


async def test_a_watch_goes_on_from_a_version_without_a_gap(api: Api) -> None:
    version = api.server.store.version
    await api.config_map("a")
    async with watching(api, f"resourceVersion={version}") as events:
        assert await events.next_change() == ("ADDED", "a")
        await api.ask("PATCH", f"{MAPS}/a", {"data": {"k": "2"}}, media=MERGE)
        await api.ask("DELETE", f"{MAPS}/a")
        assert await events.next_change() == ("MODIFIED", "a")
        assert await events.next_change() == ("DELETED", "a")


async def test_a_watch_without_a_version_begins_with_everything(api: Api) -> None:
    await api.config_map("a")
    async with watching(api, "") as events:
        assert [await events.next_change() for _ in range(2)] == [("ADDED", "a"), ("ADDED", "kube-root-ca.crt")]


async def test_leaving_the_selection_is_a_deletion_with_the_last_matching_state(api: Api) -> None:
    await api.config_map("a", labels={"w": "yes"})
    version = api.server.store.version
    async with watching(api, f"resourceVersion={version}&labelSelector=w%3Dyes") as events:
        await api.ask("PATCH", f"{MAPS}/a", {"metadata": {"labels": {"w": "no"}}}, media=MERGE)
        event = await events.next()
    assert event["type"] == "DELETED"
    assert event["object"]["metadata"]["labels"] == {"w": "yes"}
    assert int(event["object"]["metadata"]["resourceVersion"]) > version


async def test_bookmarks_tell_the_version_while_nothing_happens(api: Api) -> None:
    await api.config_map("a")
    async with watching(api, f"resourceVersion={api.server.store.version}&allowWatchBookmarks=true") as events:
        event = await events.next()
    assert event["type"] == "BOOKMARK"
    assert event["object"]["metadata"]["resourceVersion"] == str(api.server.store.version)
    assert event["object"]["kind"] == "ConfigMap"


async def test_a_version_that_is_forgotten_is_one_error_event(api: Api) -> None:
    version = api.server.store.version
    await api.config_map("a")
    api.server.store.forget("configmaps", api.server.store.version)
    async with watching(api, f"resourceVersion={version}") as events:
        event = await events.next()
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert await events.ended()


async def test_a_watch_ends_after_its_time(api: Api) -> None:
    async with watching(api, f"resourceVersion={api.server.store.version}&timeoutSeconds=1") as events:
        assert await events.ended()


async def test_a_watch_from_before_a_restart_has_to_start_again(tmp_path: Path) -> None:
    tokens = Tokens.load_or_make(tmp_path / "tokens.json")
    for _ in range(2):
        server = ApiServer(tmp_path, tokens, rng=random.Random(1))
        version = server.store.version
        name = f"m{version}"
        config_map = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}}
        url = await server.start()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as session:
            headers = {"Authorization": f"Bearer {tokens.by_name['admin']}"}
            async with session.post(url + MAPS, json=config_map, headers=headers) as response:
                assert response.status == 201
            query = f"?watch=1&resourceVersion={version - 1}&timeoutSeconds=1"
            async with session.get(url + MAPS + query, headers=headers) as response:
                first = json.loads(await response.content.readline())
        await server.stop()
    assert (first["type"], first["object"]["code"]) == ("ERROR", 410)


async def test_stopping_the_server_ends_its_watches(api: Api) -> None:
    async with watching(api, f"resourceVersion={api.server.store.version}") as events:
        stopping = asyncio.create_task(api.server.stop())
        assert await events.ended()
        await stopping


async def test_a_client_that_does_not_read_is_cut_off() -> None:
    store = ObjectStore()
    watch = Watch(store, Interest("pods"), after=store.version)
    big = "x" * 1_000_000
    for number in range(70):
        store.put("pods", f"p{number}", {"metadata": {"name": f"p{number}"}, "data": big})
    assert watch.overflowed
    watch.close()
    store.close()


async def test_many_watchers_see_the_same_changes(api: Api) -> None:
    version = api.server.store.version

    async def count(wanted: int) -> list[str]:
        async with watching(api, f"resourceVersion={version}") as events:
            return [(await events.next_change())[1] for _ in range(wanted)]

    watchers = [asyncio.create_task(count(50)) for _ in range(20)]
    await asyncio.gather(*(api.config_map(f"m{number}") for number in range(50)))
    seen = await asyncio.gather(*watchers)
    assert all(each == seen[0] for each in seen)
    assert len(set(seen[0])) == 50


@pytest.mark.parametrize(
    ("said", "is_watch"), [("True", True), ("", True), ("1", True), ("False", False), ("0", False)]
)
async def test_a_watch_is_asked_for_as_every_client_writes_it(api: Api, said: str, is_watch: bool) -> None:
    await api.config_map("a")
    answer = await api.ask("GET", f"/api/v1/namespaces/default/configmaps?watch={said}&timeoutSeconds=1")
    assert ("type" in answer.body) is is_watch
