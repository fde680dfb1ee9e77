"""How watches end and are asked for, beside what `tests/contract/test_watch.py` promises of any server."""

import asyncio
import json
import random
from pathlib import Path

import aiohttp

from grid.sandbox.apiserver import ApiServer, Tokens
from grid.sandbox.apiserver.store import ObjectStore
from grid.sandbox.apiserver.watching import Interest, Watch
from tests.sandbox.apiserver.conftest import Api

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_watch_from_before_restart_has_to_start_again(tmp_path: Path) -> None:
    tokens = Tokens.load_or_make(tmp_path / "tokens.json")
    for _ in range(2):
        server = ApiServer(tmp_path, tokens, rng=random.Random(1))
        version = server.store.version
        config_map = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": f"m{version}"}}
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
    headers = {"Authorization": f"Bearer {api.server.tokens.by_name['admin']}"}
    query = f"?watch=1&resourceVersion={api.server.store.version}"
    async with api.session.get(f"{api.url}{MAPS}{query}", headers=headers) as response:
        stopping = asyncio.create_task(api.server.stop())
        async with asyncio.timeout(60):
            assert await response.content.read() == b""
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
