"""A dry run is answered like the real request, validation and defaults included, and changes nothing."""

from tests.contract.manifests import config_map, pod
from tests.contract.space import Space


async def test_dry_run_creation_answers_fully_and_stores_nothing(space: Space, name: str) -> None:
    made = (await space.create("pods", pod(name), dryRun="All")).ok(201)
    assert made["spec"]["restartPolicy"] == "Always"
    assert made["metadata"]["uid"]
    assert "resourceVersion" not in made["metadata"]
    (await space.get("pods", name)).refused(404, "NotFound")


async def test_a_dry_replacement_patch_or_deletion_changes_nothing(space: Space, name: str) -> None:
    made = (await space.create("configmaps", config_map(name, {"a": "1"}))).ok(201)
    replaced = await space.replace("configmaps", config_map(name, {"a": "2"}), dryRun="All")
    assert replaced.ok(200)["data"] == {"a": "2"}
    patched = await space.patch("configmaps", name, {"data": {"b": "3"}}, dryRun="All")
    assert patched.ok(200)["data"] == {"a": "1", "b": "3"}
    (await space.delete("configmaps", name, dryRun="All")).ok(200)
    assert (await space.get("configmaps", name)).ok(200) == made
