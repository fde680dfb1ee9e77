"""Who reaches whom in and around an on-demand cluster where NetworkPolicies are enforced."""

import pytest

from grid.clusters.frameworks import framework
from tests.clusters.cluster_specs import spec
from tests.executions.networks import network

FRAMEWORKS = pytest.mark.parametrize("name", ["dask", "ray", "spark"])
ANY_PORT = 43210


@FRAMEWORKS
def test_head_and_workers_reach_each_other_at_any_port(name: str) -> None:
    net = network(name)
    for source, to in (("worker", "head"), ("head", "worker"), ("worker", "worker")):
        assert net.lets(source, to, ANY_PORT)


@FRAMEWORKS
def test_the_workspace_reaches_its_cluster(name: str) -> None:
    net = network(name)
    assert all(net.lets("workspace", "head", port.target) for port in framework(name).head(spec()).ports)
    assert net.lets("workspace", "worker", ANY_PORT)


def test_executors_reach_the_driver_and_the_master_its_page() -> None:
    net = network("spark")
    assert net.lets("worker", "workspace", ANY_PORT)
    assert net.lets("head", "workspace", 4040)


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_answering_framework_does_not_reach_the_workspace(name: str) -> None:
    assert not network(name).lets("worker", "workspace", ANY_PORT)


def test_a_cluster_of_its_own_opens_no_other_pod() -> None:
    net = network("spark", attached=False)
    assert not net.lets("worker", "workspace", ANY_PORT)
    assert not net.lets("workspace", "head", 7077)


@FRAMEWORKS
def test_head_page_is_reached_by_proxy_and_controller(name: str) -> None:
    net, page = network(name), framework(name).ui_port
    for source in ("proxy", "controller"):
        assert net.lets(source, "head", page)
        assert not net.lets(source, "head", ANY_PORT)
        assert not net.lets(source, "worker", page)
    assert not net.lets("web", "head", page)


@FRAMEWORKS
def test_workspace_with_a_cluster_is_opened_like_any_other(name: str) -> None:
    net = network(name)
    assert net.lets("proxy", "workspace", 8888)
    assert not net.lets("web", "workspace", 8888)


@FRAMEWORKS
@pytest.mark.parametrize("stranger", ["another workspace", "another head", "a pod of another namespace"])
def test_strangers_are_refused(name: str, stranger: str) -> None:
    net = network(name)
    for port in (framework(name).ui_port, ANY_PORT, 8888):
        for to in ("head", "worker", "workspace"):
            assert not net.lets(stranger, to, port)
            assert not net.lets(to, stranger, port)
