"""A namespace ends with everything in it, and takes nothing new while it ends."""

from tests.contract.conftest import MakeSpace
from tests.contract.manifests import config_map, pod
from tests.contract.space import Space

HOLD = "example.com/hold"


async def test_a_deleted_namespace_takes_its_objects_with_it(cluster: Space, new_space: MakeSpace) -> None:
    space = await new_space()
    (await space.create("configmaps", config_map("inside"))).ok(201)
    (await space.create("pods", pod("inside"))).ok(201)
    answer = (await cluster.delete("namespaces", space.namespace)).ok(200)
    assert (answer["kind"], answer["status"]["phase"]) == ("Namespace", "Terminating")
    await cluster.until_gone("namespaces", space.namespace)
    assert await space.names("configmaps") == []
    assert await space.names("pods") == []


async def test_a_namespace_that_ends_takes_nothing_new(cluster: Space, new_space: MakeSpace) -> None:
    space = await new_space()
    # Held by a finalizer of our own, so that the end can be looked at.
    (await cluster.patch("namespaces", space.namespace, {"metadata": {"finalizers": [HOLD]}})).ok(200)
    (await cluster.delete("namespaces", space.namespace)).ok(200)
    refusal = (await space.create("configmaps", config_map("late"))).refused(403, "Forbidden")
    assert [cause["reason"] for cause in refusal["details"]["causes"]] == ["NamespaceTerminating"]
    await cluster.until(
        "namespaces", space.namespace, lambda each: not each["spec"].get("finalizers"), "should be emptied"
    )
    assert (await cluster.get("namespaces", space.namespace)).ok()["status"]["phase"] == "Terminating"
    (await cluster.patch("namespaces", space.namespace, {"metadata": {"finalizers": None}})).ok(200)
    await cluster.until_gone("namespaces", space.namespace)
