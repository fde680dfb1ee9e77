"""A LimitRange gives containers what they do not ask for, and refuses pods outside of its bounds."""

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
        tried = await space.create("pods", asking("probe", requests=huge, limits=huge), dryRun="All")
        return "usage per" in tried.text

    await eventually(is_known, "admission should know the limits")
    return space


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
