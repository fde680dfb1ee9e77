"""Who reaches whom in and around an on-demand cluster where NetworkPolicies are enforced."""

import pytest

from grid.clusters.frameworks import framework
from tests.clusters.cluster_specs import spec
from tests.executions.networks import network

ANY_PORT, LAB = 43210, 8888
FRAMEWORKS = ["dask", "ray", "spark"]
STRANGERS = ["another workspace", "another head", "a pod of another namespace"]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_members_proxy_and_controller_reach_what_they_need_alone(name: str) -> None:
    net, page, calls_back = network(name), framework(name).ui_port, name == "spark"
    inside = [("worker", "head"), ("head", "worker"), ("worker", "worker"), ("workspace", "worker")]
    open_to = {
        **{(source, to, ANY_PORT): True for source, to in inside},
        **{("workspace", "head", port.target): True for port in framework(name).head(spec()).ports},
        **{(source, "workspace", port): calls_back for source in ("worker", "head") for port in (ANY_PORT, 4040)},
        **{(source, "head", page): source != "web" for source in ("proxy", "controller", "web")},
        **{(source, "head", ANY_PORT): False for source in ("proxy", "controller")},
        **{(source, "worker", page): False for source in ("proxy", "controller")},
        ("proxy", "workspace", LAB): True,
        ("web", "workspace", LAB): False,
    }
    assert {way: net.lets(*way) for way in open_to} == open_to


def test_a_cluster_of_its_own_opens_no_other_pod() -> None:
    net = network("spark", attached=False)
    assert not net.lets("worker", "workspace", ANY_PORT)
    assert not net.lets("workspace", "head", 7077)


@pytest.mark.parametrize("name", FRAMEWORKS)
@pytest.mark.parametrize("stranger", STRANGERS)
def test_strangers_are_refused(name: str, stranger: str) -> None:
    net = network(name)
    for port in (framework(name).ui_port, ANY_PORT, LAB):
        for to in ("head", "worker", "workspace"):
            assert not net.lets(stranger, to, port)
            assert not net.lets(to, stranger, port)
