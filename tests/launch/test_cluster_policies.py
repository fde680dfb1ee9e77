"""Who reaches whom where NetworkPolicies are enforced: those of deploy/ and those of a cluster, taken together."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from grid.kube.resources import DEPLOYMENTS, NETWORK_POLICIES, PODS
from grid.launch.clusters.manifests import first, head_name, worker_name, workers
from grid.launch.frameworks import framework
from grid.launch.manifests import build
from grid.launch.spec import AttachedSpec, EnvironmentSpec
from tests.launch.cluster_specs import cluster, spec

DEPLOY = Path(__file__).parents[2] / "deploy"
EXECUTIONS = "compute-grid"
FRAMEWORKS = pytest.mark.parametrize("name", ["dask", "ray", "spark"])
ANY_PORT = 43210


@dataclass(frozen=True)
class Pod:
    labels: Mapping[str, str]
    namespace: str = EXECUTIONS


@dataclass(frozen=True)
class Network:
    """A cluster with a workspace (or alone), and all policies that there are."""

    head: Pod
    worker: Pod
    workspace: Pod
    policies: tuple[dict[str, Any], ...]
    system: Mapping[str, Pod] = field(default_factory=dict)

    def lets(self, source: Pod, to: Pod, port: int) -> bool:
        """A pod that no policy selects accepts everybody; one that some select, whom at least one of them names."""
        selecting = [
            policy
            for policy in self.policies
            if policy["metadata"]["namespace"] == to.namespace and matches(policy["spec"]["podSelector"], to.labels)
        ]
        rules = [rule for policy in selecting for rule in policy["spec"]["ingress"]]
        return not selecting or any(admits(rule, source, to.namespace, port) for rule in rules)


def admits(rule: Mapping[str, Any], source: Pod, namespace: str, port: int) -> bool:
    if "ports" in rule and port not in [one["port"] for one in rule["ports"]]:
        return False
    return "from" not in rule or any(names(peer, source, namespace) for peer in rule["from"])


def names(peer: Mapping[str, Any], source: Pod, namespace: str) -> bool:
    assert peer.keys() <= {"namespaceSelector", "podSelector"}, "the test would have to learn more"
    if "namespaceSelector" in peer:
        is_there = matches(peer["namespaceSelector"], {"kubernetes.io/metadata.name": source.namespace})
    else:
        is_there = source.namespace == namespace
    return is_there and matches(peer.get("podSelector", {}), source.labels)


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    assert selector.keys() <= {"matchLabels"}, "the test would have to learn more"
    return bool(selector.get("matchLabels", {}).items() <= labels.items())


def network(name: str, *, attached: bool = True, with_deploy: bool = True) -> Network:
    of = spec(of=cluster(name, attached_to="xyz" if attached else ""))
    made = [
        *first(of, namespace=EXECUTIONS, anchor_uid="u"),
        *workers(of, namespace=EXECUTIONS, anchor_uid="u", head_address="10.0.0.9"),
    ]
    templates = {m.name: m.body["spec"]["template"]["metadata"]["labels"] for m in made if m.resource == DEPLOYMENTS}
    workspace = spec(
        id="xyz",
        kind="workspace",
        cluster=None,
        attached=AttachedSpec(id="abc", framework=name),
        environment=EnvironmentSpec(id="lab", name="Lab", image="lab:1"),
    )
    (pod,) = [m.body for m in build(workspace, namespace=EXECUTIONS, token="t") if m.resource == PODS]
    documents = [one for file in sorted(DEPLOY.glob("*.yaml")) for one in yaml.safe_load_all(file.read_text()) if one]
    deployed = [one for one in documents if one["kind"] == "NetworkPolicy" and with_deploy]
    assert deployed or not with_deploy
    system = {
        one["metadata"]["name"]: Pod(one["spec"]["template"]["metadata"]["labels"], one["metadata"]["namespace"])
        for one in documents
        if one["kind"] == "Deployment"
    }
    return Network(
        head=Pod(templates[head_name("abc")]),
        worker=Pod(templates[worker_name("abc")]),
        workspace=Pod(pod["metadata"]["labels"]),
        policies=(*deployed, *(m.body for m in made if m.resource == NETWORK_POLICIES)),
        system=system,
    )


@FRAMEWORKS
def test_head_and_workers_reach_each_other_at_any_port(name: str) -> None:
    net = network(name)
    assert net.lets(net.worker, net.head, ANY_PORT)
    assert net.lets(net.head, net.worker, ANY_PORT)
    assert net.lets(net.worker, net.worker, ANY_PORT)


@FRAMEWORKS
def test_the_workspace_reaches_its_cluster(name: str) -> None:
    net = network(name)
    assert all(net.lets(net.workspace, net.head, port.target) for port in framework(name).head(spec()).ports)
    assert net.lets(net.workspace, net.worker, ANY_PORT)


def test_executors_reach_the_driver_and_the_master_its_page() -> None:
    net = network("spark")
    assert net.lets(net.worker, net.workspace, ANY_PORT)
    assert net.lets(net.head, net.workspace, 4040)


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_a_framework_that_only_answers_does_not_reach_the_workspace(name: str) -> None:
    net = network(name)
    assert not net.lets(net.worker, net.workspace, ANY_PORT)


def test_a_cluster_of_its_own_opens_no_other_pod() -> None:
    net = network("spark", attached=False)
    assert not net.lets(net.worker, net.workspace, ANY_PORT)
    assert not net.lets(net.workspace, net.head, 7077)


@FRAMEWORKS
def test_the_page_of_the_head_is_reached_by_dashboard_and_controller(name: str) -> None:
    net, page = network(name), framework(name).ui_port
    assert net.lets(net.system["web"], net.head, page)
    assert net.lets(net.system["controller"], net.head, page)
    assert not net.lets(net.system["controller"], net.head, ANY_PORT)


@FRAMEWORKS
@pytest.mark.parametrize("with_deploy", [True, False], ids=["with the policy of deploy", "without it"])
def test_the_web_processes_reach_the_workspace(name: str, with_deploy: bool) -> None:
    net = network(name, with_deploy=with_deploy)
    assert net.lets(net.system["web"], net.workspace, 8888)


@FRAMEWORKS
def test_strangers_are_refused(name: str) -> None:
    net = network(name)
    another = {"dominodatalab.com/execution-id": "other", "app.kubernetes.io/component": "head"}
    strangers = (
        Pod(another),
        Pod(net.worker.labels, "default"),
        Pod(net.system["web"].labels, "default"),
        replace(net.system["web"], labels={"app": "other"}, namespace=EXECUTIONS),
    )
    for stranger in strangers:
        assert not any(net.lets(stranger, pod, framework(name).ui_port) for pod in (net.head, net.worker))
        assert not net.lets(stranger, net.workspace, 8888)
