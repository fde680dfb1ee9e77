"""The NetworkPolicies of executions' pods (pure); those of a cluster are in `clusters.manifests`.

Policies only add to each other, and a pod that any of them selects is closed to all peers that none allows. So the policy that selects
every pod allows what all need, and closes the rest by existing; deploy/network.yaml closes them before the controller has led for the first
time.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from grid.core.egress import Opening
from grid.core.labels import APP_COMPONENT, APP_NAME, HEAD, MANAGED_BY, MANAGER, WORKER
from grid.diagnosis.beside import FRONT_PORTS
from grid.executions.manifests import Manifest
from grid.kube.objects import RawObject
from grid.kube.resources import NETWORK_POLICIES

# Where our own processes run; deploy/access.yaml makes it. The label is Kubernetes' own, on every namespace.
SYSTEM_NAMESPACE = "compute-grid-system"
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
EXECUTIONS = "executions"
USER_INTERFACES = "user-interfaces"
_DNS = {
    "to": [
        {
            "namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: "kube-system"}},
            "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
        }
    ],
    "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
}


def system_peer(component: str) -> RawObject:
    """Return the peer for the pods of one of our own components."""
    return {
        "namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: SYSTEM_NAMESPACE}},
        "podSelector": {"matchLabels": {APP_NAME: MANAGER, APP_COMPONENT: component}},
    }


def build_policy(
    named: Mapping[str, Any],
    selector: Mapping[str, Any],
    *,
    ingress: Sequence[RawObject] | None = None,
    egress: Sequence[RawObject] | None = None,
) -> Manifest:
    """Return a policy. A direction that is None is left to other policies; an empty one is closed except for what they allow."""
    spec: RawObject = {"podSelector": dict(selector), "policyTypes": []}
    for kind, field, rules in (("Ingress", "ingress", ingress), ("Egress", "egress", egress)):
        if rules is not None:
            spec["policyTypes"].append(kind)
        if rules:  # the API server leaves an empty list out
            spec[field] = list(rules)
    return Manifest.of(NETWORK_POLICIES, named, spec=spec)


def build_for_all(
    namespace: str, openings: Iterable[Opening], ports: Collection[int] | None = None, *, ingress: str = ""
) -> list[Manifest]:
    """Return the policies of all executions: every pod reaches DNS and the allowed destinations, and the proxy reaches their pages,
    as does the controller, which asks whether they are idle: on these ports, or on all. Clusters' policies name their own ports.

    Pods of the namespace `ingress` reach the ports of fronts: those answer only with a token.
    """

    def named(name: str) -> RawObject:
        return {"name": name, "namespace": namespace, "labels": {MANAGED_BY: MANAGER}}

    outside_clusters = {"matchExpressions": [{"key": APP_COMPONENT, "operator": "NotIn", "values": [HEAD, WORKER]}]}
    pages: RawObject = {"from": [system_peer("proxy"), system_peer("controller")]}
    if ports is not None:
        pages["ports"] = _tcp(ports)
    rules = [pages]
    if ingress:
        peers = [{"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: ingress}}}]
        rules.append({"from": peers, "ports": _tcp(FRONT_PORTS)})
    return [
        build_policy(named(EXECUTIONS), {}, ingress=[], egress=[_DNS, *map(_outward, openings)]),
        build_policy(named(USER_INTERFACES), outside_clusters, ingress=rules),
    ]


def _tcp(ports: Collection[int]) -> list[RawObject]:
    return [{"protocol": "TCP", "port": port} for port in sorted(ports)]


def _outward(opening: Opening) -> RawObject:
    block: RawObject = {"cidr": str(opening.block)}
    if opening.without:
        block["except"] = list(map(str, opening.without))
    return {"to": [{"ipBlock": block}], **({"ports": _tcp([opening.port])} if opening.port else {})}
