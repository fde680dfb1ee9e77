"""What only the embedded cluster can be asked: its population's size, and what shall go wrong, the API server itself included."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from pytest_django.fixtures import Settings

from benchmarks.embedded import process
from grid.core.labels import SIMULATED
from grid.sandbox.client import NODES, Client, labels_of
from grid.sandbox.client import PODS as POD
from grid.sandbox.control import Control
from grid.sandbox.poollimits import NodePools
from grid.sandbox.pools import DEFAULT_POOLS
from grid.sandbox.population import Population, Size
from tests.end_to_end.grid import ROOT
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


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PATCH", "/sandbox/population", {"pods": -1}, 400),
        ("PATCH", "/sandbox/population", {"pods": 10_000_000}, 400),
        ("PATCH", "/sandbox/population", {"cats": 1}, 400),
        ("POST", "/sandbox/failures/stock-out", {"pool": "nowhere"}, 400),
        ("POST", "/sandbox/failures/crash-loop", {"count": 0}, 400),
        ("POST", "/sandbox/failures/pause", {"seconds": 1e9}, 400),
        ("POST", "/sandbox/failures/earthquake", {}, 404),
        ("GET", "/sandbox/cats", None, 404),
    ],
)
async def test_invalid_request_is_refused_with_a_sentence(
    api: Api, population: Population, method: str, path: str, body: object, status: int
) -> None:
    answer = await api.ask(method, path, body)
    assert (answer.status, bool(answer.body["message"])) == (status, True)


async def test_nobody_asks_without_a_token(api: Api, population: Population) -> None:
    async with api.session.get(api.url + "/sandbox/population") as answer:
        assert answer.status == 401


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("stock-out", {"pool": "cpu"}),
        ("bad-image", {}),
        ("out-of-memory", {"count": 3}),
        ("crash-loop", {}),
        ("node-lost", {}),
        ("taint", {}),
    ],
)
async def test_each_failure_changes_the_cluster(
    api: Api, population: Population, name: str, body: dict[str, object]
) -> None:
    before = population.state()["changes"]
    assert (await api.ask("POST", f"/sandbox/failures/{name}", body)).status == 202
    await eventually(lambda: population.state()["changes"] != before)


@pytest.mark.parametrize("name", ["stock-out", "bad-image", "out-of-memory", "crash-loop", "node-lost", "taint"])
async def test_a_failure_of_an_empty_population_is_refused(api: Api, name: str) -> None:
    api.server.beside = Control(api.server, Population(api.server.registry, Size(), namespace="compute-grid")).answer
    answer = await api.ask("POST", f"/sandbox/failures/{name}", {})
    assert (answer.status, answer.body["message"][:26]) == (409, "Nothing can fail yet: add ")


@pytest.mark.parametrize("command", ["sandbox", "up"])
@pytest.mark.parametrize("wrong", ["--churn=nan", "--churn=-1", "--churn=1e9", "--nodes=1000000", "--pods=-1"])
def test_invalid_population_is_refused_on_the_command_line(
    command: str, wrong: str, tmp_path: Path, settings: Settings
) -> None:
    settings.DEMO, settings.VAR_DIR = True, tmp_path
    data = [f"--data={tmp_path}"] if command == "sandbox" else []
    with pytest.raises(CommandError, match="A population has between 0 and 5,000 nodes"):
        call_command(command, *data, wrong)


async def _watch(api: Api, version: str) -> str:
    """What a watch from that version brings until it ends."""
    headers = {"Authorization": f"Bearer {api.server.tokens.by_name['admin']}"}
    query = {"watch": "1", "resourceVersion": version}
    async with api.session.get(api.url + PODS, params=query, headers=headers) as answer:
        return await answer.text()


async def test_dropped_history_ends_the_watch_for_good(api: Api, population: Population) -> None:
    version = (await api.ask("GET", PODS)).body["metadata"]["resourceVersion"]
    watching = asyncio.create_task(_watch(api, version))
    await asyncio.sleep(0.2)
    await api.ask("POST", "/sandbox/failures/history-dropped", {})
    async with asyncio.timeout(5):
        assert await watching == ""
        assert json.loads(await _watch(api, version))["object"]["code"] == 410


async def test_restarted_server_pauses_connections_and_then_has_everything(api: Api, population: Population) -> None:
    assert (await api.ask("POST", "/sandbox/failures/restart", {"seconds": 0.5})).status == 202
    refused = 0
    async with asyncio.timeout(10):
        while True:
            await asyncio.sleep(0.1)
            try:
                answer = await api.ask("GET", f"{PODS}?limit=1")
            except aiohttp.ClientError:
                refused += 1
                continue
            if refused:
                break
    assert answer.body["metadata"]["remainingItemCount"] == 59


@pytest.mark.slow
async def test_population_in_own_process_changes_undisturbed_by_controllers(tmp_path: Path) -> None:

    command = [
        sys.executable,
        str(ROOT / "manage.py"),
        "sandbox",
        "--data",
        str(tmp_path / "data"),
        "--port",
        "0",
        "--simulated",
    ]
    command += ["--nodes", "50", "--pods", "500", "--churn", "20"]
    environment = {**os.environ, "GRID_DEMO": "1", "GRID_VAR": str(tmp_path / "var")}
    with process(command, log=tmp_path / "log", env=environment):
        kubeconfig = tmp_path / "data" / "kubeconfig"
        await eventually(kubeconfig.exists)
        async with Client.from_kubeconfig(kubeconfig) as client:
            await eventually(lambda: client.get("/sandbox/population"), holds=lambda state: state["pods"] >= 500)
            before = (await client.get("/sandbox/population"))["changes"]
            await asyncio.sleep(60)  # longer than controllers wait for a node's lease
            state = await client.get("/sandbox/population")
            assert state["changes"] - before == pytest.approx(60 * 20, rel=0.3)
            assert state["pods"] == pytest.approx(500, abs=60)
            nodes = [node for node in await client.list(NODES.path()) if SIMULATED in labels_of(node)]
            assert len(nodes) == 50
            assert not [node for node in nodes if node["status"]["conditions"][-1]["status"] != "True"]
            pods = await client.list(POD.path("compute-grid"))
            assert sum(pod["status"]["phase"] == "Running" for pod in pods) > 400


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
