"""The expressions as a real Prometheus understands them: promtool evaluates each over series as a cluster's would be."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from grid.metrics.expressions import (
    in_columns,
    node_columns,
    node_cpu,
    node_memory,
    pod_cpu,
    pod_memory,
    pods_columns,
    pods_waiting,
    pool_columns,
    pool_use_columns,
)
from tests.support.prometheus import PROMTOOL

needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool comes with Prometheus")
_POD = 'namespace="ns",pod="p1"'
# Half a core each: 30 seconds of CPU time a minute.
_CADVISOR = {
    'container_cpu_usage_seconds_total{id="/",node="n1"}': "0+60x10",
    'container_memory_working_set_bytes{id="/",node="n1"}': "2048x10",
    f'container_cpu_usage_seconds_total{{{_POD},container="",id="/pod"}}': "0+66x10",
    f'container_cpu_usage_seconds_total{{{_POD},container="POD",id="/pod/0"}}': "0+6x10",
    f'container_cpu_usage_seconds_total{{{_POD},container="run",id="/pod/1"}}': "0+30x10",
    f'container_cpu_usage_seconds_total{{{_POD},container="executor",id="/pod/2"}}': "0+30x10",
    f'container_memory_working_set_bytes{{{_POD},container="",id="/pod"}}': "120x10",
    f'container_memory_working_set_bytes{{{_POD},container="run",id="/pod/1"}}': "100x10",
}
_RESOURCE = {
    'node_cpu_usage_seconds_total{node="n1"}': "0+60x10",
    'node_memory_working_set_bytes{node="n1"}': "2048x10",
    f"pod_cpu_usage_seconds_total{{{_POD}}}": "0+60x10",
    f"pod_memory_working_set_bytes{{{_POD}}}": "100x10",
}
_STATE = {
    'kube_node_labels{node="n1",label_pool="gpu"}': "1x10",
    'kube_node_status_condition{node="n1",condition="Ready",status="true"}': "1x10",
    'kube_node_status_allocatable{node="n1",resource="cpu"}': "8x10",
    'kube_node_status_allocatable{node="n1",resource="nvidia_com_gpu"}': "2x10",
    f'kube_pod_status_phase{{{_POD},phase="Running"}}': "1x10",
    'kube_pod_status_phase{namespace="ns",pod="ended",phase="Running"}': "0x10",
    f'kube_pod_container_resource_requests{{{_POD},node="n1",container="run",resource="cpu"}}': "1.5x10",
    'kube_pod_container_resource_requests{namespace="ns",pod="ended",node="n1",container="run",resource="cpu"}': "4x10",
}
_NODE, _ONE = '{node="n1"}', f"{{{_POD}}}"


Series = dict[str, str]
Samples = list[tuple[str, float]]


def evaluated(directory: Path, *cases: tuple[Series, dict[str, Samples]]) -> None:
    """Assert that over the series of each case, each of its expressions is these samples after ten minutes."""
    groups: list[dict[str, Any]] = []
    for series, expected in cases:
        tests = [
            {
                "expr": expression,
                "eval_time": "10m",
                "exp_samples": [{"labels": names, "value": at} for names, at in samples],
            }
            for expression, samples in expected.items()
        ]
        given = [{"series": name, "values": values} for name, values in series.items()]
        groups.append({"interval": "1m", "input_series": given, "promql_expr_test": tests})
    file = directory / "expressions.yml"
    file.write_text(yaml.safe_dump({"tests": groups}))
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_use_is_the_same_by_whichever_metrics_are_scraped(tmp_path: Path) -> None:
    expected: dict[str, Samples] = {
        node_cpu(): [(_NODE, 1)],
        node_memory("n1"): [(_NODE, 2048)],
        node_memory('n1"} or vector(1) #'): [],
        pod_cpu("ns"): [(_ONE, 1)],
        pod_memory("ns"): [(_ONE, 100)],
        pod_memory("another"): [],
    }
    unknown: dict[str, Samples] = {expression: [] for expression in expected}
    evaluated(tmp_path, (_CADVISOR, expected), (_RESOURCE, expected), ({}, unknown))


@needs_promtool
def test_a_pools_columns_count_what_lives_on_its_nodes(tmp_path: Path) -> None:
    columns = {
        "nodes": 1,
        "nodes_ready": 1,
        "allocatable_gpus": 2,
        "used_mebibytes": 2048 / 2**20,
        "requested_millicores": 1500,
        "allocatable_millicores": 8000,
        "used_millicores": 1000,
    }
    asked, other = (in_columns(pool_columns(pool, "label_pool")) for pool in ("gpu", "other"))
    evaluated(tmp_path, ({**_CADVISOR, **_STATE}, {asked: rows(columns), other: []}))


_LIMITS = {
    f'kube_pod_container_resource_requests{{{_POD},container="run",node="n1",resource="cpu"}}': "0.5x10",
    f'kube_pod_container_resource_limits{{{_POD},container="run",node="n1",resource="cpu"}}': "2x10",
    f'kube_pod_status_phase{{{_POD},phase="Running"}}': "1x10",
    'kube_node_status_allocatable{node="n1",resource="cpu"}': "8x10",
}
_CFS = {
    f'container_cpu_cfs_throttled_periods_total{{{_POD},container="run",id="/pod/1"}}': "0+150x10",
    f'container_cpu_cfs_periods_total{{{_POD},container="run",id="/pod/1"}}': "0+600x10",
}
_PSI = {f'container_pressure_cpu_waiting_seconds_total{{{_POD},container="run",id="/pod/1"}}': "0+6x10"}
_MOVED = {
    f'container_fs_reads_bytes_total{{{_POD},container="run",id="/pod/1"}}': "0+600x10",
    f'container_network_receive_bytes_total{{{_POD},interface="eth0"}}': "0+1200x10",
    f'container_network_receive_bytes_total{{{_POD},interface="lo"}}': "0+6000x10",
}
_GPU = {'DCGM_FI_DEV_GPU_UTIL{namespace="gpu-operator",pod="dcgm",exported_namespace="ns",exported_pod="p1"}': "80x10"}
_EVERYTHING = {**_CADVISOR, **_LIMITS, **_CFS, **_PSI, **_MOVED, **_GPU}


def rows(columns: Mapping[str, float]) -> Samples:
    return [(f'{{column="{name}"}}', value) for name, value in columns.items()]


@needs_promtool
def test_pod_throttling_prefers_pressure_over_cfs_or_is_unknown(tmp_path: Path) -> None:
    asked = pods_columns("ns", "p1")["throttled"]
    pressed, throttled = {asked: [("{}", 10.0)]}, {asked: [("{}", 25.0)]}
    evaluated(tmp_path, ({**_PSI, **_CFS}, pressed), (_CFS, throttled), (_CADVISOR, {asked: []}))


@needs_promtool
def test_pod_throttled_by_own_limit_does_not_await_neighbours(tmp_path: Path) -> None:
    waits, waits_for_nobody = {pods_waiting(): [(_ONE, 10.0)]}, {pods_waiting(): [(_ONE, 0.0)]}
    evaluated(
        tmp_path,
        (_PSI, waits),
        ({**_PSI, **_CFS}, waits_for_nobody),
        (_CFS, waits_for_nobody),
        (_CADVISOR, {pods_waiting(): []}),
    )


@needs_promtool
def test_pod_and_node_columns_hold_only_known_values(tmp_path: Path) -> None:
    of_pod = {"cpu_used": 1, "memory_used": 100, "cpu_requested": 0.5, "cpu_limit": 2}
    of_pod |= {"gpu": 80, "throttled": 10, "read": 10, "received": 20}
    of_node = {"cpu_used": 1, "memory_used": 2048, "cpu_requested": 0.5, "cpu_limit": 8}
    expected = {
        in_columns(pods_columns("ns", "p1")): rows(of_pod),
        in_columns(pods_columns("ns", "p", with_prefix=True)): [],
        in_columns(pods_columns("ns", "p.", with_prefix=True)): [],
        in_columns(node_columns("n1")): rows(of_node),
        in_columns(node_columns("n2")): [],
    }
    evaluated(tmp_path, (_EVERYTHING, expected))


_MOUNTED = 'namespace="ns",persistentvolumeclaim="files"'
_EXPORTED = {
    'node_filesystem_avail_bytes{node="n1",mountpoint="/",fstype="ext4"}': "25x10",
    'node_filesystem_size_bytes{node="n1",mountpoint="/",fstype="ext4"}': "100x10",
    'node_filesystem_avail_bytes{node="n1",mountpoint="/run",fstype="tmpfs"}': "1x10",
    'node_filesystem_size_bytes{node="n1",mountpoint="/run",fstype="tmpfs"}': "100x10",
    'node_filesystem_avail_bytes{node="n1",mountpoint="/empty",fstype="xfs"}': "0x10",
    'node_filesystem_size_bytes{node="n1",mountpoint="/empty",fstype="xfs"}': "0x10",
}
_DEVICES = {
    'container_fs_usage_bytes{id="/",node="n1",device="/dev/sda1"}': "60x10",
    'container_fs_limit_bytes{id="/",node="n1",device="/dev/sda1"}': "100x10",
    'container_fs_usage_bytes{id="/",node="n1",device="/dev/shm"}': "99x10",
    'container_fs_limit_bytes{id="/",node="n1",device="/dev/shm"}': "100x10",
}
_VOLUMES = {
    f'kubelet_volume_stats_used_bytes{{{_MOUNTED},node="n1"}}': "30x10",
    f'kubelet_volume_stats_capacity_bytes{{{_MOUNTED},node="n1"}}': "40x10",
    f'kubelet_volume_stats_used_bytes{{{_MOUNTED},node="n2"}}': "29x10",
    f'kubelet_volume_stats_capacity_bytes{{{_MOUNTED},node="n2"}}': "40x10",
    'kubelet_volume_stats_used_bytes{namespace="ns",persistentvolumeclaim="others",node="n1"}': "39x10",
    'kubelet_volume_stats_capacity_bytes{namespace="ns",persistentvolumeclaim="others",node="n1"}': "40x10",
}
_CLAIMED = {
    f'kube_pod_spec_volumes_persistentvolumeclaims_info{{{_POD},persistentvolumeclaim="files",volume="{volume}"}}': "1x10"
    for volume in ("home", "shared")
}


@needs_promtool
def test_fullest_file_system_prefers_node_exporter_over_cadvisor(tmp_path: Path) -> None:
    asked = node_columns("n1")["filesystem"]
    other: dict[str, Samples] = {node_columns("n2")["filesystem"]: []}
    evaluated(
        tmp_path,
        ({**_EXPORTED, **_DEVICES}, {asked: [("{}", 75.0)], **other}),
        (_DEVICES, {asked: [("{}", 60.0)], **other}),
        (_CADVISOR, {asked: [], **other}),
    )


@needs_promtool
def test_pool_use_is_summed_across_mixed_metrics(tmp_path: Path) -> None:
    series = {
        **{f'kube_node_labels{{node="{node}",label_pool="gpu"}}': "1x10" for node in ("n1", "n2")},
        'kube_node_labels{node="n3",label_pool="other"}': "1x10",
        'container_fs_reads_bytes_total{id="/",node="n1",device="/dev/sda"}': "0+600x10",
        'node_disk_read_bytes_total{node="n1",device="sda"}': "0+6000x10",
        'node_disk_read_bytes_total{node="n2",device="sda"}': "0+1200x10",
        'node_disk_read_bytes_total{node="n3",device="sda"}': "0+60000x10",
        'node_network_receive_bytes_total{node="n2",device="eth0"}': "0+60x10",
        'node_network_receive_bytes_total{node="n2",device="lo"}': "0+6000x10",
        'container_pressure_cpu_waiting_seconds_total{id="/",node="n1"}': "0+6x10",
        'node_pressure_cpu_waiting_seconds_total{node="n2"}': "0+12x10",
        'node_pressure_cpu_waiting_seconds_total{node="n3"}': "0+30x10",
        'DCGM_FI_DEV_GPU_UTIL{Hostname="n1",gpu="0"}': "80x10",
        'DCGM_FI_DEV_GPU_UTIL{Hostname="n1",gpu="1"}': "60x10",
        'DCGM_FI_DEV_GPU_UTIL{node="n2",Hostname="n2",gpu="0"}': "10x10",
        **_EXPORTED,
        'container_fs_usage_bytes{id="/",node="n2",device="/dev/sda1"}': "80x10",
        'container_fs_limit_bytes{id="/",node="n2",device="/dev/sda1"}': "100x10",
    }
    expected = {"read": 30, "received": 1, "throttled": 20, "gpu": 40, "filesystem": 80}
    asked = in_columns(pool_use_columns("gpu", "label_pool"))
    evaluated(tmp_path, (series, {asked: rows(expected), in_columns(pool_use_columns('g"', "label_pool")): []}))


@needs_promtool
def test_the_fullest_volume_is_one_that_the_pods_claim(tmp_path: Path) -> None:
    asked = pods_columns("ns", "p1")["volume"]
    expected: dict[str, Samples] = {
        asked: [("{}", 75.0)],
        pods_columns("ns", "p", with_prefix=True)["volume"]: [],
        pods_columns("other", "p1")["volume"]: [],
    }
    evaluated(tmp_path, ({**_VOLUMES, **_CLAIMED}, expected), (_VOLUMES, {asked: []}))


@needs_promtool
def test_an_executions_pods_are_summed_and_no_others(tmp_path: Path) -> None:
    own, other = "ex-1-worker-a", "ex-10-worker-a"
    series = {
        f'container_memory_working_set_bytes{{namespace="ns",pod="{pod}",container="run"}}': f"{size}x10"
        for pod, size in (("ex-1", 1), (own, 2), (other, 4))
    }
    asked = in_columns(pods_columns("ns", "ex-1", with_prefix=True))
    evaluated(tmp_path, (series, {asked: rows({"memory_used": 3})}))
