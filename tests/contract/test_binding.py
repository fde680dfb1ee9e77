"""A binding gives a pod its node, once, and marks it as scheduled."""

import asyncio

from tests.contract.client import Object
from tests.contract.manifests import binding, pod
from tests.contract.space import Space


def condition(pod: Object, kind: str) -> Object:
    return next(each for each in pod["status"]["conditions"] if each["type"] == kind)


async def test_a_binding_sets_the_node_and_the_condition(space: Space, name: str) -> None:
    made = (await space.create("pods", pod(name))).ok(201)
    assert "nodeName" not in made["spec"]
    answer = (await space.create("pods", binding(name, f"{name}-node"), name=name, sub="binding")).ok(201)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    bound = (await space.get("pods", name)).ok(200)
    assert bound["spec"] == made["spec"] | {"nodeName": f"{name}-node"}
    assert condition(bound, "PodScheduled")["status"] == "True"
    assert condition(bound, "PodScheduled")["lastTransitionTime"]
    assert bound["status"]["phase"] == "Pending"


async def test_pod_is_bound_by_exactly_one_of_many_schedulers(space: Space, name: str) -> None:
    (await space.create("pods", pod(name))).ok(201)
    answers = await asyncio.gather(
        *(space.create("pods", binding(name, f"{name}-{n}"), name=name, sub="binding") for n in range(6))
    )
    assert sorted(answer.status for answer in answers) == [201] + [409] * 5
    winner = [answer.status for answer in answers].index(201)
    assert (await space.get("pods", name)).ok(200)["spec"]["nodeName"] == f"{name}-{winner}"


async def test_an_earlier_condition_of_an_unschedulable_pod_is_turned(space: Space, name: str) -> None:
    (await space.create("pods", pod(name))).ok(201)
    waiting = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/0 nodes are available",
    }
    (await space.patch("pods", name, {"status": {"conditions": [waiting]}}, kind="strategic", sub="status")).ok(200)
    (await space.create("pods", binding(name, f"{name}-node"), name=name, sub="binding")).ok(201)
    conditions = (await space.get("pods", name)).ok(200)["status"]["conditions"]
    assert [(each["type"], each["status"], each.get("reason")) for each in conditions] == [
        ("PodScheduled", "True", None)
    ]


async def test_a_pod_being_deleted_is_not_bound(space: Space, name: str) -> None:
    (await space.create("pods", pod(name, finalizers=["example.com/hold"]))).ok(201)
    (await space.delete("pods", name)).ok(200)
    answer = await space.create("pods", binding(name, f"{name}-node"), name=name, sub="binding")
    (await space.patch("pods", name, {"metadata": {"finalizers": None}})).ok(200)
    answer.refused(409, "Conflict")
