"""A deletion takes grace, finalizers, preconditions, owners and disruption budgets into account, and is final."""

from collections.abc import Sequence
from datetime import datetime

from tests.contract.client import Object
from tests.contract.conftest import MakeSpace
from tests.contract.manifests import RUNNING_AND_READY, binding, config_map, disruption_budget, eviction, owned_by, pod
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
    assert (await space.delete("configmaps", name)).ok(200)["metadata"]["deletionTimestamp"]
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


async def owner_and_dependent(
    space: Space, name: str, *, block: bool = False, finalizers: Sequence[str] = ()
) -> Object:
    owner = (await space.create("configmaps", config_map(f"{name}-owner"))).ok(201)
    dependent = config_map(
        f"{name}-dependent", ownerReferences=owned_by(owner, block=block), finalizers=list(finalizers)
    )
    (await space.create("configmaps", dependent)).ok(201)
    return owner


async def test_dependents_go_after_their_owner(space: Space, name: str) -> None:
    await owner_and_dependent(space, name)
    (await space.delete("configmaps", f"{name}-owner", options={"propagationPolicy": "Background"})).ok(200)
    (await space.get("configmaps", f"{name}-owner")).refused(404, "NotFound")
    await space.until_gone("configmaps", f"{name}-dependent")


async def test_dependents_of_dependents_go_too(space: Space, name: str) -> None:
    await owner_and_dependent(space, name)
    middle = (await space.get("configmaps", f"{name}-dependent")).ok(200)
    (await space.create("configmaps", config_map(f"{name}-last", ownerReferences=owned_by(middle)))).ok(201)
    (await space.delete("configmaps", f"{name}-owner")).ok(200)
    await space.until_gone("configmaps", f"{name}-last")


async def test_a_foreground_owner_waits_for_what_blocks_it(space: Space, name: str) -> None:
    await owner_and_dependent(space, name, block=True, finalizers=[HOLD])
    answer = await space.delete("configmaps", f"{name}-owner", options={"propagationPolicy": "Foreground"})
    assert answer.ok(200)["metadata"]["finalizers"] == ["foregroundDeletion"]
    await space.until(
        "configmaps", f"{name}-dependent", lambda each: "deletionTimestamp" in each["metadata"], "should be asked to go"
    )
    assert (await space.get("configmaps", f"{name}-owner")).ok(200)["metadata"]["deletionTimestamp"]
    (await space.patch("configmaps", f"{name}-dependent", {"metadata": {"finalizers": None}})).ok(200)
    await space.until_gone("configmaps", f"{name}-owner")


async def test_orphans_stay_without_their_owner(space: Space, name: str) -> None:
    await owner_and_dependent(space, name)
    (await space.delete("configmaps", f"{name}-owner", options={"propagationPolicy": "Orphan"})).ok(200)
    await space.until_gone("configmaps", f"{name}-owner")
    left = (await space.get("configmaps", f"{name}-dependent")).ok(200)["metadata"]
    assert not left.get("ownerReferences")
    assert "deletionTimestamp" not in left


async def test_the_last_of_several_owners_decides(space: Space, name: str) -> None:
    owners = [(await space.create("configmaps", config_map(f"{name}-{n}"))).ok(201) for n in range(2)]
    shared = config_map(f"{name}-shared", ownerReferences=[*owned_by(owners[0]), *owned_by(owners[1])])
    (await space.create("configmaps", shared)).ok(201)
    (await space.delete("configmaps", f"{name}-0")).ok(200)
    left = await space.until(
        "configmaps",
        f"{name}-shared",
        lambda each: len(each["metadata"]["ownerReferences"]) == 1,
        "should lose one owner",
    )
    assert left["metadata"]["ownerReferences"][0]["name"] == f"{name}-1"
    (await space.delete("configmaps", f"{name}-1")).ok(200)
    await space.until_gone("configmaps", f"{name}-shared")


async def test_owner_of_same_name_but_other_identity_is_distinct(space: Space, name: str) -> None:
    owner = (await space.create("configmaps", config_map(f"{name}-owner"))).ok(201)
    former = {**owner, "metadata": {**owner["metadata"], "uid": "11111111-2222-3333-4444-555555555555"}}
    (await space.create("configmaps", config_map(name, ownerReferences=owned_by(former)))).ok(201)
    await space.until_gone("configmaps", name)
    assert (await space.get("configmaps", f"{name}-owner")).status == 200


async def ready_pods(space: Space, name: str, count: int) -> list[str]:
    names = [f"{name}-{index}" for index in range(count)]
    for each in names:
        (await space.create("pods", pod(each, labels={"app": name}))).ok(201)
        (await space.patch("pods", each, RUNNING_AND_READY, sub="status")).ok(200)
    return names


async def budget(space: Space, name: str, *, min_available: int, allowed: int) -> None:
    (await space.create("poddisruptionbudgets", disruption_budget(name, app=name, min_available=min_available))).ok(201)
    await space.until(
        "poddisruptionbudgets",
        name,
        lambda each: each["status"].get("observedGeneration") == 1 and each["status"]["disruptionsAllowed"] == allowed,
        f"should allow {allowed} disruptions",
    )


async def evict(space: Space, name: str) -> int:
    answer = await space.create("pods", eviction(name), name=name, sub="eviction")
    if answer.status != 429:
        assert answer.ok(201)["status"] == "Success"
    return answer.status


async def test_a_pod_without_a_budget_is_evicted(space: Space, name: str) -> None:
    (only,) = await ready_pods(space, name, 1)
    assert await evict(space, only) == 201
    await space.until_gone("pods", only)


async def test_a_budget_refuses_the_eviction_that_would_break_it(space: Space, name: str) -> None:
    first, second = await ready_pods(space, name, 2)
    await budget(space, name, min_available=1, allowed=1)
    assert await evict(space, first) == 201
    answer = await space.create("pods", eviction(second), name=second, sub="eviction")
    refusal = answer.refused(429, "TooManyRequests")
    assert refusal["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert [cause["reason"] for cause in refusal["details"]["causes"]] == ["DisruptionBudget"]
    assert "deletionTimestamp" not in (await space.get("pods", second)).ok(200)["metadata"]


async def test_a_budget_tells_what_it_sees(space: Space, name: str) -> None:
    await ready_pods(space, name, 3)
    await budget(space, name, min_available=2, allowed=1)
    status = (await space.get("poddisruptionbudgets", name)).ok(200)["status"]
    assert {key: status[key] for key in ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")} == {
        "currentHealthy": 3,
        "desiredHealthy": 2,
        "disruptionsAllowed": 1,
        "expectedPods": 3,
    }


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
