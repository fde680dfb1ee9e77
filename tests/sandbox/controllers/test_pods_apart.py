"""Rules of pods about each other: affinity in both directions, and even spread over places."""

from typing import Any

import pytest

from grid.sandbox.controllers.scheduling import schedule
from tests.sandbox.support import make_node, make_pod

ZONE = "topology.kubernetes.io/zone"
NODES = [make_node(name, labels={ZONE: zone}) for name, zone in (("a", "east"), ("b", "east"), ("c", "west"))]
Pod = dict[str, Any]


def labelled(name: str, app: str, node: str | None = None, **spec: Any) -> Pod:
    pod = make_pod(name, nodeName=node, **spec) if node else make_pod(name, **spec)
    pod["metadata"] |= {"labels": {"app": app}, "uid": name}
    return pod


def term(app: str, key: str = ZONE, **fields: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **fields}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def spread(key: str = ZONE, when: str = "DoNotSchedule", app: str = "web", **fields: Any) -> list[dict[str, Any]]:
    selector = {"matchLabels": {"app": app}}
    return [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector, **fields}]


def nodes_for(pod: Pod, others: list[Pod], nodes: list[Pod] | None = None) -> set[str]:
    """The nodes that take the pod, each asked alone about it but with all others counted."""
    fitting = set()
    for node in nodes or NODES:
        only = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_named(node)]}}
        affinity = {**(pod["spec"].get("affinity") or {}), "nodeAffinity": only}
        # The policy keeps the narrowing to one node from hiding the other domains.
        constraints = [
            {**item, "nodeAffinityPolicy": "Ignore"} for item in pod["spec"].get("topologySpreadConstraints") or ()
        ]
        spec = {**pod["spec"], "affinity": affinity, "topologySpreadConstraints": constraints}
        if schedule({**pod, "spec": spec}, nodes or NODES, others).node:
            fitting.add(node["metadata"]["name"])
    return fitting


def _named(node: Pod) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node["metadata"]["name"]]}]}


def test_pod_follows_pods_of_its_affinity() -> None:
    pod = labelled("p", "web", affinity=near(term("db")))
    assert nodes_for(pod, [labelled("db", "db", "b")]) == {"a", "b"}
    assert nodes_for(pod, []) == set()


def test_all_its_terms_must_hold_for_the_same_pods() -> None:
    pod = labelled("p", "web", affinity=near(term("db"), term("cache")))
    assert nodes_for(pod, [labelled("db", "db", "a"), labelled("cache", "cache", "a")]) == set()


def test_first_pod_of_affine_group_may_start_anywhere() -> None:
    pod = labelled("p", "web", affinity=near(term("web")))
    assert nodes_for(pod, []) == {"a", "b", "c"}
    assert nodes_for(pod, [labelled("w", "web", "c")]) == {"c"}


def test_a_pod_avoids_its_like_in_the_same_place() -> None:
    pod = labelled("p", "web", affinity=apart(term("web")))
    assert nodes_for(pod, [labelled("w", "web", "a")]) == {"c"}
    assert nodes_for(pod, [labelled("w", "web", "a", namespace="other")]) == {"a", "b", "c"}


def test_pod_avoids_nodes_of_pods_that_avoid_it() -> None:
    hermit = labelled("hermit", "quiet", "c", affinity=apart(term("web")))
    assert nodes_for(labelled("p", "web"), [hermit]) == {"a", "b"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"namespaces": ["other"]}, {"c"}),
        ({"namespaces": ["third"]}, {"a", "b", "c"}),
        ({"namespaceSelector": {}}, {"c"}),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, {"c"}),
        ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, {"a", "b", "c"}),
    ],
)
def test_a_term_names_the_namespaces_it_speaks_about(fields: dict[str, Any], expected: set[str]) -> None:
    pod = labelled("p", "web", affinity=apart(term("web", **fields)))
    others = {"Namespace": [{"metadata": {"name": "other", "labels": {"team": "x"}}}]}
    there = [labelled("w", "web", "a", namespace="other")]
    found = {
        name
        for name in "abc"
        if schedule(
            {**pod, "spec": {**pod["spec"], "nodeSelector": {"kubernetes.io/hostname": name}}}, NODES, there, (), others
        ).node
    }
    assert found == expected


def test_match_label_keys_limit_a_term_to_its_revision() -> None:
    pod = labelled("p", "web", affinity=apart(term("web", matchLabelKeys=["revision"])))
    pod["metadata"]["labels"]["revision"] = "2"
    old = labelled("w", "web", "a")
    old["metadata"]["labels"]["revision"] = "1"
    assert nodes_for(pod, [old]) == {"a", "b", "c"}
    old["metadata"]["labels"]["revision"] = "2"
    assert nodes_for(pod, [old]) == {"c"}


def test_preference_attracts_and_aversion_repels_a_pod() -> None:
    likes = {"weight": 50, "podAffinityTerm": term("db")}
    there = [labelled("db", "db", "c", requests={"cpu": "100m"})]
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [likes]}
    assert schedule(labelled("p", "web", affinity={"podAffinity": preferred}), NODES, there).node == "c"
    full = [labelled(name, "x", name, requests={"cpu": "4"}) for name in "ab"]
    assert schedule(labelled("p", "web"), NODES, [*there, *full]).node == "c"
    assert schedule(labelled("p", "web", affinity={"podAntiAffinity": preferred}), NODES, [*there, *full]).node == "a"


def test_pods_are_spread_evenly_over_zones() -> None:
    pod = labelled("p", "web", topologySpreadConstraints=spread())
    assert nodes_for(pod, [labelled("w", "web", "a")]) == {"c"}
    assert nodes_for(pod, [labelled("w", "web", "a"), labelled("v", "web", "c")]) == {"a", "b", "c"}


def test_a_pod_that_is_ending_no_longer_counts() -> None:
    ending = labelled("w", "web", "a")
    ending["metadata"]["deletionTimestamp"] = "2026-11-21T04:00:00Z"
    assert nodes_for(labelled("p", "web", topologySpreadConstraints=spread()), [ending]) == {"a", "b", "c"}


def test_missing_domains_count_as_another_empty_one() -> None:
    pod = labelled("p", "web", topologySpreadConstraints=spread(minDomains=3))
    both = [labelled("w", "web", "a"), labelled("v", "web", "c")]
    assert nodes_for(pod, both) == set()


def test_forbidden_zone_does_not_block_the_spread() -> None:
    pod = labelled("p", "web", topologySpreadConstraints=spread(), nodeSelector={ZONE: "east"})
    there = [labelled("w", "web", "a")]
    assert schedule(pod, NODES, there).node == "b"
    pod["spec"]["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = "Ignore"
    assert schedule(pod, NODES, there).node == ""


def test_a_tainted_zone_counts_unless_taints_are_honoured() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    nodes = [NODES[0], make_node("c", labels={ZONE: "west"}, taints=[taint])]
    there = [labelled("w", "web", "a")]
    assert schedule(labelled("p", "web", topologySpreadConstraints=spread()), nodes, there).node == ""
    honoured = spread(nodeTaintsPolicy="Honor")
    assert schedule(labelled("p", "web", topologySpreadConstraints=honoured), nodes, there).node == "a"


def test_soft_spread_decides_between_fitting_nodes() -> None:
    wish = spread(when="ScheduleAnyway")
    there = [labelled("w", "web", "a"), labelled("v", "web", "b")]
    assert schedule(labelled("p", "web", topologySpreadConstraints=wish), NODES, there).node == "c"
    busy = labelled("busy", "x", "c", requests={"cpu": "2"})
    assert schedule(labelled("p", "web", topologySpreadConstraints=wish), NODES, [*there, busy]).node == "c"
    assert schedule(labelled("p", "web"), NODES, [*there, busy]).node != "c"
