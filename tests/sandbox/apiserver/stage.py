"""What the recording's author did besides the recorded exchanges, by the name of the exchange that it has to
precede.
"""

from collections.abc import Mapping
from typing import Any

from tests.sandbox.apiserver.replay import Direction, Object, Replay

_SHOP = "/api/v1/namespaces/shop"
_APPS = "/apis/apps/v1/namespaces/shop"
_MERGE = "application/merge-patch+json"


def _pod(name: str, labels: Object, **spec: Any) -> Object:
    containers = [{"name": "app", "image": "registry.example/app:1"}]
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": containers, **spec}}


def _config_map(name: str, **metadata: Any) -> Object:
    return {"metadata": {"name": name, **metadata}, "data": {"k": "v"}}


async def _bind(replay: Replay, pod: str) -> None:
    binding = {
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": {"name": pod},
        "target": {"kind": "Node", "name": "n1"},
    }
    await replay.send("POST", f"{_SHOP}/pods/{pod}/binding", binding)


async def furnish(replay: Replay) -> None:
    for number in range(7):
        labels = {"app": ("red", "blue", "green")[number % 3], "idx": str(number)}
        await replay.send(
            "POST", f"{_SHOP}/pods", _pod(f"s{number}", labels | ({"canary": "yes"} if number == 2 else {}))
        )
    await replay.send("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
    for pod in (replay.answers["pod-generate-name"]["metadata"]["name"], "p1", "s1"):
        about = {"kind": "Pod", "name": pod, "namespace": "shop"}
        event = {"metadata": {"name": f"{pod}.18e9f64ea5ea3b47"}, "involvedObject": about, "type": "Warning"}
        await replay.send("POST", f"{_SHOP}/events", event)


async def change_w1(replay: Replay) -> None:
    path = f"{_SHOP}/configmaps"
    await replay.send("POST", path, _config_map("w1", labels={"w": "yes"}))
    await replay.send("PATCH", f"{path}/w1", {"data": {"k": "2"}}, _MERGE)
    await replay.send("PATCH", f"{path}/w1", {"metadata": {"labels": {"w": "no"}}}, _MERGE)
    await replay.send("PATCH", f"{path}/w1", {"metadata": {"labels": {"w": "yes"}}}, _MERGE)
    await replay.send("DELETE", f"{path}/w1")


async def make_w2_and_w3(replay: Replay) -> None:
    for name in ("w2", "w3"):
        await replay.send("POST", f"{_SHOP}/configmaps", _config_map(name, labels={"w": "yes"}))


async def make_ssa_and_free_sm(replay: Replay) -> None:
    """The ConfigMap was changed by server-side apply, whose exchanges are no part of the recording here."""
    path = f"{_SHOP}/configmaps"
    await replay.send("POST", path, {**_config_map("ssa"), "data": {"a": "1", "b": "1"}})
    for change in ({"data": {"a": "2", "c": "3"}}, {"data": {"b": None}}, {"metadata": {"labels": {"shared": "yes"}}}):
        await replay.send("PATCH", f"{path}/ssa", change, _MERGE)
    await replay.send("PATCH", f"{_APPS}/deployments/sm", {"metadata": {"finalizers": None}}, _MERGE)


async def make_two(replay: Replay) -> None:
    pod = _pod("two", {"app": "web"}, initContainers=[{"name": "init", "image": "x"}])
    pod["spec"]["containers"].append({"name": "b", "image": "x"})
    await replay.send("POST", f"{_SHOP}/pods", pod)


async def make_evicted(replay: Replay) -> None:
    for name in ("ev0", "ev1"):
        await replay.send("POST", f"{_SHOP}/pods", _pod(name, {"app": "ev"}))
        await _bind(replay, name)
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await replay.send("PATCH", f"{_SHOP}/pods/{name}/status", {"status": status}, _MERGE)


def _allow(disruptions: int, healthy: int) -> Direction:
    """What the disruption controller says of the budget."""

    async def tell(replay: Replay) -> None:
        counts = {"disruptionsAllowed": disruptions, "currentHealthy": healthy, "desiredHealthy": 1, "expectedPods": 2}
        path = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets/keep/status"
        await replay.send("PATCH", path, {"status": {"observedGeneration": 1, **counts}}, _MERGE)

    return tell


async def make_g1(replay: Replay) -> None:
    await replay.send("POST", f"{_SHOP}/pods", _pod("g1", {"app": "web"}))
    await _bind(replay, "g1")


async def make_g2(replay: Replay) -> None:
    await replay.send("POST", f"{_SHOP}/pods", _pod("g2", {"app": "web"}))


async def make_fin(replay: Replay) -> None:
    await replay.send("POST", f"{_SHOP}/configmaps", _config_map("fin", finalizers=["example.com/wait"]))


def _family(name: str) -> Direction:
    async def make(replay: Replay) -> None:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": _pod(name, labels)["spec"]}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        deployment = await replay.send(
            "POST", f"{_APPS}/deployments", {"metadata": {"name": name, "labels": labels}, "spec": spec}
        )
        hashed = {**labels, "pod-template-hash": "5d6555764d"}
        set_spec = {
            "replicas": 1,
            "selector": {"matchLabels": hashed},
            "template": {**template, "metadata": {"labels": hashed}},
        }
        metadata = {"name": f"{name}-5d6555764d", "labels": hashed, "ownerReferences": [_owner(deployment)]}
        replica_set = await replay.send("POST", f"{_APPS}/replicasets", {"metadata": metadata, "spec": set_spec})
        pod = _pod(f"{name}-5d6555764d-x59d5", hashed)
        pod["metadata"]["ownerReferences"] = [_owner(replica_set)]
        await replay.send("POST", f"{_SHOP}/pods", pod)

    return make


def _owner(obj: Object) -> Object:
    metadata = obj["metadata"]
    named = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {**named, "controller": True, "blockOwnerDeletion": True}


async def make_owned(replay: Replay) -> None:
    owner = await replay.send("POST", f"{_SHOP}/configmaps", _config_map("owner"))
    reference = {key: value for key, value in _owner(owner).items() if key not in ("controller", "blockOwnerDeletion")}
    await replay.send("POST", f"{_SHOP}/configmaps", _config_map("owned", ownerReferences=[reference]))


def _namespace(name: str) -> Direction:
    async def make(replay: Replay) -> None:
        await replay.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    return make


def _change_u(data: Object) -> Direction:
    """Return the change that a recorded JSON patch made of the ConfigMap `u`."""

    async def change(replay: Replay) -> None:
        await replay.send("PATCH", f"{_SHOP}/configmaps/u", {"data": data}, _MERGE)

    return change


BEFORE: Mapping[str, Direction] = {
    "binding": furnish,
    "watch-no-rv": make_w2_and_w3,
    "json-patch": _change_u({"c": "1", "b": "2", "d": "2"}),
    "json-patch-test-ok": _change_u({"d": None}),
    "status-isolation-main": make_ssa_and_free_sm,
    "log-choose-container": make_two,
    "pdb": make_evicted,
    "pdb-status": _allow(1, 2),
    "evict-blocked": _allow(0, 1),
    "graceful": make_g1,
    "unscheduled-pod-goes-at-once": make_g2,
    "finalizer-delete": make_fin,
    "fg-rs-exists": _family("fg"),
    "bg-delete": _family("bg"),
    "orph-delete": _family("orph"),
    "owned": make_owned,
    "quota": _namespace("quota"),
    "limitrange": _namespace("limits"),
}
DURING: Mapping[str, Direction] = {"watch-add-mod-del": change_w1}
