"""A refused request is answered with the right status code and a Status object that a program can act on."""

import pytest

from tests.contract.client import Object
from tests.contract.manifests import config_map, deployment, pod
from tests.contract.space import Space


async def test_a_missing_object_is_not_found(space: Space, name: str) -> None:
    refusal = (await space.get("pods", name)).refused(404, "NotFound")
    assert refusal["details"] == {"name": name, "kind": "pods"}
    assert refusal["message"] == f'pods "{name}" not found'


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


async def test_creation_in_missing_namespace_is_not_found(space: Space, name: str) -> None:
    refusal = (await Space(space.client, name).create("configmaps", config_map(name))).refused(404, "NotFound")
    assert refusal["details"] == {"name": name, "kind": "namespaces"}


async def test_the_list_of_a_missing_namespace_is_empty(space: Space, name: str) -> None:
    assert await Space(space.client, name).names("configmaps") == []


async def test_namespace_differing_from_path_is_a_bad_request(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name, namespace="default"))).refused(400, "BadRequest")


async def test_name_differing_from_path_is_a_bad_request(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name))).ok(201)
    path = space.path("configmaps", name)
    (await space.client.request("PUT", path, body=config_map(f"{name}-x"))).refused(400, "BadRequest")


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "Secret"}, {"apiVersion": "v2"}, {"data": {"k": 5}}, {"data": "text"}, {"metadata": {"name": ["x"]}}],
    ids=["another kind", "an unknown version", "a number for a text", "a text for a map", "a list for a name"],
)
async def test_body_of_wrong_kind_is_a_bad_request(space: Space, name: str, wrong: Object) -> None:
    (await space.create("configmaps", config_map(name) | wrong)).refused(400, "BadRequest")
    assert (await space.get("configmaps", name)).status == 404


@pytest.mark.parametrize("text", ["{nope", "", "[1, 2]"], ids=["broken", "empty", "a list"])
async def test_body_that_is_no_json_object_is_bad_request(space: Space, text: str) -> None:
    (await space.client.request("POST", space.path("configmaps"), body=text)).refused(400, "BadRequest")


async def test_an_unknown_body_format_is_an_unsupported_media_type(space: Space) -> None:
    path = space.path("configmaps")
    answer = await space.client.request("POST", path, body="a=b", content_type="application/x-www-form-urlencoded")
    answer.refused(415, "UnsupportedMediaType")


async def test_patch_without_patch_type_is_refused(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name))).ok(201)
    answer = await space.client.request("PATCH", space.path("configmaps", name), body={"data": {"a": "b"}})
    answer.refused(415, "UnsupportedMediaType")


async def test_unsupported_method_of_path_is_not_allowed(space: Space, name: str) -> None:
    (await space.create("pods", pod(name))).ok(201)
    for method, path in [
        ("PUT", space.path("pods")),
        ("POST", space.path("pods", name)),
        ("PATCH", space.path("pods")),
    ]:
        (await space.client.request(method, path, body=pod(name))).refused(405, "MethodNotAllowed")


async def test_a_representation_nobody_has_is_not_acceptable(space: Space) -> None:
    (await space.listing("configmaps", accept="text/html")).refused(406, "NotAcceptable")


async def test_unsupported_subresource_of_kind_is_not_found(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name))).ok(201)
    (await space.get("configmaps", name, "scale")).refused(404, "NotFound")


async def test_invalid_number_in_query_is_a_bad_request(space: Space) -> None:
    (await space.listing("pods", limit="ten")).refused(400, "BadRequest")


async def test_an_unknown_dry_run_directive_is_invalid(space: Space, name: str) -> None:
    refusal = (await space.create("configmaps", config_map(name), dryRun="Some")).refused(422, "Invalid")
    assert [cause["field"] for cause in refusal["details"]["causes"]] == ["dryRun"]


async def test_a_refusal_names_kind_group_and_object(space: Space, name: str) -> None:
    refusal = (await space.create("deployments", deployment(name, replicas=-1))).refused(422, "Invalid")
    assert {key: refusal["details"][key] for key in ("name", "group", "kind")} == {
        "name": name,
        "group": "apps",
        "kind": "Deployment",
    }
    assert refusal["message"].startswith(f'Deployment.apps "{name}" is invalid: ')
