"""Merge, strategic merge and JSON patches change exactly what they name."""

from tests.contract.client import Object
from tests.contract.manifests import IMAGE, config_map, deployment, pod
from tests.contract.space import Space


async def containers_after(space: Space, name: str, containers: list[Object]) -> dict[str, Object]:
    change = {"spec": {"template": {"spec": {"containers": containers}}}}
    patched = (await space.patch("deployments", name, change, kind="strategic")).ok(200)
    return {each["name"]: each for each in patched["spec"]["template"]["spec"]["containers"]}


async def two_containers(space: Space, name: str) -> None:
    made = deployment(name)
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    made["spec"]["template"]["spec"]["containers"] = [
        {"name": "app", "image": IMAGE, "args": ["x", "y"], "env": env},
        {"name": "side", "image": IMAGE},
    ]
    (await space.create("deployments", made)).ok(201)


async def test_a_merge_patch_sets_adds_and_removes_by_null(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name, {"keep": "1", "set": "1", "drop": "1"}))).ok(201)
    patched = (await space.patch("configmaps", name, {"data": {"set": "2", "drop": None, "add": "3"}})).ok(200)
    assert patched["data"] == {"keep": "1", "set": "2", "add": "3"}
    assert (await space.get("configmaps", name)).ok() == patched


async def test_a_merge_patch_replaces_a_list_as_a_whole(space: Space, name: str) -> None:
    await two_containers(space, name)
    only = [{"name": "new", "image": IMAGE}]
    patched = (await space.patch("deployments", name, {"spec": {"template": {"spec": {"containers": only}}}})).ok(200)
    assert [each["name"] for each in patched["spec"]["template"]["spec"]["containers"]] == ["new"]


async def test_a_strategic_patch_finds_containers_by_name(space: Space, name: str) -> None:
    await two_containers(space, name)
    after = await containers_after(space, name, [{"name": "app", "image": "registry.example/app:2"}])
    assert set(after) == {"app", "side"}
    assert (after["app"]["image"], after["app"]["args"]) == ("registry.example/app:2", ["x", "y"])
    assert after["side"]["image"] == IMAGE


async def test_a_strategic_patch_adds_and_removes_list_members(space: Space, name: str) -> None:
    await two_containers(space, name)
    after = await containers_after(space, name, [{"name": "new", "image": IMAGE}, {"name": "side", "$patch": "delete"}])
    assert set(after) == {"app", "new"}


async def test_strategic_patch_merges_variables_by_name_and_replaces_lists(space: Space, name: str) -> None:
    await two_containers(space, name)
    env = [{"name": "B", "value": "9"}, {"name": "C", "value": "3"}]
    after = await containers_after(space, name, [{"name": "app", "env": env, "args": ["z"]}])
    assert {each["name"]: each["value"] for each in after["app"]["env"]} == {"A": "1", "B": "9", "C": "3"}
    assert after["app"]["args"] == ["z"]


async def test_a_strategic_patch_updates_conditions_by_type(space: Space, name: str) -> None:
    (await space.create("pods", pod(name))).ok(201)
    for kind, status in [("Ready", "False"), ("example.com/Warm", "True"), ("Ready", "True")]:
        change = {"status": {"conditions": [{"type": kind, "status": status}]}}
        (await space.patch("pods", name, change, kind="strategic", sub="status")).ok(200)
    conditions = (await space.get("pods", name)).ok()["status"]["conditions"]
    assert {each["type"]: each["status"] for each in conditions} == {"Ready": "True", "example.com/Warm": "True"}


async def test_finalizers_merge_in_a_strategic_patch(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name, finalizers=["example.com/a"]))).ok(201)
    change: Object = {"metadata": {"finalizers": ["example.com/b"]}}
    meta = (await space.patch("configmaps", name, change, kind="strategic")).ok(200)["metadata"]
    assert sorted(meta["finalizers"]) == ["example.com/a", "example.com/b"]
    (await space.patch("configmaps", name, {"metadata": {"finalizers": None}})).ok(200)
