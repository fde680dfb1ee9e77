"""A ReplicaSet keeps as many pods as it says, adopts and replaces them, and gives up the least useful first."""

from tests.contract.client import Object
from tests.contract.manifests import RUNNING_AND_READY, replica_set
from tests.contract.space import Space
from tests.contract.versions import Version, came_with

COST = "controller.kubernetes.io/pod-deletion-cost"


async def pods_of(space: Space, name: str, count: int) -> list[Object]:
    """Waits until exactly so many pods of the set are there and none of them is ending."""

    def steady(items: list[Object]) -> bool:
        return len(items) == count and not any("deletionTimestamp" in item["metadata"] for item in items)

    return await space.until_items("pods", steady, f"should be {count} of {name}", labelSelector=f"app={name}")


def name_of(each: Object) -> str:
    return str(each["metadata"]["name"])


async def test_pods_are_made_from_the_template_and_owned(space: Space, name: str) -> None:
    made = (await space.create("replicasets", replica_set(name, 3))).ok(201)
    for each in await pods_of(space, name, 3):
        assert each["metadata"]["generateName"] == f"{name}-"
        assert each["metadata"]["labels"] == {"app": name}
        assert each["spec"]["nodeSelector"] == made["spec"]["template"]["spec"]["nodeSelector"]
        (owner,) = each["metadata"]["ownerReferences"]
        assert owner == {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": name,
            "uid": made["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }


async def test_a_deleted_pod_is_replaced(space: Space, name: str) -> None:
    (await space.create("replicasets", replica_set(name, 2))).ok(201)
    before = set(map(name_of, await pods_of(space, name, 2)))
    gone = before.pop()
    (await space.delete("pods", gone)).ok(200)
    await space.until_gone("pods", gone)
    after = set(map(name_of, await pods_of(space, name, 2)))
    assert before < after
    assert gone not in after


async def test_the_status_counts_the_pods(space: Space, name: str) -> None:
    (await space.create("replicasets", replica_set(name, 2))).ok(201)
    first, _ = await pods_of(space, name, 2)
    (await space.patch("pods", name_of(first), RUNNING_AND_READY, sub="status")).ok(200)
    counted = await space.until(
        "replicasets", name, lambda each: each["status"].get("readyReplicas") == 1, "should count one ready pod"
    )
    assert (counted["status"]["replicas"], counted["status"]["availableReplicas"]) == (2, 1)
    assert counted["status"]["observedGeneration"] == counted["metadata"]["generation"]


async def test_unready_pod_is_removed_before_a_ready_pod(space: Space, name: str) -> None:
    (await space.create("replicasets", replica_set(name, 3))).ok(201)
    pods = await pods_of(space, name, 3)
    for each in pods[:2]:
        (await space.patch("pods", name_of(each), RUNNING_AND_READY, sub="status")).ok(200)
    await space.until(
        "replicasets", name, lambda each: each["status"].get("readyReplicas") == 2, "should count two ready"
    )
    (await space.patch("replicasets", name, {"spec": {"replicas": 2}}, sub="scale")).ok(200)
    assert set(map(name_of, await pods_of(space, name, 2))) == set(map(name_of, pods[:2]))


async def test_the_pod_that_costs_least_goes_first(space: Space, name: str, version: Version) -> None:
    came_with(version, (1, 22), "the annotation pod-deletion-cost")
    (await space.create("replicasets", replica_set(name, 3))).ok(201)
    pods = await pods_of(space, name, 3)
    for each, cost in zip(pods, ("100", "-5", "10"), strict=True):
        (await space.patch("pods", name_of(each), RUNNING_AND_READY, sub="status")).ok(200)
        (await space.patch("pods", name_of(each), {"metadata": {"annotations": {COST: cost}}})).ok(200)
    await space.until("replicasets", name, lambda each: each["status"].get("readyReplicas") == 3, "should count all")
    for left in ({name_of(pods[0]), name_of(pods[2])}, {name_of(pods[0])}):
        (await space.patch("replicasets", name, {"spec": {"replicas": len(left)}}, sub="scale")).ok(200)
        assert set(map(name_of, await pods_of(space, name, len(left)))) == left
