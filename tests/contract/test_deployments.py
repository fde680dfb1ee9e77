"""A Deployment and its ReplicaSets keep as many pods as they say, replace them, and give up the least useful first."""

import asyncio
from typing import Any

from tests.contract.client import Object
from tests.contract.manifests import RUNNING_AND_READY, deployment, replica_set
from tests.contract.space import Space
from tests.contract.versions import Version, came_with
from tests.support.waiting import eventually

HASH = "pod-template-hash"
NEW_IMAGE = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "registry.example/app:2"}]}}}}


def hash_of(each: Object) -> str:
    return str(each["metadata"]["labels"][HASH])


def condition(each: Object, kind: str) -> Object:
    matches = [item for item in each["status"].get("conditions", ()) if item["type"] == kind]
    return matches[0] if matches else {}


async def sets_of(space: Space, name: str) -> dict[str, int]:
    """Wanted replicas by hash of the template."""
    items = (await space.listing("replicasets", labelSelector=f"app={name}")).ok(200)["items"]
    return {hash_of(item): item["spec"]["replicas"] for item in items}


async def pods_of(space: Space, name: str, count: int) -> list[Object]:
    """Waits until exactly so many pods of the set are there and none of them is ending."""

    def steady(items: list[Object]) -> bool:
        return len(items) == count and not any("deletionTimestamp" in item["metadata"] for item in items)

    return await space.until_items("pods", steady, f"should be {count} of {name}", labelSelector=f"app={name}")


async def make_ready(space: Space, name: str) -> list[str]:
    """Plays the kubelet: every pod that is not Ready becomes so; returns the hashes of all pods."""
    pods = (await space.listing("pods", labelSelector=f"app={name}")).ok(200)["items"]
    waiting = [each for each in pods if each["status"]["phase"] == "Pending"]
    # A pod may be deleted between the list and the patch: that is the controller's right.
    await asyncio.gather(
        *(space.patch("pods", each["metadata"]["name"], RUNNING_AND_READY, sub="status") for each in waiting)
    )
    return [hash_of(each) for each in pods]


async def rolled_out(space: Space, name: str, **spec: Any) -> Object:
    """A Deployment whose pods are all Ready."""
    (await space.create("deployments", deployment(name, **spec))).ok(201)
    await pods_of(space, name, spec["replicas"])
    await make_ready(space, name)
    return await space.until(
        "deployments",
        name,
        lambda each: each["status"].get("availableReplicas") == spec["replicas"],
        "should be available",
    )


async def test_deployment_makes_one_replica_set_and_its_pods(space: Space, name: str) -> None:
    made = (await space.create("deployments", deployment(name, 2))).ok(201)
    pods = await pods_of(space, name, 2)
    (only,) = (await space.listing("replicasets", labelSelector=f"app={name}")).ok(200)["items"]
    assert only["metadata"]["name"] == f"{name}-{hash_of(only)}"
    assert only["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert only["metadata"]["ownerReferences"][0]["controller"] is True
    assert only["spec"]["selector"]["matchLabels"] == {"app": name, HASH: hash_of(only)}
    assert {hash_of(each) for each in pods} == {hash_of(only)}
    assert {each["metadata"]["ownerReferences"][0]["uid"] for each in pods} == {only["metadata"]["uid"]}


async def test_its_status_follows_its_pods(space: Space, name: str) -> None:
    (await space.create("deployments", deployment(name, 2))).ok(201)
    await pods_of(space, name, 2)
    waiting = await space.until(
        "deployments", name, lambda each: each["status"].get("replicas") == 2, "should count its pods"
    )
    assert waiting["status"]["unavailableReplicas"] == 2
    assert condition(waiting, "Available")["status"] == "False"
    await make_ready(space, name)
    done = await space.until(
        "deployments", name, lambda each: condition(each, "Available").get("status") == "True", "should be available"
    )
    assert (done["status"]["readyReplicas"], done["status"]["updatedReplicas"]) == (2, 2)
    assert "unavailableReplicas" not in done["status"]
    await space.until(
        "deployments",
        name,
        lambda each: condition(each, "Progressing").get("reason") == "NewReplicaSetAvailable",
        "should say it is complete",
    )


async def test_scaling_keeps_the_replica_set(space: Space, name: str) -> None:
    (await space.create("deployments", deployment(name, 1))).ok(201)
    await pods_of(space, name, 1)
    (hash_before,) = await sets_of(space, name)
    for replicas in (3, 1, 0):
        (await space.patch("deployments", name, {"spec": {"replicas": replicas}}, sub="scale")).ok(200)
        await pods_of(space, name, replicas)
        assert await sets_of(space, name) == {hash_before: replicas}


async def test_a_new_template_rolls_out_without_a_gap(space: Space, name: str) -> None:
    await rolled_out(space, name, replicas=3, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    (old,) = await sets_of(space, name)
    (await space.patch("deployments", name, NEW_IMAGE, kind="strategic")).ok(200)

    async def only_new_pods() -> bool:
        pods = (await space.listing("pods", labelSelector=f"app={name}")).ok(200)["items"]
        alive = [each for each in pods if "deletionTimestamp" not in each["metadata"]]
        assert sum((await sets_of(space, name)).values()) <= 4, "three and one on top"
        assert len([each for each in alive if each["status"]["phase"] == "Running"]) >= 3, "never fewer than three"
        hashes = await make_ready(space, name)
        return len(hashes) == 3 and old not in hashes

    await eventually(only_new_pods, "the new template should have replaced the old")
    sets = await sets_of(space, name)
    assert sorted(sets.values()) == [0, 3]
    assert sets[old] == 0
    done = await space.until(
        "deployments", name, lambda each: each["status"].get("availableReplicas") == 3, "should be available again"
    )
    assert done["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"


async def test_recreate_strategy_ends_old_pods_before_making_new_ones(space: Space, name: str) -> None:
    await rolled_out(space, name, replicas=2, strategy={"type": "Recreate"})
    (old,) = await sets_of(space, name)
    query = {"labelSelector": f"app={name}"}
    start = (await space.listing("pods", **query)).ok(200)["metadata"]["resourceVersion"]
    async with space.watch("pods", resourceVersion=start, **query) as watch:
        (await space.patch("deployments", name, NEW_IMAGE, kind="strategic")).ok(200)
        changes: list[tuple[str, bool]] = []
        while [kind for kind, _ in changes].count("ADDED") < 2:
            event = await watch.next()
            changes.append((event["type"], hash_of(event["object"]) == old))
    first_new = changes.index(("ADDED", False))
    assert changes[:first_new].count(("DELETED", True)) == 2
    assert ("DELETED", True) not in changes[first_new:]


async def test_everything_goes_with_it(space: Space, name: str) -> None:
    (await space.create("deployments", deployment(name, 2))).ok(201)
    await pods_of(space, name, 2)
    (await space.delete("deployments", name, options={"propagationPolicy": "Foreground"})).ok(200)
    await space.until_gone("deployments", name)
    assert await space.names("replicasets", labelSelector=f"app={name}") == []
    assert await space.names("pods", labelSelector=f"app={name}") == []


COST = "controller.kubernetes.io/pod-deletion-cost"


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
