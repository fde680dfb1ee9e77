"""A refused request is answered with the right status code and a Status object that a program can act on."""

from tests.contract.manifests import config_map, deployment
from tests.contract.space import Space


async def test_not_found_names_the_group_of_the_kind(space: Space, name: str) -> None:
    refusal = (await space.get("deployments", name)).refused(404, "NotFound")
    assert refusal["details"] == {"name": name, "group": "apps", "kind": "deployments"}
    assert refusal["message"] == f'deployments.apps "{name}" not found'


async def test_missing_object_is_not_found_by_any_write(space: Space, name: str) -> None:
    (await space.delete("configmaps", name)).refused(404, "NotFound")
    (await space.patch("configmaps", name, {"data": {"a": "b"}})).refused(404, "NotFound")
    (await space.replace("configmaps", config_map(name))).refused(404, "NotFound")


async def test_an_unknown_resource_is_not_found(space: Space) -> None:
    (await space.listing("podz")).refused(404, "NotFound")


async def test_a_refusal_names_kind_group_and_object(space: Space, name: str) -> None:
    refusal = (await space.create("deployments", deployment(name, replicas=-1))).refused(422, "Invalid")
    assert {key: refusal["details"][key] for key in ("name", "group", "kind")} == {
        "name": name,
        "group": "apps",
        "kind": "Deployment",
    }
    assert refusal["message"].startswith(f'Deployment.apps "{name}" is invalid: ')
