"""What only the embedded cluster can be asked: its population's size, and what shall go wrong, the API server itself included."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django.fixtures import Settings

from grid.sandbox.control import Control
from grid.sandbox.poollimits import NodePools
from grid.sandbox.pools import DEFAULT_POOLS
from grid.sandbox.population import Population, Size
from tests.sandbox.apiserver.conftest import Api
from tests.support.waiting import eventually

PODS = "/api/v1/pods"


@pytest.fixture
async def population(api: Api) -> AsyncIterator[Population]:
    population = Population(api.server.registry, Size(5, 60), namespace="compute-grid")
    control = Control(api.server, population)
    api.server.beside = control.answer
    task = asyncio.create_task(population.run())
    await population.stands()
    yield population
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await control.stop()


async def test_the_population_is_told_and_resized(api: Api, population: Population) -> None:
    answer = await api.ask("GET", "/sandbox/population")
    assert (answer.status, answer.body["nodes"], answer.body["pods"]) == (200, 5, 60)
    asked = await api.ask("PATCH", "/sandbox/population", {"pods": 70, "churn": 3})
    assert asked.body["wanted"] == {"nodes": 5, "pods": 70, "churn": 3}


async def test_invalid_request_is_refused_with_a_sentence(api: Api, population: Population) -> None:
    requests: tuple[tuple[str, str, object, int], ...] = (
        ("PATCH", "population", {"pods": -1}, 400),
        ("PATCH", "population", {"pods": 10_000_000}, 400),
        ("PATCH", "population", {"cats": 1}, 400),
        ("POST", "failures/stock-out", {"pool": "nowhere"}, 400),
        ("POST", "failures/crash-loop", {"count": 0}, 400),
        ("POST", "failures/pause", {"seconds": 1e9}, 400),
        ("POST", "failures/earthquake", {}, 404),
        ("GET", "cats", None, 404),
    )
    for method, path, body, status in requests:
        answer = await api.ask(method, f"/sandbox/{path}", body)
        assert (answer.status, bool(answer.body["message"])) == (status, True), path


async def test_nobody_asks_without_a_token(api: Api, population: Population) -> None:
    async with api.session.get(api.url + "/sandbox/population") as answer:
        assert answer.status == 401


FAILURES: tuple[tuple[str, dict[str, object]], ...] = (
    ("stock-out", {"pool": "cpu"}),
    ("bad-image", {}),
    ("out-of-memory", {"count": 3}),
    ("crash-loop", {}),
    ("node-lost", {}),
    ("taint", {}),
)


async def test_each_failure_changes_the_cluster(api: Api, population: Population) -> None:
    for name, body in FAILURES:
        before = population.state()["changes"]
        assert (await api.ask("POST", f"/sandbox/failures/{name}", body)).status == 202
        await eventually(partial(lambda was: population.state()["changes"] != was, before), name)


async def test_a_failure_of_an_empty_population_is_refused(api: Api) -> None:
    api.server.beside = Control(api.server, Population(api.server.registry, Size(), namespace="compute-grid")).answer
    for name, _ in FAILURES:
        answer = await api.ask("POST", f"/sandbox/failures/{name}", {})
        assert (answer.status, answer.body["message"][:26]) == (409, "Nothing can fail yet: add "), name


@pytest.mark.parametrize("command", ["sandbox", "up"])
@pytest.mark.parametrize("wrong", ["--churn=nan", "--nodes=1000000", "--pods=-1"])
def test_invalid_population_is_refused_on_the_command_line(
    command: str, wrong: str, tmp_path: Path, settings: Settings
) -> None:
    settings.DEMO, settings.VAR_DIR = True, tmp_path
    data = [f"--data={tmp_path}"] if command == "sandbox" else []
    with pytest.raises(CommandError, match="A population has between 0 and 5,000 nodes"):
        call_command(command, *data, wrong)


async def test_restarted_server_pauses_connections_and_then_has_everything(api: Api, population: Population) -> None:
    assert (await api.ask("POST", "/sandbox/failures/restart", {"seconds": 0.5})).status == 202

    async def is_refused() -> bool:
        try:
            return (await api.ask("GET", "/api/v1/pods?limit=1")).status != 200
        except aiohttp.ClientError:
            return True

    await eventually(is_refused, "it is away")
    await eventually(is_refused, "it is back", holds=lambda refused: not refused)
    answer = await api.ask("GET", "/api/v1/pods?limit=1")
    assert answer.body["metadata"]["remainingItemCount"] == 59


async def test_pool_limits_are_changed_against_current_ones_and_persist(api: Api, tmp_path: Path) -> None:
    file = tmp_path / "limits.json"
    pools = NodePools(DEFAULT_POOLS, file)
    population = Population(api.server.registry, Size(), namespace="compute-grid")
    api.server.beside = Control(api.server, population, pools=pools).answer
    answer = await api.ask("GET", "/sandbox/pools")
    assert {"name": "default", "minimum": 1, "maximum": 5} in answer.body["pools"]
    path = "/sandbox/pools/default"
    assert (await api.ask("PATCH", path, {"minimum": 2, "maximum": 9, "was": [1, 5]})).status == 200
    for body, status in (
        ({"minimum": 3, "maximum": 9, "was": [1, 5]}, 409),
        ({"minimum": 5, "maximum": 4, "was": [2, 9]}, 400),
        ({"minimum": 0, "maximum": 0, "was": [2, 9]}, 400),
        ({"minimum": 0, "maximum": 10**9, "was": [2, 9]}, 400),
        ({"minimum": "many"}, 400),
    ):
        assert (await api.ask("PATCH", path, body)).status == status, body
    body = {"minimum": 1, "maximum": 2, "was": [1, 5]}
    assert (await api.ask("PATCH", "/sandbox/pools/nowhere", body)).status == 404
    again = {pool.name: (pool.minimum, pool.maximum) for pool in NodePools(DEFAULT_POOLS, file)}
    assert again["default"] == (2, 9) and again["default-gpu"] == (0, 2)
    file.write_text("{")
    assert [pool.maximum for pool in NodePools(DEFAULT_POOLS, file)] == [1, 5, 2]
