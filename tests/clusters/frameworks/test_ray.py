"""Ray's commands, and what is read from the answers that its dashboard of 2.60.0 gave (recorded/ray-*.json)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.clusters.frameworks import framework, ray
from grid.clusters.frameworks.base import ClusterReport, FrameworkSilent, WorkerPod, WorkerReport
from grid.clusters.frameworks.ray import cpus_of, gcs_port_inside, store_bytes
from tests.clusters.cluster_specs import ray_spec, tier

WORKERS = (WorkerPod("worker-0", "127.87.11.2"), WorkerPod("worker-1", "127.87.11.3"))
MIB = 2**20


def recorded(name: str) -> list[Any]:
    """The four answers, in the order of `ray.PATHS`."""
    answers = json.loads((Path(__file__).with_name("recorded") / f"ray-{name}.json").read_text())
    return [answers[path.partition("?")[0]] for path in ray.PATHS]


def read(answers: list[Any], *, cpus: int = 1, gpus: int = 0) -> ClusterReport:
    return ray.read_report(*answers, workers=WORKERS, cpus=cpus, gpus=gpus)


def with_demand(*demand: list[Any]) -> list[Any]:
    answers = recorded("idle")
    answers[3]["data"]["clusterStatus"]["loadMetricsReport"]["resourceDemand"] = list(demand)
    return answers


def test_heads_on_one_machine_use_different_state_ports() -> None:
    ports = {gcs_port_inside(f"cluster{number}") for number in range(50)}
    assert len(ports) > 45
    assert all(11000 <= port < 23000 for port in ports)
    assert gcs_port_inside("first") == gcs_port_inside("first")


@pytest.mark.parametrize(("cores", "cpus"), [("250m", 1), ("1999m", 1), ("3500m", 3)])
def test_worker_offers_whole_cores_and_at_least_one(cores: str, cpus: int) -> None:
    assert cpus_of(tier(cores)) == cpus


def test_object_store_takes_shared_memory_or_share_of_memory() -> None:
    assert store_bytes(tier(memory="10Gi")) == int(10 * 1024 * MIB * 0.3)
    assert store_bytes(tier(memory="10Gi", shared_memory="4Gi")) == int(4 * 1024 * MIB * 0.9)
    assert store_bytes(tier(memory="128Mi")) == 80 * MIB


def test_plain_ray_init_in_attached_workspace_finds_the_cluster() -> None:
    variables = framework("ray").client_variables(ray_spec(), "10.0.0.7")
    assert variables == {
        "RAY_ADDRESS": "ray://10.0.0.7:10001",
        "RAY_API_SERVER_ADDRESS": "http://10.0.0.7:8265",
        "RAY_HEAD_SERVICE_HOST": "10.0.0.7",
        "RAY_HEAD_SERVICE_PORT": "10001",
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def test_an_idle_cluster_holds_nothing_and_wants_no_workers() -> None:
    workers = (*WORKERS, WorkerPod("has-not-joined", "127.87.11.4"))
    assert ray.read_report(*recorded("idle"), workers=workers, cpus=1, gpus=0) == ClusterReport(
        workers={"worker-0": WorkerReport(0, 0), "worker-1": WorkerReport(0, 0)}, pending_tasks=0, wanted_workers=0
    )


def test_busy_cluster_tells_worker_holdings_and_waiting_tasks() -> None:
    """The cluster has two workers of one CPU. It was given thirty tasks of a task that waits for them, two actors and a result of 8 MB;
    also a placement group of four and a task for eight CPUs, which do not fit."""
    assert read(recorded("busy")) == ClusterReport(
        workers={"worker-0": WorkerReport(1, 0), "worker-1": WorkerReport(3, 8_000_003)},
        pending_tasks=28 + 4 + 1,
        wanted_workers=2 + 28 + 4,
    )


@pytest.mark.parametrize(
    ("shape", "count", "cpus", "wanted"),
    [
        ({"CPU": 1.0}, 37, 1, 37),
        ({"CPU": 1.0}, 37, 8, 5),
        ({"CPU": 0.5}, 5, 1, 3),
        ({"CPU": 2.0}, 3, 3, 3),  # two of them do not fit one worker
        ({"CPU": 8.0}, 4, 2, 0),  # none fits any worker
        ({"CPU": 1.0, "GPU": 1.0}, 4, 4, 0),  # these workers have no GPU
        ({"memory": 1e9}, 4, 4, 0),
    ],
)
def test_wanted_workers_are_those_for_all_waiting_tasks(
    shape: dict[str, float], count: int, cpus: int, wanted: int
) -> None:
    report = read(with_demand([shape, count]), cpus=cpus)
    assert (report.pending_tasks, report.wanted_workers) == (count, wanted)


def test_workers_are_wanted_for_gpus_that_are_waited_for() -> None:
    assert read(with_demand([{"CPU": 1.0, "GPU": 1.0}, 6]), cpus=16, gpus=2).wanted_workers == 3


@given(st.data())
def test_incomplete_answer_is_read_or_refused_in_a_sentence(data: st.DataObject) -> None:
    answers = recorded("busy")
    part: Any = answers[data.draw(st.integers(0, 3))]
    while True:
        keys = sorted(part) if isinstance(part, dict) else list(range(len(part)))
        key = data.draw(st.sampled_from(keys))
        child = part[key]
        if not isinstance(child, dict | list) or not child or data.draw(st.booleans()):
            break
        part = child
    part[key] = data.draw(st.sampled_from([None, "text", -1, {}, [], [None], {"a": 1}]))
    try:
        report = read(answers)
    except FrameworkSilent as error:
        assert str(error).startswith("Ray's dashboard did not ")
    else:
        assert report.pending_tasks >= 0
        assert report.wanted_workers >= 0


def test_dashboard_that_refuses_is_silent_with_its_reason() -> None:
    answers = [{"result": False, "msg": "GCS is away", "data": None}, *recorded("idle")[1:]]
    with pytest.raises(FrameworkSilent, match="did not tell its nodes: GCS is away"):
        read(answers)
