"""Writers who race do not overwrite each other: a stale version is refused, and whoever read the latest state wins."""

import asyncio

from tests.contract.manifests import config_map
from tests.contract.space import Space


async def test_a_stale_replacement_is_refused(space: Space, name: str) -> None:
    first = (await space.create("configmaps", config_map(name, {"n": "1"}))).ok(201)
    (await space.replace("configmaps", first | {"data": {"n": "2"}})).ok(200)
    refusal = (await space.replace("configmaps", first | {"data": {"n": "3"}})).refused(409, "Conflict")
    assert refusal["details"] == {"name": name, "kind": "configmaps"}
    assert (await space.get("configmaps", name)).ok()["data"] == {"n": "2"}


async def test_a_stale_patch_with_a_version_is_refused(space: Space, name: str) -> None:
    first = (await space.create("configmaps", config_map(name, {"n": "1"}))).ok(201)
    (await space.patch("configmaps", name, {"data": {"n": "2"}})).ok(200)
    stale = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}, "data": {"n": "3"}}
    (await space.patch("configmaps", name, stale)).refused(409, "Conflict")
    assert (await space.get("configmaps", name)).ok()["data"] == {"n": "2"}


async def test_patch_without_version_merges_into_current_state(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name, {"a": "1"}))).ok(201)
    await asyncio.gather(*(space.patch("configmaps", name, {"data": {f"k{n}": "x"}}) for n in range(5)))
    assert set((await space.get("configmaps", name)).ok()["data"]) == {"a", "k0", "k1", "k2", "k3", "k4"}


async def test_changes_raise_the_version_and_keep_the_identity(space: Space, name: str) -> None:
    made = (await space.create("configmaps", config_map(name, {"n": "0"}))).ok(201)["metadata"]
    versions = [int(made["resourceVersion"])]
    for n in range(1, 4):
        now = (await space.replace("configmaps", config_map(name, {"n": str(n)}))).ok(200)["metadata"]
        assert (now["uid"], now["creationTimestamp"]) == (made["uid"], made["creationTimestamp"])
        versions.append(int(now["resourceVersion"]))
    assert versions == sorted(set(versions))
