"""What a set of NetworkPolicies lets through, as a network that enforces them decides it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any


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
