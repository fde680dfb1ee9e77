"""What a pod gets and what it may have: a node, a priority, a share of the quota, claims of its own and others."""

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.contract.client import Object
from tests.contract.conftest import MakeSpace
from tests.contract.manifests import binding, claim, config_map, pod, quota
from tests.contract.space import Space
from tests.support.waiting import eventually


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


@pytest_asyncio.fixture
async def high(cluster: Space, space: Space) -> AsyncIterator[str]:
    """The name of a class with the value 1000. Admission reads classes from a cache that hears of a new one a moment later."""
    name = f"contract-{secrets.token_hex(4)}"
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    (await cluster.create("priorityclasses", {**head, "value": 1000})).ok(201)

    async def is_known() -> bool | None:
        answer = await space.create("pods", pod("probe", spec={"priorityClassName": name}), dryRun="All")
        return answer.status == 201 or None

    await eventually(is_known, f"pods of the class {name} should be admitted")
    yield name
    await cluster.delete("priorityclasses", name)


async def test_a_pod_gets_the_number_of_its_class(space: Space, high: str) -> None:
    made = (await space.create("pods", pod("important", spec={"priorityClassName": high}))).ok(201)
    assert (made["spec"]["priority"], made["spec"]["preemptionPolicy"]) == (1000, "PreemptLowerPriority")


def asking(name: str, cpu: str) -> Object:
    return pod(name, container={"resources": {"requests": {"cpu": cpu}}})


async def space_with_quota(new_space: MakeSpace, hard: dict[str, str]) -> Space:
    space = await new_space()
    (await space.create("resourcequotas", quota("quota", hard))).ok(201)
    await space.until("resourcequotas", "quota", lambda each: each["status"].get("used"), "should be counted")

    async def is_known() -> bool:
        """To admission, which looks at a cache of its own."""
        tried = [
            await space.create("pods", asking("probe", "1m"), dryRun="All"),
            await space.create("configmaps", config_map("probe"), dryRun="All"),
        ]
        return not any("status unknown" in answer.text for answer in tried)

    await eventually(is_known, "admission should know the quota")
    return space


async def used(space: Space) -> dict[str, str]:
    return dict((await space.get("resourcequotas", "quota")).ok(200)["status"]["used"])


async def test_pod_beyond_quota_is_refused_with_figures(new_space: MakeSpace) -> None:
    space = await space_with_quota(new_space, {"requests.cpu": "1"})
    (await space.create("pods", asking("a", "600m"))).ok(201)
    assert await used(space) == {"requests.cpu": "600m"}
    refusal = (await space.create("pods", asking("b", "600m"))).refused(403, "Forbidden")
    assert refusal["message"] == (
        'pods "b" is forbidden: exceeded quota: quota, '
        "requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"
    )
    (await space.create("pods", asking("c", "400m"))).ok(201)
    assert await used(space) == {"requests.cpu": "1"}


async def test_ended_or_deleted_pod_returns_its_quota_share(new_space: MakeSpace) -> None:
    space = await space_with_quota(new_space, {"pods": "2", "requests.cpu": "1"})
    for name in "ab":
        (await space.create("pods", asking(name, "500m"))).ok(201)
    (await space.delete("pods", "a")).ok(200)
    (await space.patch("pods", "b", {"status": {"phase": "Succeeded"}}, sub="status")).ok(200)
    await space.until(
        "resourcequotas", "quota", lambda each: each["status"]["used"]["requests.cpu"] == "0", "should be free"
    )

    async def has_room() -> bool:
        """For admission, whose cache may lag behind the quota."""
        return (await space.create("pods", asking("c", "1"), dryRun="All")).status == 201

    await eventually(has_room, "admission should know what is free")
    (await space.create("pods", asking("c", "1"))).ok(201)


async def test_many_at_once_do_not_get_past_the_quota(new_space: MakeSpace) -> None:
    space = await space_with_quota(new_space, {"pods": "3"})
    answers = await asyncio.gather(*(space.create("pods", pod(f"p{n}")) for n in range(10)))
    assert sorted(answer.status for answer in answers) == [201] * 3 + [403] * 7
    assert len(await space.names("pods")) == 3


async def test_claim_of_scheduled_pod_stays_until_pod_is_gone(space: Space, name: str) -> None:
    made = (await space.create("persistentvolumeclaims", claim(name))).ok(201)
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    volumes = [{"name": "files", "persistentVolumeClaim": {"claimName": name}}]
    (await space.create("pods", pod(name, spec={"volumes": volumes}))).ok(201)
    (await space.create("pods", binding(name, f"{name}-node"), name=name, sub="binding")).ok(201)
    # A finished pod counts: what it wrote may still be wanted.
    (await space.patch("pods", name, {"status": {"phase": "Succeeded"}}, sub="status")).ok(200)
    (await space.delete("persistentvolumeclaims", name)).ok(200)
    (await space.create("persistentvolumeclaims", claim(f"{name}-unused"))).ok(201)
    (await space.delete("persistentvolumeclaims", f"{name}-unused")).ok(200)
    await space.until_gone("persistentvolumeclaims", f"{name}-unused")
    held = (await space.get("persistentvolumeclaims", name)).ok(200)
    assert held["metadata"]["deletionTimestamp"]
    assert held["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    (await space.delete("pods", name, options={"gracePeriodSeconds": 0})).ok(200)
    await space.until_gone("persistentvolumeclaims", name)


CLAIM: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def with_scratch(name: str, template: Object | None) -> Object:
    source: Object = {} if template is None else {"volumeClaimTemplate": template}
    return pod(name, spec={"volumes": [{"name": "scratch", "ephemeral": source}]})


@pytest.fixture
async def ephemeral_volumes(space: Space, name: str, version: tuple[int, int]) -> None:
    """Served since 1.23 always, before that when the administrator switched them on (GenericEphemeralVolume)."""
    if version >= (1, 23):
        return
    tried = await space.create("pods", with_scratch(f"{name}-tried", {"spec": CLAIM}), dryRun="All")
    if tried.status != 201:
        pytest.skip(
            "generic ephemeral volumes came with Kubernetes 1.23, and this server has its early ones switched off"
        )


@pytest.mark.usefixtures("ephemeral_volumes")
async def test_ephemeral_claim_follows_its_template_and_pod(space: Space, name: str) -> None:
    template = {"metadata": {"labels": {"for": name}, "annotations": {"why": "to try"}}, "spec": CLAIM}
    made = (await space.create("pods", with_scratch(name, template))).ok(201)
    assert made["spec"]["volumes"][0]["ephemeral"]["volumeClaimTemplate"]["spec"]["volumeMode"] == "Filesystem"
    claim = await space.until("persistentvolumeclaims", f"{name}-scratch", bool, "should be made")
    assert (claim["metadata"]["labels"], claim["metadata"]["annotations"]["why"]) == ({"for": name}, "to try")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": made["metadata"]["uid"]}
    assert claim["metadata"]["ownerReferences"] == [owner | {"controller": True, "blockOwnerDeletion": True}]
    assert {key: claim["spec"][key] for key in CLAIM} == CLAIM


@pytest.mark.usefixtures("ephemeral_volumes")
async def test_the_claim_goes_with_the_pod(space: Space, name: str) -> None:
    (await space.create("pods", with_scratch(name, {"spec": CLAIM}))).ok(201)
    await space.until("persistentvolumeclaims", f"{name}-scratch", bool, "should be made")
    (await space.delete("pods", name, options={"gracePeriodSeconds": 0})).ok(200)
    await space.until_gone("persistentvolumeclaims", f"{name}-scratch")
