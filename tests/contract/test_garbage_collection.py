"""What has owners goes when its last owner has gone, in the order that the deletion asked for."""

from collections.abc import Sequence

from tests.contract.client import Object
from tests.contract.manifests import config_map, owned_by
from tests.contract.space import Space

HOLD = "example.com/hold"


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
    waiting = (await space.get("configmaps", f"{name}-owner")).ok(200)["metadata"]
    assert waiting["deletionTimestamp"]
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
