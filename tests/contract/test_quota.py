"""A ResourceQuota counts what a namespace has, refuses what would go beyond it with the figures, and gives back what ends."""

import asyncio

from tests.contract.client import Object
from tests.contract.conftest import MakeSpace
from tests.contract.manifests import config_map, pod, quota
from tests.contract.space import Space
from tests.support.waiting import eventually


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
