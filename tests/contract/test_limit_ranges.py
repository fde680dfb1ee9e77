"""A LimitRange gives containers what they do not ask for, and refuses pods and claims outside of its bounds."""

from typing import Any

from tests.contract.client import Object
from tests.contract.conftest import MakeSpace
from tests.contract.manifests import pod
from tests.contract.space import Space
from tests.support.waiting import eventually


def limit_range(name: str, *limits: Object) -> Object:
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": {"limits": list(limits)}}


def asking(name: str, **resources: Any) -> Object:
    return pod(name, container={"resources": resources})


async def limited(new_space: MakeSpace, *limits: Object) -> Space:
    """A namespace with these limits, once admission knows them."""
    space = await new_space()
    (await space.create("limitranges", limit_range("limits", *limits))).ok(201)
    huge = {"cpu": "1M"}

    async def is_known() -> bool:
        bodies = {"pods": asking("probe", requests=huge, limits=huge), "persistentvolumeclaims": claim("probe", "8E")}
        tried = [await space.create(kind, body, dryRun="All") for kind, body in bodies.items()]
        return any("usage per" in answer.text for answer in tried)

    await eventually(is_known, "admission should know the limits")
    return space


def claim(name: str, size: str) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": "none"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


async def test_a_container_gets_what_it_does_not_ask_for(new_space: MakeSpace) -> None:
    default = {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "2"}}
    space = await limited(new_space, default)
    made = (await space.create("pods", pod("plain"))).ok(201)
    assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}}
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu request for container app; cpu limit for container app"
    )
    assert made["status"]["qosClass"] == "Burstable"
    own = (await space.create("pods", asking("own", requests={"cpu": "1"}, limits={"cpu": "2"}))).ok(201)
    assert own["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}


async def test_pod_outside_of_limit_range_is_refused_with_figures(new_space: MakeSpace) -> None:
    container = {"type": "Container", "min": {"cpu": "50m"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "4"}}
    space = await limited(new_space, container, {"type": "Pod", "max": {"cpu": "3"}})

    async def refusal(**resources: Any) -> str:
        return str((await space.create("pods", asking("bad", **resources))).refused(403, "Forbidden")["message"])

    high = await refusal(limits={"cpu": "4"})
    assert "maximum cpu usage per Container is 2, but limit is 4" in high
    assert "maximum cpu usage per Pod is 3, but limit is 4" in high
    assert await refusal(requests={"cpu": "10m"}, limits={"cpu": "40m"}) == (
        'pods "bad" is forbidden: minimum cpu usage per Container is 50m, but request is 10m'
    )
    assert await refusal(requests={"cpu": "100m"}, limits={"cpu": "1"}) == (
        'pods "bad" is forbidden: cpu max limit to request ratio per Container is 4, but provided ratio is 10.000000'
    )


async def test_a_claim_has_bounds_too(new_space: MakeSpace) -> None:
    limit = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}}
    space = await limited(new_space, limit)
    small = (await space.create("persistentvolumeclaims", claim("small", "1Mi"))).refused(403, "Forbidden")
    assert "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi" in small["message"]
    large = (await space.create("persistentvolumeclaims", claim("large", "20Gi"))).refused(403, "Forbidden")
    assert "maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 20Gi" in large["message"]
    (await space.create("persistentvolumeclaims", claim("right", "5Gi"))).ok(201)
