"""A cluster with our own processes, a workspace with an on-demand cluster, what strangers run, and all policies that there are."""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import yaml

from grid.clusters.manifests import first, head_name, worker_name, workers
from grid.core.egress import read_egress
from grid.executions.manifests import build
from grid.executions.policykeeper import build_for_all
from grid.executions.spec import EnvironmentSpec
from grid.kube.resources import DEPLOYMENTS, NETWORK_POLICIES, PODS
from tests.clusters.cluster_specs import cluster, spec

DEPLOY = Path(__file__).parents[2] / "deploy"
EXECUTIONS = "compute-grid"
SYSTEM = "compute-grid-system"
API_SERVER, DATABASE, STORAGE = "34.1.2.3", "20.4.5.6", "10.20.0.5"
_LAB = EnvironmentSpec(id="lab", name="Lab", image="lab:1")


@dataclass(frozen=True)
class Host:
    """A pod, or with neither labels nor namespace something outside the cluster."""

    address: str
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""


@dataclass(frozen=True)
class Policies:
    """All of a cluster. An address counts for pods too, as with some networks: what it must not open is then seen here."""

    bodies: tuple[Mapping[str, Any], ...]

    def let(self, source: Host, to: Host, port: int, protocol: str = "TCP") -> bool:
        return self._leaves(source, to, port, protocol) and self._enters(source, to, port, protocol)

    def _leaves(self, source: Host, to: Host, port: int, protocol: str) -> bool:
        rules = self._rules(source, "Egress")
        return rules is None or any(_admits(rule, "to", to, source.namespace, port, protocol) for rule in rules)

    def _enters(self, source: Host, to: Host, port: int, protocol: str) -> bool:
        rules = self._rules(to, "Ingress")
        return rules is None or any(_admits(rule, "from", source, to.namespace, port, protocol) for rule in rules)

    def _rules(self, pod: Host, direction: str) -> list[Mapping[str, Any]] | None:
        """None when no policy selects it for that direction: then it is open to everybody."""
        selecting = [
            body["spec"]
            for body in self.bodies
            if body["metadata"]["namespace"] == pod.namespace
            and direction in body["spec"]["policyTypes"]
            and _matches(body["spec"]["podSelector"], pod.labels)
        ]
        return [rule for spec in selecting for rule in spec.get(direction.lower(), ())] if selecting else None


def _admits(rule: Mapping[str, Any], side: str, peer: Host, namespace: str, port: int, protocol: str) -> bool:
    assert rule.keys() <= {side, "ports"}, "the evaluator would have to learn more"
    ports = rule.get("ports")
    if ports is not None and {"protocol": protocol, "port": port} not in ports:
        return False
    return side not in rule or any(_names(rule_part, peer, namespace) for rule_part in rule[side])


def _names(peer: Mapping[str, Any], host: Host, namespace: str) -> bool:
    assert peer.keys() <= {"namespaceSelector", "podSelector", "ipBlock"}, "the evaluator would have to learn more"
    if "ipBlock" in peer:
        block = peer["ipBlock"]
        return _within(host.address, [block["cidr"]]) and not _within(host.address, block.get("except", ()))
    if not host.namespace:
        return False
    if "namespaceSelector" in peer:
        is_there = _matches(peer["namespaceSelector"], {"kubernetes.io/metadata.name": host.namespace})
    else:
        is_there = host.namespace == namespace
    return is_there and _matches(peer.get("podSelector", {}), host.labels)


def _within(address: str, blocks: Iterable[str]) -> bool:
    return any(ip_address(address) in ip_network(block) for block in blocks)


def _matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    assert selector.keys() <= {"matchLabels", "matchExpressions"}, "the evaluator would have to learn more"
    are_there = selector.get("matchLabels", {}).items() <= labels.items()
    return are_there and all(_holds(expression, labels) for expression in selector.get("matchExpressions", ()))


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    is_one = labels.get(expression["key"]) in expression["values"]
    return {"In": is_one, "NotIn": not is_one}[expression["operator"]]


@dataclass(frozen=True)
class Network:
    hosts: Mapping[str, Host]
    policies: Policies

    def lets(self, source: str, to: str, port: int, protocol: str = "TCP") -> bool:
        return self.policies.let(self.hosts[source], self.hosts[to], port, protocol)


@functools.cache
def _deployed() -> tuple[dict[str, Any], ...]:
    """Return all objects of deploy/, which nobody here changes; reading them takes longer than a test."""
    return tuple(obj for file in sorted(DEPLOY.glob("*.yaml")) for obj in yaml.safe_load_all(file.read_text()) if obj)


def network(name: str = "dask", *, attached: bool = True, leads: bool = True, ingress: str = "") -> Network:
    """`leads` False: no controller has led yet, and so opened nothing."""
    of = spec(of=cluster(name, attached_to="xyz" if attached else ""))
    made = [
        *first(of, namespace=EXECUTIONS, anchor_uid="u"),
        *workers(of, namespace=EXECUTIONS, anchor_uid="u", head_address="10.0.0.9"),
    ]
    templates = {m.name: m.body["spec"]["template"]["metadata"]["labels"] for m in made if m.resource == DEPLOYMENTS}
    egress, mistakes = read_egress(["0.0.0.0/0", "::/0"], [f"{STORAGE}:9000"])
    assert not mistakes
    openings = egress.openings([ip_network(API_SERVER), ip_network(DATABASE)])
    kept = build_for_all(EXECUTIONS, openings, ingress=ingress) if leads else []
    deployed = _deployed()
    policies = [obj for obj in deployed if obj["kind"] == "NetworkPolicy"]
    policies += [m.body for m in (*kept, *made) if m.resource == NETWORK_POLICIES]
    hosts = {
        "head": Host("10.8.0.1", templates[head_name("abc")], EXECUTIONS),
        "worker": Host("10.8.0.2", templates[worker_name("abc")], EXECUTIONS),
        "workspace": Host("10.8.0.3", _labels("xyz"), EXECUTIONS),
        "another workspace": Host("10.8.0.4", _labels("uvw"), EXECUTIONS),
        "another head": Host(
            "10.8.0.5", {**templates[head_name("abc")], "dominodatalab.com/execution-id": "z"}, EXECUTIONS
        ),
        "a pod of another namespace": Host("10.8.1.1", templates[worker_name("abc")], "default"),
        "the ingress controller": Host("10.8.1.2", {"app": "ingress"}, "ingress-nginx"),
        "dns": Host("10.8.1.3", {"k8s-app": "kube-dns"}, "kube-system"),
        "a pod of kube-system": Host("10.8.1.4", {"app": "metrics-server"}, "kube-system"),
        "the API server": Host(API_SERVER),
        "the API server's private address": Host("10.0.0.1"),
        "the database": Host(DATABASE),
        "the database's private address": Host("192.168.7.7"),
        "storage": Host(STORAGE),
        "the metadata address": Host("169.254.169.254"),
        "the metadata address in IPv6": Host("fd00:ec2::254"),
        "the metadata address, translated": Host("64:ff9b::a9fe:a9fe"),
        "the internet": Host("93.184.215.14"),
        "the internet in IPv6": Host("2606:4700::1111"),
        **{
            obj["metadata"]["name"]: Host(f"10.8.2.{number}", _pod_labels(obj), SYSTEM)
            for number, obj in enumerate(obj for obj in deployed if obj["kind"] in ("Deployment", "Job"))
        },
    }
    return Network(hosts, Policies(tuple(policies)))


def _pod_labels(workload: Mapping[str, Any]) -> Mapping[str, str]:
    labels: Mapping[str, str] = workload["spec"]["template"].get("metadata", {}).get("labels", {})
    return labels


def _labels(id: str) -> Mapping[str, str]:
    of = spec(id=id, kind="workspace", cluster=None, environment=_LAB)
    (pod,) = [m.body for m in build(of, namespace=EXECUTIONS, token="t") if m.resource == PODS]
    labels: Mapping[str, str] = pod["metadata"]["labels"]
    return labels
