"""Server-side apply: each manager owns the fields it applied, and takes over another's only by force."""

import pytest

from tests.contract.client import Object
from tests.contract.manifests import config_map, deployment
from tests.contract.space import Space
from tests.contract.versions import Version, came_with


def applied(name: str, data: dict[str, str]) -> Object:
    return config_map(name, data)


async def test_applying_creates_and_applying_again_changes_nothing(space: Space, name: str) -> None:
    body = applied(name, {"a": "1"})
    made = (await space.patch("configmaps", name, body, kind="apply", fieldManager="alice")).ok(201)
    assert made["data"] == {"a": "1"}
    again = (await space.patch("configmaps", name, body, kind="apply", fieldManager="alice")).ok(200)
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_field_left_out_is_removed_when_nobody_else_applied_it(space: Space, name: str) -> None:
    for data in ({"a": "1", "b": "1"}, {"a": "2"}):
        last = await space.patch("configmaps", name, applied(name, data), kind="apply", fieldManager="alice")
    assert last.ok(200)["data"] == {"a": "2"}


async def test_fields_of_two_managers_live_side_by_side(space: Space, name: str) -> None:
    (await space.patch("configmaps", name, applied(name, {"a": "1"}), kind="apply", fieldManager="alice")).ok(201)
    both = await space.patch("configmaps", name, applied(name, {"b": "2"}), kind="apply", fieldManager="bob")
    assert both.ok(200)["data"] == {"a": "1", "b": "2"}


async def test_another_managers_value_is_a_conflict_that_names_manager_and_field(space: Space, name: str) -> None:
    (await space.patch("configmaps", name, applied(name, {"a": "1"}), kind="apply", fieldManager="alice")).ok(201)
    answer = await space.patch("configmaps", name, applied(name, {"a": "2"}), kind="apply", fieldManager="bob")
    causes = answer.refused(409, "Conflict")["details"]["causes"]
    assert [(cause["reason"], cause["field"]) for cause in causes] == [("FieldManagerConflict", ".data.a")]
    assert '"alice"' in causes[0]["message"]


async def test_force_takes_the_field_over(space: Space, name: str) -> None:
    (await space.patch("configmaps", name, applied(name, {"a": "1", "b": "1"}), kind="apply", fieldManager="alice")).ok(
        201
    )
    taken = await space.patch(
        "configmaps", name, applied(name, {"a": "2"}), kind="apply", fieldManager="bob", force="true"
    )
    assert taken.ok(200)["data"] == {"a": "2", "b": "1"}
    left = await space.patch("configmaps", name, applied(name, {"b": "1"}), kind="apply", fieldManager="alice")
    assert left.ok(200)["data"] == {"a": "2", "b": "1"}, "alice gave up what bob took"


async def test_the_same_value_is_shared_without_conflict(space: Space, name: str) -> None:
    (await space.patch("configmaps", name, applied(name, {"a": "1"}), kind="apply", fieldManager="alice")).ok(201)
    (await space.patch("configmaps", name, applied(name, {"a": "1"}), kind="apply", fieldManager="bob")).ok(200)
    kept = await space.patch("configmaps", name, applied(name, {"b": "2"}), kind="apply", fieldManager="alice")
    assert kept.ok(200)["data"] == {"a": "1", "b": "2"}, "bob still owns it"


async def test_applying_needs_a_managers_name(space: Space, name: str) -> None:
    refusal = (await space.patch("configmaps", name, applied(name, {}), kind="apply")).refused(422, "Invalid")
    assert [cause["field"] for cause in refusal["details"]["causes"]] == ["fieldManager"]


async def test_a_manager_is_recorded_with_its_operation(space: Space, name: str) -> None:
    (await space.patch("configmaps", name, applied(name, {"a": "1"}), kind="apply", fieldManager="alice")).ok(201)
    fields = (await space.get("configmaps", name)).ok()["metadata"]["managedFields"]
    assert [(each["manager"], each["operation"]) for each in fields] == [("alice", "Apply")]
    assert "f:a" in fields[0]["fieldsV1"]["f:data"]


async def test_applied_containers_are_merged_by_name(space: Space, name: str) -> None:
    def with_container(container: str, **fields: str) -> Object:
        body = deployment(name)
        body["spec"]["template"]["spec"]["containers"] = [{"name": container, **fields}]
        return body

    first = with_container("app", image="registry.example/app:1")
    second = with_container("side", image="registry.example/side:1")
    (await space.patch("deployments", name, first, kind="apply", fieldManager="alice")).ok(201)
    both = (await space.patch("deployments", name, second, kind="apply", fieldManager="bob")).ok(200)
    assert [each["name"] for each in both["spec"]["template"]["spec"]["containers"]] == ["app", "side"]
    other = with_container("app", image="registry.example/app:2")
    answer = await space.patch("deployments", name, other, kind="apply", fieldManager="bob")
    fields = [cause["field"] for cause in answer.refused(409, "Conflict")["details"]["causes"]]
    assert fields == ['.spec.template.spec.containers[name="app"].image']


@pytest.mark.parametrize("sub", ["", "scale"])
async def test_the_scale_belongs_to_who_set_it_last(space: Space, name: str, sub: str, version: Version) -> None:
    if sub:
        came_with(version, (1, 22), "the manager of what was set through the subresource scale")
    body = deployment(name, 2)
    (await space.patch("deployments", name, body, kind="apply", fieldManager="alice")).ok(201)
    (await space.patch("deployments", name, {"spec": {"replicas": 5}}, sub=sub, fieldManager="bob")).ok(200)
    answer = await space.patch("deployments", name, body, kind="apply", fieldManager="alice")
    causes = answer.refused(409, "Conflict")["details"]["causes"]
    assert [cause["field"] for cause in causes] == [".spec.replicas"]
    assert '"bob"' in causes[0]["message"]
    assert (await space.get("deployments", name)).ok()["spec"]["replicas"] == 5
    del body["spec"]["replicas"]
    left = (await space.patch("deployments", name, body, kind="apply", fieldManager="alice")).ok(200)
    assert left["spec"]["replicas"] == 5, "alice gave them up"
