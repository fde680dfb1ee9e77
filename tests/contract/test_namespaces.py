"""A namespace ends with everything in it, and takes nothing new while it ends."""

from tests.contract.client import Client
from tests.contract.conftest import MakeSpace
from tests.contract.manifests import config_map, pod
from tests.contract.space import Space

HOLD = "example.com/hold"


async def test_a_new_namespace_is_active(cluster: Space, new_space: MakeSpace) -> None:
    made = (await cluster.get("namespaces", (await new_space()).namespace)).ok(200)
    assert made["status"]["phase"] == "Active"
    assert made["spec"]["finalizers"] == ["kubernetes"]


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


async def test_an_existing_namespace_is_not_made_again(cluster: Space, namespace: str) -> None:
    again = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    (await cluster.create("namespaces", again)).refused(409, "AlreadyExists")


async def test_a_namespace_is_named_like_a_host(cluster: Space, name: str) -> None:
    wrong = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{name}.with.dots"}}
    refusal = (await cluster.create("namespaces", wrong)).refused(422, "Invalid")
    assert {cause["field"] for cause in refusal["details"]["causes"]} == {"metadata.name"}


async def test_the_systems_own_namespace_cannot_be_deleted(cluster: Space) -> None:
    (await cluster.delete("namespaces", "kube-system", dryRun="All")).refused(403, "Forbidden")


async def test_objects_of_one_name_live_in_several_namespaces(space: Space, new_space: MakeSpace, name: str) -> None:
    other = await new_space()
    (await space.create("configmaps", config_map(name, {"in": "one"}))).ok(201)
    (await other.create("configmaps", config_map(name, {"in": "other"}))).ok(201)
    assert (await space.get("configmaps", name)).ok()["data"] == {"in": "one"}
    (await other.delete("configmaps", name)).ok(200)
    assert (await space.get("configmaps", name)).status == 200


async def test_the_namespace_default_has_the_clusters_own_service(client: Client) -> None:
    service = (await Space(client, "default").get("services", "kubernetes")).ok(200)
    assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    assert service["spec"]["clusterIP"].endswith(".1")
    assert [(port["name"], port["port"]) for port in service["spec"]["ports"]] == [("https", 443)]
    assert "selector" not in service["spec"]
