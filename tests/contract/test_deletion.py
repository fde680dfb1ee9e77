"""A deletion takes the grace, the finalizers and the preconditions of the object into account, and is final."""

from datetime import datetime

from tests.contract.client import Object
from tests.contract.manifests import binding, config_map, pod
from tests.contract.space import Space

HOLD = "example.com/hold"


async def bound_pod(space: Space, name: str, **spec: object) -> Object:
    """A pod on a node: only such a pod has grace, because there may be processes to end."""
    (await space.create("pods", pod(name, labels={"of": name}, spec=spec))).ok(201)
    (await space.create("pods", binding(name, f"{name}-node"), name=name, sub="binding")).ok(201)
    return (await space.get("pods", name)).ok(200)


async def test_deleted_object_is_gone(space: Space, name: str) -> None:
    made = (await space.create("configmaps", config_map(name))).ok(201)
    answer = (await space.delete("configmaps", name)).ok(200)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {"name": name, "kind": "configmaps", "uid": made["metadata"]["uid"]}
    (await space.get("configmaps", name)).refused(404, "NotFound")
    (await space.delete("configmaps", name)).refused(404, "NotFound")


async def test_a_pod_on_a_node_keeps_its_grace(space: Space, name: str) -> None:
    made = await bound_pod(space, name, terminationGracePeriodSeconds=40)
    answer = (await space.delete("pods", name)).ok(200)
    assert (answer["kind"], answer["metadata"]["uid"]) == ("Pod", made["metadata"]["uid"])
    ending = (await space.get("pods", name)).ok(200)["metadata"]
    assert ending["deletionGracePeriodSeconds"] == 40
    created, due = (datetime.fromisoformat(ending[key]) for key in ("creationTimestamp", "deletionTimestamp"))
    assert 40 <= (due - created).total_seconds() <= 60
    assert int(ending["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


async def test_a_running_grace_can_be_shortened_and_not_prolonged(space: Space, name: str) -> None:
    await bound_pod(space, name)
    for asked, granted in [(20, 20), (5, 5), (100, 5)]:
        (await space.delete("pods", name, options={"gracePeriodSeconds": asked})).ok(200)
        assert (await space.get("pods", name)).ok(200)["metadata"]["deletionGracePeriodSeconds"] == granted


async def test_a_pod_without_grace_is_gone_at_once(space: Space, name: str) -> None:
    await bound_pod(space, name)
    (await space.delete("pods", name)).ok(200)
    (await space.delete("pods", name, options={"gracePeriodSeconds": 0})).ok(200)
    (await space.get("pods", name)).refused(404, "NotFound")


async def test_a_pod_without_a_node_is_gone_at_once(space: Space, name: str) -> None:
    (await space.create("pods", pod(name))).ok(201)
    (await space.delete("pods", name)).ok(200)
    (await space.get("pods", name)).refused(404, "NotFound")


async def test_watchers_see_the_grace_begin_and_the_pod_go(space: Space, name: str) -> None:
    made = await bound_pod(space, name)
    start = made["metadata"]["resourceVersion"]
    async with space.watch("pods", labelSelector=f"of={name}", resourceVersion=start) as watch:
        (await space.delete("pods", name)).ok(200)
        ending = await watch.next()
        assert (ending["type"], "deletionTimestamp" in ending["object"]["metadata"]) == ("MODIFIED", True)
        (await space.delete("pods", name, options={"gracePeriodSeconds": 0})).ok(200)
        while (event := await watch.next())["type"] == "MODIFIED":
            assert event["object"]["metadata"]["deletionGracePeriodSeconds"] == 0
        assert event["type"] == "DELETED"


async def test_a_pod_with_another_identity_is_spared(space: Space, name: str) -> None:
    made = await bound_pod(space, name)
    other = {"gracePeriodSeconds": 0, "preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}
    (await space.delete("pods", name, options=other)).refused(409, "Conflict")
    mine = {"gracePeriodSeconds": 0, "preconditions": {"uid": made["metadata"]["uid"]}}
    (await space.delete("pods", name, options=mine)).ok(200)
    (await space.get("pods", name)).refused(404, "NotFound")


async def test_finalizer_holds_object_until_removed(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name, finalizers=[HOLD, "example.com/other"]))).ok(201)
    answer = (await space.delete("configmaps", name)).ok(200)
    assert answer["metadata"]["deletionTimestamp"]
    held = (await space.get("configmaps", name)).ok(200)
    assert held["metadata"]["finalizers"] == [HOLD, "example.com/other"]
    (await space.patch("configmaps", name, {"metadata": {"finalizers": [HOLD]}})).ok(200)
    assert (await space.get("configmaps", name)).status == 200
    (await space.patch("configmaps", name, {"metadata": {"finalizers": []}})).ok(200)
    (await space.get("configmaps", name)).refused(404, "NotFound")


async def test_deletion_by_selector_leaves_the_rest(space: Space, name: str) -> None:
    for suffix, team in [("a", "red"), ("b", "red"), ("c", "blue")]:
        (await space.create("configmaps", config_map(f"{name}-{suffix}", labels={"of": name, "team": team}))).ok(201)
    answer = (await space.delete("configmaps", labelSelector=f"of={name},team=red")).ok(200)
    assert [item["metadata"]["name"] for item in answer["items"]] == [f"{name}-a", f"{name}-b"]
    assert await space.names("configmaps", labelSelector=f"of={name}") == [f"{name}-c"]
