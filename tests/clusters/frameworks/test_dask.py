"""What Dask's containers run, what its clients find, and what its answers mean."""

import ast
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grid.clusters import frameworks
from grid.clusters.frameworks.base import ClusterReport, WorkerPod, WorkerReport
from grid.clusters.frameworks.dask import Dask
from grid.core.origins import BEGIN_PATH
from tests.clusters.cluster_specs import HEAD_TIER, cluster, spec, tier
from tests.clusters.frameworks.test_any_answer import Head

DASK = Dask()
SPEC = spec(of=cluster(drain_seconds=90), tier=HEAD_TIER)
PROGRAMS = Path(frameworks.__file__).parent
GIB = 2**30


def test_head_page_lies_below_cluster_path_on_shared_origin() -> None:
    head = DASK.head(msgspec.structs.replace(SPEC, address="https://ws.test/w/abc/"))
    assert head.command[-2:] == ("--dashboard-prefix", "/w/abc/")
    assert head.readiness["httpGet"] == {"path": "/w/abc/health", "port": 8787}


@pytest.mark.parametrize(
    ("cores_limit", "memory_limit", "threads", "memory"),
    [
        ("500m", "256Mi", "1", 128 * 2**20),
        ("1", "1Gi", "1", GIB - 128 * 2**20),
        ("1500m", "100Mi", "2", 50 * 2**20),
        ("4", "14Gi", "4", 14 * GIB - 128 * 2**20),
    ],
)
def test_worker_uses_all_cores_and_leaves_memory_to_nanny(
    cores_limit: str, memory_limit: str, threads: str, memory: int
) -> None:
    of = spec(of=cluster(), tier=tier(cores_limit, memory_limit))
    command = DASK.worker(of, "10.0.0.9").command
    given = dict(pairwise(command))
    assert (given["--nthreads"], given["--memory-limit"]) == (threads, str(memory))


def test_a_client_without_an_address_finds_the_cluster() -> None:
    assert DASK.client_variables(SPEC, "10.0.0.9") == {
        "DASK_SCHEDULER_ADDRESS": "tcp://10.0.0.9:8786",
        "DASK_SCHEDULER_SERVICE_HOST": "10.0.0.9",
        "DASK_SCHEDULER_SERVICE_PORT": "8786",
        "DASK_DISTRIBUTED__DASHBOARD__LINK": f"https://abc.ws.test/{BEGIN_PATH}",
    }


@pytest.mark.parametrize("name", ["dask_head.py", "dask_drain.py"])
def test_container_programs_need_only_common_parts_of_dask_images(name: str) -> None:
    tree = ast.parse((PROGRAMS / name).read_text(), feature_version=(3, 11))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {name.partition(".")[0] for name in imported} <= {
        "asyncio",
        "dask",
        "distributed",
        "os",
        "sys",
        "types",
        "typing",
    }
    # Kubernetes would expand the one and the embedded cluster rewrite the other.
    assert "$(" not in (text := (PROGRAMS / name).read_text()) and "/mnt/" not in text


async def test_head_says_worker_holdings_and_wanted_workers() -> None:
    body = {
        "workers": {
            "w-1": {"tasks": 3, "bytes_held": 1200},
            "w-2": {"tasks": 0, "bytes_held": 0},
            "laptop": {"tasks": 9, "bytes_held": 9},
        },
        "pending_tasks": 40,
        "wanted_workers": 7,
        "more": True,
    }
    session: Any = Head({"/json/compute-grid.json": msgspec.json.encode(body)})
    report = await DASK.ask(session, "10.0.0.9", SPEC, [WorkerPod(name, "127.0.0.1") for name in ("w-1", "w-2", "w-3")])
    assert report == ClusterReport(
        {"w-1": WorkerReport(3, bytes_held=1200), "w-2": WorkerReport(0)}, pending_tasks=40, wanted_workers=7
    )
