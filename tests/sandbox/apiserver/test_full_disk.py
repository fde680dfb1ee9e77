"""A disk that is really full: changes are refused in a sentence, nothing that was answered is lost, and all goes on with room."""

import logging
import random
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from grid.sandbox.apiserver import ApiServer, Tokens
from grid.sandbox.apiserver.status import Failure
from grid.sandbox.apiserver.store import ObjectStore
from tests.sandbox.apiserver.conftest import Api, Clock
from tests.support.smalldisk import fill, small_disk
from tests.support.waiting import eventually

_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "8m") as place:
        if place is None:
            pytest.skip("only root may mount a disk of a certain size")
        yield place


@pytest_asyncio.fixture
async def small(disk: Path) -> AsyncIterator[Api]:
    """An API server whose data is on that disk."""
    clock = Clock()
    server = ApiServer(disk, Tokens.load_or_make(disk / "tokens.json"), clock=clock, rng=random.Random(1))
    url = await server.start()
    trust = ssl.create_default_context(cadata=server.certificate.authority)
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
            yield Api(server, session, url, clock)
    finally:
        await server.stop()


def put(store: ObjectStore, name: str) -> None:
    store.put("pods", f"default/{name}", {"metadata": {"name": name}, "filler": "x" * 20_000})


def test_the_store_keeps_what_it_took_and_nothing_else(disk: Path) -> None:
    path = disk / "cluster.sqlite3"
    store = ObjectStore(path)
    ballast = fill(disk)
    taken: list[str] = []
    refused = 0
    for number in range(200):
        try:
            put(store, f"p{number}")
            taken.append(f"default/p{number}")
        except Failure as failure:
            refused += 1
            assert failure.code == 500
            assert str(path) in failure.message and "is full, nothing was saved: make room there" in failure.message
    assert refused > 100
    version = store.version
    assert [record.key for record in store.records("pods")] == sorted(taken)
    ballast.unlink()
    put(store, "with-room")
    assert store.version == version + 1
    store.close()
    again = ObjectStore(path)
    assert [record.key for record in again.records("pods")] == sorted([*taken, "default/with-room"])
    assert again.version == version + 1
    again.close()


async def test_full_disk_refuses_clients_and_later_finishes_begun_work(
    small: Api, disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    owner = await small.config_map("owner")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    for number in range(10):
        await small.config_map(f"owned-{number}", ownerReferences=[reference])
    assert (await small.ask("DELETE", f"{_MAPS}/owner")).status == 200
    ballast = fill(disk)  # before the janitor has come to what the owner leaves behind
    names = range(300)
    answers = [await small.ask("POST", _MAPS, big(f"m{number}")) for number in names]
    refused = [answer for answer in answers if answer.status != 201]
    assert len(refused) > 100
    assert {(answer.status, answer.body["kind"], answer.body["reason"]) for answer in refused} == {
        (500, "Status", "InternalError")
    }
    assert (
        f"the disk of {disk / 'cluster.sqlite3'} is full, nothing was saved: make room there"
        in refused[0].body["message"]
    )
    listed = (await small.ask("GET", _MAPS)).body["items"]
    stored = [name for name, answer in zip(names, answers, strict=True) if answer.status == 201]
    present = {item["metadata"]["name"] for item in listed}
    assert {name for name in present if name.startswith("m")} == {f"m{name}" for name in stored}
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1 and warnings[0].getMessage().startswith("The disk of the database is full")
    ballast.unlink()
    assert (await small.ask("POST", _MAPS, big("with-room"))).status == 201
    await eventually(lambda: not owned(small), "the end of what the deleted owner left behind")


def owned(api: Api) -> list[str]:
    return [record.key for record in api.server.store.records("configmaps", prefix="default/owned")]


def big(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": {"k": "z" * 20_000}}
