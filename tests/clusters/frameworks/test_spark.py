"""Spark's programs and what it says of itself, without Spark: answers of the real one are in `recorded`."""

import asyncio
import json
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from grid.clusters.frameworks import framework
from grid.clusters.frameworks.base import ClusterReport, FrameworkSilent, WorkerPod, WorkerReport
from grid.clusters.frameworks.spark import executor_mebibytes, worker_cores
from grid.clusters.frameworks.spark_status import Driver, Executor, Master, MasterWorker, Stage, ask, report
from tests.clusters.frameworks.spark_cluster import spark_spec, tier

RECORDED = Path(__file__).parent / "recorded" / "spark-4.3.0"
SPARK = framework("spark")
HEAD = "10.96.0.7"
APPLICATION = json.loads((RECORDED / "master.json").read_bytes())["activeapps"][0]["id"]
PODS = [
    WorkerPod("worker-a", "127.124.77.2"),
    WorkerPod("worker-b", "127.124.77.3"),
    WorkerPod("worker-c", "127.124.77.9"),
]


def settings(options: str) -> dict[str, str]:
    """The -D options, split as Spark's launcher splits them."""
    pairs = (word.removeprefix("-D").partition("=") for word in shlex.split(options) if word.startswith("-D"))
    return {name: value for name, _, value in pairs}


def test_head_is_a_master_on_its_pod_address_only() -> None:
    head = SPARK.head(spark_spec())
    assert head.command[-7:] == (
        "org.apache.spark.deploy.master.Master",
        *("--host", "$(POD_IP)", "--port", "7077", "--webui-port", "8080"),
    )
    assert {(port.name, port.number) for port in head.ports} == {("spark", 7077), ("ui", 8080)}
    assert head.variables["SPARK_LOCAL_IP"] == "$(POD_IP)"
    assert settings(head.variables["SPARK_DAEMON_JAVA_OPTS"])["spark.master.rest.enabled"] == "false"
    assert head.readiness["httpGet"] == {"path": "/", "port": SPARK.ui_port}


def test_worker_joins_by_head_address_with_its_tier_resources() -> None:
    worker = SPARK.worker(spark_spec(workers=tier("8Gi", "3500m")), HEAD)
    command = list(worker.command)
    assert command[-1] == "spark://10.96.0.7:7077"
    assert command[command.index("--cores") + 1] == "4"
    assert command[command.index("--memory") + 1] == "5556m"
    assert command[command.index("--work-dir") + 1] == "/mnt/local/work"
    assert worker.variables["SPARK_LOCAL_DIRS"] == "/mnt/local"
    assert worker.variables["SPARK_LOCAL_IP"] == "$(POD_IP)"
    found = settings(worker.variables["SPARK_DAEMON_JAVA_OPTS"])
    assert found["spark.worker.preferConfiguredMasterAddress"] == "true"
    assert found["spark.decommission.enabled"] == "true"


@pytest.mark.parametrize(
    ("address", "url"), [("https://x.ws.test/", None), ("https://ws.test/w/x/", "/w/x")], ids=["own origin", "by path"]
)
def test_all_pages_lead_to_where_browsers_reach_them(address: str, url: str | None) -> None:
    spec = msgspec.structs.replace(spark_spec(), address=address)
    options = [
        SPARK.head(spec).variables["SPARK_DAEMON_JAVA_OPTS"],
        SPARK.worker(spec, HEAD).variables["SPARK_DAEMON_JAVA_OPTS"],
        SPARK.client_variables(spec, HEAD)["SPARK_SUBMIT_OPTS"],
    ]
    for one in map(settings, options):
        assert (one["spark.ui.reverseProxy"], one.get("spark.ui.reverseProxyUrl")) == ("true", url)
    assert SPARK.strips_prefix


def test_worker_is_given_its_drain_time_less_a_margin() -> None:
    assert SPARK.worker(spark_spec(drain_seconds=90), HEAD).pre_stop[-1] == "88"
    assert SPARK.worker(spark_spec(drain_seconds=1), HEAD).pre_stop[-1] == "1"


def test_shell_texts_are_unchanged_by_kubelet_references() -> None:
    worker = SPARK.worker(spark_spec(), HEAD)
    for text in (*worker.command[2:3], *SPARK.head(spark_spec()).command[2:3], *worker.pre_stop[2:3]):
        assert "$$" not in text
        assert "$(POD" not in text


def test_workspace_gets_usual_pairs_and_the_variables_of_spark() -> None:
    variables = SPARK.client_variables(spark_spec(workers=tier("4Gi", "2")), HEAD)
    assert {name: value for name, value in variables.items() if name != "SPARK_SUBMIT_OPTS"} == {
        "SPARK_MASTER": "spark://10.96.0.7:7077",
        "SPARK_MASTER_URL": "spark://10.96.0.7:7077",
        "SPARK_MASTER_HOST": "10.96.0.7",
        "SPARK_MASTER_PORT": "7077",
        "MASTER": "spark://10.96.0.7:7077",
        "SPARK_LOCAL_IP": "$(POD_IP)",
        "PYSPARK_PYTHON": "python3",
    }
    found = settings(variables["SPARK_SUBMIT_OPTS"])
    assert (found["spark.executor.cores"], found["spark.executor.memory"]) == ("2", "2688m")
    assert found["spark.driver.host"] == found["spark.driver.bindAddress"] == "$(POD_IP)"
    assert found["spark.decommission.enabled"] == found["spark.storage.decommission.enabled"] == "true"
    assert found["spark.executor.extraJavaOptions"].split()[0] == "-XX:+UseG1GC"
    assert "spark.driver.memory" not in found, "a program decides that itself"


@given(mebibytes=st.integers(min_value=1090, max_value=2**20))
def test_worker_and_executor_keep_within_the_tier_limit(mebibytes: int) -> None:
    heap = executor_mebibytes(tier(f"{mebibytes}Mi"))
    daemon = int(SPARK.worker(spark_spec(), HEAD).variables["SPARK_DAEMON_MEMORY"].removesuffix("m"))
    assert heap >= 450, "Spark starts no smaller executor"
    assert heap + daemon + 128 + 384 <= mebibytes


@pytest.mark.parametrize(("cores", "expected"), [("250m", 1), ("1", 1), ("3500m", 4), ("1500m", 2), ("16", 16)])
def test_worker_runs_tasks_that_use_all_its_cores(cores: str, expected: int) -> None:
    assert worker_cores(tier(cores=cores)) == expected


@pytest.mark.parametrize(("memory", "heap"), [("512Mi", "256m"), ("2Gi", "1024m"), ("64Gi", "4096m")])
def test_the_masters_heap_follows_the_heads_tier_within_reason(memory: str, heap: str) -> None:
    assert SPARK.head(spark_spec(head=tier(memory))).variables["SPARK_DAEMON_MEMORY"] == heap


def executor(host: str, tasks: int = 0, **held: int) -> Executor:
    return Executor(id="1", host_port=f"{host}:4000", active_tasks=tasks, **held)


def master(*workers: tuple[str, int]) -> Master:
    return Master(workers=tuple(MasterWorker(host, "ALIVE", cores) for host, cores in workers))


def test_recorded_answer_is_told_by_pod() -> None:
    found = report(
        msgspec.json.decode((RECORDED / "master.json").read_bytes(), type=Master),
        [
            Driver(
                msgspec.json.decode((RECORDED / "executors.json").read_bytes(), type=tuple[Executor, ...]),
                msgspec.json.decode((RECORDED / "stages.json").read_bytes(), type=tuple[Stage, ...]),
            )
        ],
        1,
        PODS,
    )
    assert found == ClusterReport(
        workers={
            "worker-a": WorkerReport(tasks=1, bytes_held=56442 + 15889),
            "worker-b": WorkerReport(tasks=1, bytes_held=94118 + 26723),
        },
        pending_tasks=38,
        wanted_workers=40,
    )


def test_wanted_workers_are_for_all_running_or_waiting_tasks() -> None:
    driver = Driver((executor("w1", 4), executor("w2", 3)), (Stage(20, 7, 5),))
    found = report(master(("w1", 4), ("w2", 4)), [driver], 4, [])
    assert (found.pending_tasks, found.wanted_workers) == (8, 4)


def test_nobody_is_wanted_when_applications_are_idle() -> None:
    found = report(master(("w1", 4)), [Driver((executor("w1"),), ())], 4, [WorkerPod("a", "w1")])
    assert found == ClusterReport(workers={"a": WorkerReport(tasks=0)}, pending_tasks=0, wanted_workers=0)


def test_dead_or_decommissioned_worker_is_left_out() -> None:
    gone = Master(
        workers=(MasterWorker("w1", "DEAD"), MasterWorker("w2", "DECOMMISSIONED"), MasterWorker("w3", "ALIVE"))
    )
    pods = [WorkerPod(name, name) for name in ("w1", "w2", "w3")]
    assert list(report(gone, [], 1, pods).workers) == ["w3"]


def test_executors_of_a_silent_application_count_as_busy() -> None:
    found = report(master(("w1", 2), ("w2", 0), ("w3", 2)), [None], 2, [WorkerPod("a", "w1"), WorkerPod("b", "w2")])
    assert found.workers == {"a": WorkerReport(tasks=2), "b": WorkerReport(tasks=0)}
    assert found.wanted_workers == 2


def test_numbers_that_cannot_be_count_as_nothing() -> None:
    driver = Driver((executor("w1", -5, memory_used=-9),), (Stage(3, 5, 5),))
    found = report(master(("w1", 1)), [driver], 0, [WorkerPod("a", "w1")])
    assert found == ClusterReport(workers={"a": WorkerReport(tasks=0)}, pending_tasks=0, wanted_workers=0)


Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def recorded(request: web.Request) -> web.Response:
    name = "master" if request.path == "/json/" else request.path.rpartition("/")[2]
    return web.Response(body=(RECORDED / f"{name}.json").read_bytes(), content_type="application/json")


async def hangs(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


def status(number: int, body: str = "") -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=number, text=body)

    return answer


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"[" * 2**20)


async def asked(*, head: Answer = recorded, driver: Answer = recorded) -> ClusterReport:
    """In as little time as shows that it is kept to, where somebody hangs."""
    seconds = 1 if head is hangs else 4 if driver is hangs else 60
    app = web.Application()
    app.router.add_get("/json/", head)
    app.router.add_get(f"/proxy/{APPLICATION}/api/v1/applications/{APPLICATION}/{{what}}", driver)
    async with (
        TestServer(app, skip_url_asserts=True) as server,
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as http,
        asyncio.timeout(60),
    ):
        return await ask(http, str(server.make_url("")).rstrip("/"), 1, PODS)


async def test_master_and_driver_are_asked_through_the_head_alone() -> None:
    assert await asked() == ClusterReport(
        workers={"worker-a": WorkerReport(1, 72331), "worker-b": WorkerReport(1, 120841)},
        pending_tasks=38,
        wanted_workers=40,
    )


@pytest.mark.parametrize(
    "driver", [hangs, status(502), status(200, "<html>"), status(200, "{}"), endless], ids=lambda one: one.__name__
)
async def test_useless_driver_answer_leaves_the_knowledge_of_master(driver: Answer) -> None:
    found = await asked(driver=driver)
    assert found.workers == {"worker-a": WorkerReport(1), "worker-b": WorkerReport(1)}
    assert (found.pending_tasks, found.wanted_workers) == (0, 2)


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (hangs, "did not answer"),
        (status(503), "status 503"),
        (status(302), "status 302"),
        (status(200, "not json"), "something else than expected"),
        (status(200, '{"workers": 3}'), "something else than expected"),
        (endless, "longer than 8 MiB"),
    ],
)
async def test_a_master_that_says_nothing_useful_is_silent(head: Answer, words: str) -> None:
    with pytest.raises(FrameworkSilent, match=words):
        await asked(head=head)


async def test_a_head_that_nobody_listens_at_is_silent() -> None:
    async with aiohttp.ClientSession() as http:
        with pytest.raises(FrameworkSilent, match="cannot be reached"):
            await SPARK.ask(http, "127.0.0.77", spark_spec(), [])
