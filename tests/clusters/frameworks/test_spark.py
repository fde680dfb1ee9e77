"""Spark's programs and what it says of itself, without Spark: answers of the real one are in `recorded`."""

import shlex
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from grid.clusters.frameworks import framework
from grid.clusters.frameworks.base import ClusterReport, WorkerPod, WorkerReport
from grid.clusters.frameworks.spark import executor_mebibytes, worker_cores
from grid.clusters.frameworks.spark_status import Driver, Executor, Master, MasterWorker, Stage, report
from tests.clusters.cluster_specs import small_spec, tier

RECORDED = Path(__file__).parent / "recorded" / "spark-4.3.0"
SPARK = framework("spark")
HEAD = "10.96.0.7"
PODS = [
    WorkerPod("worker-a", "127.124.77.2"),
    WorkerPod("worker-b", "127.124.77.3"),
    WorkerPod("worker-c", "127.124.77.9"),
]


def settings(options: str) -> dict[str, str]:
    """The -D options, split as Spark's launcher splits them."""
    pairs = (word.removeprefix("-D").partition("=") for word in shlex.split(options) if word.startswith("-D"))
    return {name: value for name, _, value in pairs}


@pytest.mark.parametrize(
    ("address", "url"), [("https://x.ws.test/", None), ("https://ws.test/w/x/", "/w/x")], ids=["own origin", "by path"]
)
def test_all_pages_lead_to_where_browsers_reach_them(address: str, url: str | None) -> None:
    spec = msgspec.structs.replace(small_spec("spark"), address=address)
    options = [
        SPARK.head(spec).variables["SPARK_DAEMON_JAVA_OPTS"],
        SPARK.worker(spec, HEAD).variables["SPARK_DAEMON_JAVA_OPTS"],
        SPARK.client_variables(spec, HEAD)["SPARK_SUBMIT_OPTS"],
    ]
    for set_options in map(settings, options):
        assert (set_options["spark.ui.reverseProxy"], set_options.get("spark.ui.reverseProxyUrl")) == ("true", url)
    assert SPARK.strips_prefix


def test_worker_is_given_its_drain_time_less_a_margin() -> None:
    assert SPARK.worker(small_spec("spark", drain_seconds=90), HEAD).pre_stop[-1] == "88"
    assert SPARK.worker(small_spec("spark", drain_seconds=1), HEAD).pre_stop[-1] == "1"


def test_shell_texts_are_unchanged_by_kubelet_references() -> None:
    worker = SPARK.worker(small_spec("spark"), HEAD)
    for text in (*worker.command[2:3], *SPARK.head(small_spec("spark")).command[2:3], *worker.pre_stop[2:3]):
        assert "$$" not in text
        assert "$(POD" not in text


def test_workspace_gets_usual_pairs_and_the_variables_of_spark() -> None:
    variables = SPARK.client_variables(small_spec("spark", workers=tier("2", "4Gi")), HEAD)
    assert {name: value for name, value in variables.items() if name != "SPARK_SUBMIT_OPTS"} == {
        "SPARK_MASTER": "spark://10.96.0.7:7077",
        "SPARK_MASTER_URL": "spark://10.96.0.7:7077",
        "SPARK_MASTER_HOST": "10.96.0.7",
        "SPARK_MASTER_PORT": "7077",
        "MASTER": "spark://10.96.0.7:7077",
        "SPARK_LOCAL_IP": "$(POD_IP)",
        "PYSPARK_PYTHON": "python3",
    }
    options = settings(variables["SPARK_SUBMIT_OPTS"])
    assert (options["spark.executor.cores"], options["spark.executor.memory"]) == ("2", "2688m")
    assert options["spark.driver.host"] == options["spark.driver.bindAddress"] == "$(POD_IP)"
    assert options["spark.decommission.enabled"] == options["spark.storage.decommission.enabled"] == "true"
    assert options["spark.executor.extraJavaOptions"].split()[0] == "-XX:+UseG1GC"
    assert "spark.driver.memory" not in options, "a program decides that itself"


@given(mebibytes=st.integers(min_value=1090, max_value=2**20))
def test_worker_and_executor_keep_within_the_tier_limit(mebibytes: int) -> None:
    heap = executor_mebibytes(tier(memory=f"{mebibytes}Mi"))
    daemon = int(SPARK.worker(small_spec("spark"), HEAD).variables["SPARK_DAEMON_MEMORY"].removesuffix("m"))
    assert heap >= 450, "Spark starts no smaller executor"
    assert heap + daemon + 128 + 384 <= mebibytes


@pytest.mark.parametrize(("cores", "expected"), [("250m", 1), ("1", 1), ("3500m", 4)])
def test_worker_runs_tasks_that_use_all_its_cores(cores: str, expected: int) -> None:
    assert worker_cores(tier(cores)) == expected


@pytest.mark.parametrize(("memory", "heap"), [("512Mi", "256m"), ("2Gi", "1024m"), ("64Gi", "4096m")])
def test_the_masters_heap_follows_the_heads_tier_within_reason(memory: str, heap: str) -> None:
    assert SPARK.head(small_spec("spark", head=tier(memory=memory))).variables["SPARK_DAEMON_MEMORY"] == heap


def executor(host: str, tasks: int = 0, **held: int) -> Executor:
    return Executor(id="1", host_port=f"{host}:4000", active_tasks=tasks, **held)


def master(*workers: tuple[str, int]) -> Master:
    return Master(workers=tuple(MasterWorker(host, "ALIVE", cores) for host, cores in workers))


def test_recorded_answer_is_told_by_pod() -> None:
    reported = report(
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
    assert reported == ClusterReport(
        workers={
            "worker-a": WorkerReport(tasks=1, bytes_held=56442 + 15889),
            "worker-b": WorkerReport(tasks=1, bytes_held=94118 + 26723),
        },
        pending_tasks=38,
        wanted_workers=40,
    )


def test_wanted_workers_are_for_all_running_or_waiting_tasks() -> None:
    driver = Driver((executor("w1", 4), executor("w2", 3)), (Stage(20, 7, 5),))
    reported = report(master(("w1", 4), ("w2", 4)), [driver], 4, [])
    assert (reported.pending_tasks, reported.wanted_workers) == (8, 4)


def test_dead_or_decommissioned_worker_is_left_out() -> None:
    gone = Master(
        workers=(MasterWorker("w1", "DEAD"), MasterWorker("w2", "DECOMMISSIONED"), MasterWorker("w3", "ALIVE"))
    )
    assert list(report(gone, [], 1, [WorkerPod(name, name) for name in ("w1", "w2", "w3")]).workers) == ["w3"]


def test_executors_of_a_silent_application_count_as_busy() -> None:
    reported = report(master(("w1", 2), ("w2", 0), ("w3", 2)), [None], 2, [WorkerPod("a", "w1"), WorkerPod("b", "w2")])
    assert reported.workers == {"a": WorkerReport(tasks=2), "b": WorkerReport(tasks=0)}
    assert reported.wanted_workers == 2
