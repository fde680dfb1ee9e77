"""A second opinion on placements, on raw objects and in the simplest code: for one node, every reason why a pod is not there.

It shares nothing with `grid.diagnosis.placement`. Resources are whole numbers here: cores, GiB and GPUs.
"""

from typing import Any

from grid.core.labels import NODE_POOL

Raw = dict[str, Any]
STARTING = ("node.cilium.io/agent-not-ready", "node.cloudprovider.kubernetes.io/uninitialized")
HEALTH = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/out-of-service",
    *STARTING,
)
CORDON = "node.kubernetes.io/unschedulable"
CLOSING = (CORDON, "karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler")
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def requests(pod: Raw) -> dict[str, int]:
    asked: Raw = pod["spec"]["containers"][0]["resources"]["requests"]
    return {name: int(text.removesuffix("Gi")) for name, text in asked.items()}


def ports(pod: Raw) -> set[int]:
    return {port["hostPort"] for port in pod["spec"]["containers"][0].get("ports", [])}


def reasons(pod: Raw, node: Raw, nodes: list[Raw], pods: list[Raw], volumes: list[Raw]) -> set[str]:
    """Return what would have to change for the pod to fit: "pool", "selector", "affinity", "label", "control_plane", "cordon", "unready",
    "taint", "small", "broken", "volume", "port", "full", "apart", "beside" or "spread"."""
    return alone(pod, node, on(node, pods), volumes) | between(pod, node, nodes, pods)


def on(node: Raw, pods: list[Raw]) -> list[Raw]:
    here = [other for other in pods if other["spec"].get("nodeName") == node["metadata"]["name"]]
    return [other for other in here if other["status"]["phase"] not in ("Succeeded", "Failed")]


def alone(pod: Raw, node: Raw, here: list[Raw], volumes: list[Raw]) -> set[str]:
    """Return the reasons that one node gives, with the pods that run `here`."""
    labels, kinds = node["metadata"]["labels"], set()
    for key, value in pod["spec"].get("nodeSelector", {}).items():
        if labels.get(key) != value:
            kinds.add("pool" if key == NODE_POOL else "selector")
    if not likes(pod, labels):
        kinds.add("affinity")
    if node["spec"].get("unschedulable"):
        kinds.add("cordon")
    if node["status"]["conditions"][0]["status"] != "True":
        kinds.add("unready")
    for taint in node["spec"].get("taints", []):
        tolerated = any(
            toleration.get("key") in (None, taint["key"])
            and (toleration.get("operator") == "Exists" or toleration.get("value") == taint.get("value"))
            and toleration.get("effect") in (None, taint["effect"])
            for toleration in pod["spec"].get("tolerations", [])
        )
        if taint["effect"] != "PreferNoSchedule" and not tolerated:
            kind = "unready" if taint["key"] in HEALTH else "cordon" if taint["key"] in CLOSING else "taint"
            kinds.add("control_plane" if taint["key"] == CONTROL_PLANE else kind)
    if not all(reaches(labels, volume) for volume in volumes):
        kinds.add("volume")
    if any(rule["topologyKey"] not in labels for rule in [*terms(pod, "podAffinity"), *spread(pod)]):
        kinds.add("label")
    return kinds | short_of(pod, node, here)


def likes(pod: Raw, labels: dict[str, str]) -> bool:
    """Return whether the labels meet one of the terms of the pod's affinity to nodes, that is all expressions of it."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity")
    if affinity is None:
        return True
    wanted = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return any(
        all(holds(expression, labels.get(expression["key"])) for expression in term["matchExpressions"])
        for term in wanted
    )


def holds(expression: Raw, value: str | None) -> bool:
    values = expression.get("values", [])
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
        "Gt": value is not None
        and bool(values)
        and values[0].isdigit()
        and value.isdigit()
        and int(value) > int(values[0]),
    }[str(expression["operator"])]


def short_of(pod: Raw, node: Raw, here: list[Raw]) -> set[str]:
    short = set()
    own = [other for other in here if other["metadata"].get("ownerReferences")]
    for name, amount in {**requests(pod), "pods": 1}.items():
        size = int(node["status"]["allocatable"].get(name, "0").removesuffix("Gi"))
        if amount + sum({**requests(other), "pods": 1}.get(name, 0) for other in own) > size:
            short.add("broken" if amount <= devices(node, name) else "small")
        elif amount + sum({**requests(other), "pods": 1}.get(name, 0) for other in here) > size:
            short.add("full")
    if ports(pod) & {port for other in here for port in ports(other)}:
        short.add("port")
    return short


def devices(node: Raw, name: str) -> int:
    """Return how many GPUs the node has, broken or not."""
    if name != "nvidia.com/gpu":
        return 0
    capacity = int(node["status"]["capacity"].get(name, "0"))
    return capacity or int(labels_of(node).get("nvidia.com/gpu.count", "0"))


def between(pod: Raw, node: Raw, nodes: list[Raw], pods: list[Raw]) -> set[str]:
    """Return the rules between pods that the pod would break on the node."""
    kinds = set()
    placed = [(other, place) for place in nodes for other in on(place, pods)]
    for other, place in placed:
        for owner, another in ((pod, other), (other, pod)):
            for term in terms(owner, "podAntiAffinity"):
                if selects(term, owner, another) and same(term, node, place):
                    kinds.add("apart")
    affine = terms(pod, "podAffinity")
    company = [place for other, place in placed if all(selects(term, pod, other) for term in affine)]
    company = [place for place in company if any(term["topologyKey"] in labels_of(place) for term in affine)]
    is_first = not company and all(selects(term, pod, pod) for term in affine)
    if not is_first and any(not any(same(term, node, place) for place in company) for term in affine):
        kinds.add("beside")
    for rule in spread(pod):
        counts = in_domains(rule, pod, nodes, pods)
        fewest = 0 if len(counts) < rule.get("minDomains", 1) else min(counts.values(), default=0)
        here = counts.get(labels_of(node).get(rule["topologyKey"], ""), 0) + is_of_group(rule, pod, pod)
        if here - fewest > rule["maxSkew"]:
            kinds.add("spread")
    return kinds


def in_domains(rule: Raw, pod: Raw, nodes: list[Raw], pods: list[Raw]) -> dict[str, int]:
    """Return how many pods the rule counts in each of its domains."""
    counts = dict[str, int]()
    for place in nodes:
        is_labelled = all(constraint["topologyKey"] in labels_of(place) for constraint in spread(pod))
        if is_labelled and is_counted(rule, pod, place):
            value = labels_of(place)[rule["topologyKey"]]
            alike = [other for other in on(place, pods) if is_of_group(rule, pod, other)]
            counts[value] = counts.get(value, 0) + len(alike)
    return counts


def terms(pod: Raw, kind: str) -> list[Raw]:
    rules: list[Raw] = (
        pod["spec"].get("affinity", {}).get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])
    )
    return rules


def spread(pod: Raw) -> list[Raw]:
    return [
        constraint
        for constraint in pod["spec"].get("topologySpreadConstraints", [])
        if constraint["whenUnsatisfiable"] == "DoNotSchedule"
    ]


def labels_of(thing: Raw) -> dict[str, str]:
    labels: dict[str, str] = thing["metadata"].get("labels", {})
    return labels


def same(term: Raw, node: Raw, place: Raw) -> bool:
    value = labels_of(node).get(term["topologyKey"])
    return value is not None and labels_of(place).get(term["topologyKey"]) == value


def selects(term: Raw, owner: Raw, other: Raw) -> bool:
    namespaces = term.get("namespaces") or [owner["metadata"]["namespace"]]
    return (
        other["metadata"]["namespace"] in namespaces
        and labels_of(other).get("app") == term["labelSelector"]["matchLabels"]["app"]
    )


def is_of_group(rule: Raw, pod: Raw, other: Raw) -> bool:
    return (
        other["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and "deletionTimestamp" not in other["metadata"]
        and labels_of(other).get("app") == rule["labelSelector"]["matchLabels"]["app"]
    )


def is_counted(rule: Raw, pod: Raw, place: Raw) -> bool:
    kinds = alone(pod, place, [], [])
    if rule.get("nodeAffinityPolicy", "Honor") == "Honor" and kinds & {"pool", "selector", "affinity"}:
        return False
    if rule.get("nodeTaintsPolicy", "Ignore") == "Ignore":
        return True
    bare = {
        **place,
        "spec": {"taints": place["spec"].get("taints", [])},
        "status": {**place["status"], "conditions": [{"status": "True"}]},
    }
    return not alone(pod, bare, [], []) & {"taint", "cordon", "unready", "control_plane"}


def reaches(labels: dict[str, str], volume: Raw) -> bool:
    (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    (zone,) = term["matchExpressions"]
    return labels.get("zone") in zone["values"]
