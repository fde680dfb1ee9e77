"""What a Prometheus scrapes of the embedded cluster, in the names of a real one."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from grid.sandbox.control import Control
from grid.sandbox.kubelet.cadvisor import DiskUsage, cadvisor, disk_usage
from grid.sandbox.kubelet.runtime import ContainerStats, PodIdentity
from grid.sandbox.kubelet.summary import ContainerUsage, PodUsage
from grid.sandbox.population import Population, Size
from tests.sandbox.apiserver.conftest import Api
from tests.sandbox.apiserver.test_kubelets import Kubelet
from tests.support.prometheus import complaints

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def used(name: str, *, read: int | None = None) -> ContainerUsage:
    return ContainerUsage(name, NOW, ContainerStats(1_500_000_000, 0, 2048, NOW, read, read), "jupyter:1")


def pods(*containers: ContainerUsage) -> list[PodUsage]:
    return [PodUsage(PodIdentity("u1", "ns", "p1"), NOW, containers)]


def test_container_pod_and_node_series_match_cadvisor() -> None:
    text = cadvisor(pods(used("run", read=10), used("executor", read=5), used("unmeasured")))
    pod = 'image="",namespace="ns",pod="p1"'
    run = 'container="run",id="/kubepods/podu1/run",image="jupyter:1",namespace="ns",pod="p1"'
    assert f"container_cpu_usage_seconds_total{{{run}}} 1.5\n" in text
    assert f'container_cpu_usage_seconds_total{{container="",id="/kubepods/podu1",{pod}}} 4.5\n' in text
    assert 'container_fs_reads_bytes_total{container="",id="/",image="",namespace="",pod=""} 15\n' in text
    assert f"container_start_time_seconds{{{run}}} {NOW.timestamp()!r}\n" in text
    assert 'container_fs_reads_bytes_total{container="unmeasured"' not in text


def test_the_file_system_of_the_volumes_is_the_nodes(tmp_path: Path) -> None:
    disk = disk_usage(tmp_path / "made with the first" / "volume")
    assert disk is not None and 0 < disk.used < disk.size
    text = cadvisor([], DiskUsage(60, 100))
    for name, value in (("usage", 60), ("limit", 100)):
        place = 'container="",device="/dev/root",id="/",image="",namespace="",pod=""'
        assert f"container_fs_{name}_bytes{{{place}}} {value}\n" in text
    assert complaints(text) == ""


@pytest.fixture
async def state(api: Api, kubelet: Kubelet) -> str:
    """What kube-state-metrics would say of a node and two pods."""
    api.server.beside = Control(api.server, Population(api.server.registry, Size(0, 0), namespace="ns")).answer
    status = {
        "allocatable": {"cpu": "1500m", "memory": "2Gi", "nvidia.com/gpu": "2"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    labels = {"compute-grid.io/node-pool": "a", "nodePool": "x"}
    await api.make("/api/v1/nodes", {"metadata": {"name": "n2", "labels": labels}, "status": status})
    resources = {"requests": {"cpu": "250m"}, "limits": {"memory": "64Mi"}}
    await api.pod("q", node="n2", containers=[{"name": "run", "image": "i", "resources": resources}])
    answer = await api.ask("GET", "/sandbox/kube-state-metrics")
    assert answer.status == 200
    return str(answer.body)


async def test_node_and_pod_series_match_kube_state_metrics(api: Api, state: str) -> None:
    uid = (await api.ask("GET", "/api/v1/namespaces/default/pods/q")).body["metadata"]["uid"]
    pod = f'namespace="default",pod="q",uid="{uid}"'
    for expected in (
        'kube_node_labels{node="n2",label_compute_grid_io_node_pool="a",label_node_pool="x"} 1',
        'kube_node_status_allocatable{node="n2",resource="cpu",unit="core"} 1.5',
        'kube_node_status_allocatable{node="n2",resource="nvidia_com_gpu",unit="integer"} 2.0',
        'kube_node_status_condition{node="n2",condition="Ready",status="true"} 1.0',
        'kube_node_status_condition{node="n2",condition="Ready",status="false"} 0.0',
        f'kube_pod_status_phase{{{pod},phase="Pending"}} 1.0',
        f'kube_pod_status_phase{{{pod},phase="Running"}} 0.0',
        f'kube_pod_container_resource_requests{{{pod},container="run",node="n2",resource="cpu",unit="core"}} 0.25',
        f'kube_pod_container_resource_limits{{{pod},container="run",node="n2",resource="memory",unit="byte"}} 67108864.0',
    ):
        assert expected in state.splitlines(), state
    assert f'kube_pod_info{{{pod},node="n2",' in state
    assert not complaints(state)


async def test_a_kubelets_metrics_are_reached_through_the_api_server(api: Api, kubelet: Kubelet) -> None:
    path = "/api/v1/nodes/n1/proxy/metrics/cadvisor"
    answer = await api.ask("GET", path)
    assert (answer.status, answer.body, kubelet.asked) == (200, "one\ntwo\n", ["/metrics/cadvisor"])
    assert (await api.ask("GET", path.replace("n1", "gone"))).status == 404
    assert (await api.ask("GET", path, Authorization="Bearer guess")).status == 401
    assert (await api.ask("GET", "/api/v1/nodes/n1/proxy/exec/anything")).status == 404


async def test_prometheus_finds_only_nodes_with_a_kubelet(api: Api, state: str) -> None:
    targets = (await api.ask("GET", "/sandbox/scrape-targets")).body
    assert [target["labels"]["node"] for target in targets] == ["n1", "n2"]
    assert targets[0]["targets"] == [api.server.address]
    assert targets[0]["labels"]["__metrics_path__"] == "/api/v1/nodes/n1/proxy/metrics/cadvisor"
