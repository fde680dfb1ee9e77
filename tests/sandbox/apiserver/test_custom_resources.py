"""What a definition defines is served like the built-in kinds, and goes with its definition."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from grid.sandbox.apiserver import ApiServer, Tokens
from tests.sandbox.apiserver.conftest import MERGE, Api

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRONTABS = "/apis/stable.example.com/v1/namespaces/default/crontabs"
BETA = CRONTABS.replace("/v1/", "/v1beta1/")
NAME = "crontabs.stable.example.com"
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
APPLY = "application/apply-patch+yaml"


def version(name: str, **more: Any) -> Any:
    return {"name": name, "served": True, "storage": False, "schema": SCHEMA, **more}


def definition(*versions: Any, plural: str = "crontabs", kind: str = "CronTab", **spec: Any) -> Any:
    shown = versions or (version("v1", storage=True, subresources={"status": {}}),)
    names = {"plural": plural, "kind": kind, "shortNames": ["ct"] if kind == "CronTab" else []}
    group = "stable.example.com"
    given = {"group": group, "scope": "Namespaced", "names": names, "versions": list(shown), **spec}
    return {"metadata": {"name": f"{plural}.{given['group']}"}, "spec": given}


def crontab(name: str, version: str = "v1", **spec: Any) -> Any:
    return {
        "apiVersion": f"stable.example.com/{version}",
        "kind": "CronTab",
        "metadata": {"name": name},
        "spec": {"cron": "* * * * */5", "nothing": None, **spec},
        "status": {"ignored": True},
    }


def conditions(body: Any) -> dict[str, str]:
    return {each["type"]: each["status"] for each in body["status"]["conditions"]}


async def test_a_definition_is_established_with_its_answer_and_serves_its_kind(api: Api) -> None:
    assert (await api.ask("GET", CRONTABS)).status == 404
    made = await api.make(DEFINITIONS, definition())
    assert conditions(made) == {"NamesAccepted": "True", "Established": "True"}
    assert made["status"]["storedVersions"] == ["v1"]
    assert made["status"]["acceptedNames"]["listKind"] == "CronTabList"
    created = await api.make(CRONTABS, crontab("a", replicas=2, deep={"list": [{"x": 1}]}))
    assert created["spec"] == {"cron": "* * * * */5", "nothing": None, "replicas": 2, "deep": {"list": [{"x": 1}]}}
    assert "status" not in created
    listed = (await api.ask("GET", CRONTABS)).body
    assert (listed["kind"], listed["apiVersion"]) == ("CronTabList", "stable.example.com/v1")
    assert [each["metadata"]["name"] for each in listed["items"]] == ["a"]
    everywhere = (await api.ask("GET", "/apis/stable.example.com/v1/crontabs?limit=1")).body
    assert len(everywhere["items"]) == 1


async def test_the_status_changes_through_its_subresource_only_and_generations_count_the_rest(api: Api) -> None:
    await api.make(DEFINITIONS, definition())
    await api.make(CRONTABS, crontab("a"))
    told = await api.ask("PATCH", f"{CRONTABS}/a", {"status": {"phase": "Late"}, "top": 1}, media=MERGE)
    assert (told.body.get("status"), told.body["top"], told.body["metadata"]["generation"]) == (None, 1, 2)
    told = await api.ask("PATCH", f"{CRONTABS}/a/status", {"status": {"phase": "Well"}, "top": 2}, media=MERGE)
    assert (told.body["status"], told.body["top"]) == ({"phase": "Well"}, 1)
    assert told.body["metadata"]["generation"] == 2


async def test_without_a_status_subresource_the_status_is_a_field_like_others(api: Api) -> None:
    await api.make(DEFINITIONS, definition(version("v1", storage=True)))
    assert (await api.make(CRONTABS, crontab("a")))["status"] == {"ignored": True}
    assert (await api.ask("GET", f"{CRONTABS}/a/status")).status == 404


async def test_json_merge_and_apply_patches_change_them_and_strategic_ones_do_not(api: Api) -> None:
    await api.make(DEFINITIONS, definition())
    await api.make(CRONTABS, crontab("a"))
    path = f"{CRONTABS}/a"
    step = [{"op": "add", "path": "/spec/replicas", "value": 3}]
    assert (await api.ask("PATCH", path, step, media="application/json-patch+json")).body["spec"]["replicas"] == 3
    refused = await api.ask("PATCH", path, {"spec": {}}, media="application/strategic-merge-patch+json")
    assert refused.status == 415
    frame = {"apiVersion": "stable.example.com/v1", "kind": "CronTab"}
    one: Any = {**frame, "spec": {"mine": {"a": 1}}}
    other: Any = {**frame, "spec": {"mine": {"b": 2}}}
    for manager, wanted in (("alice", one), ("bob", other)):
        query = f"?fieldManager={manager}"
        applied = await api.ask("PATCH", path + query, json.dumps(wanted), media=APPLY)
    assert (applied.status, applied.body["spec"]["mine"]) == (200, {"a": 1, "b": 2})
    refused = await api.ask("PATCH", f"{path}?fieldManager=bob", json.dumps(one), media=APPLY)
    assert refused.status == 200  # the same value is nothing to argue about
    one["spec"]["mine"]["a"] = 9
    assert (await api.ask("PATCH", f"{path}?fieldManager=carol", json.dumps(one), media=APPLY)).status == 409
    made = await api.ask("PATCH", f"{CRONTABS}/new?fieldManager=alice", json.dumps(frame), media=APPLY)
    assert (made.status, made.body["apiVersion"]) == (201, "stable.example.com/v1")


async def test_a_watch_of_custom_objects_tells_their_changes(api: Api) -> None:
    await api.make(DEFINITIONS, definition())
    await api.make(CRONTABS, crontab("a"))
    await api.ask("PATCH", f"{CRONTABS}/a", {"spec": {"x": 1}}, media=MERGE)
    gone = (await api.ask("DELETE", f"{CRONTABS}/a")).body
    assert gone["status"] == "Success"
    text = (await api.ask("GET", f"{CRONTABS}?watch=1&timeoutSeconds=1&resourceVersion=1")).body
    events = [json.loads(line) for line in text.splitlines()]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert {event["object"]["kind"] for event in events} == {"CronTab"}


async def test_every_version_shows_the_same_objects(api: Api) -> None:
    versions = (version("v1beta1"), version("v1", storage=True), version("v1alpha1", served=False))
    await api.make(DEFINITIONS, definition(*versions))
    made = await api.make(BETA, crontab("a", "v1beta1"))
    assert made["apiVersion"] == "stable.example.com/v1beta1"
    shown = (await api.ask("GET", f"{CRONTABS}/a")).body
    assert (shown["apiVersion"], shown["metadata"]["uid"]) == ("stable.example.com/v1", made["metadata"]["uid"])
    same = await api.ask("PATCH", f"{BETA}/a", {"spec": {"cron": "* * * * */5"}}, media=MERGE)
    assert same.body["metadata"]["resourceVersion"] == shown["metadata"]["resourceVersion"]
    assert (await api.ask("GET", BETA.replace("beta1", "alpha1"))).status == 404


async def test_discovery_names_them_in_all_its_shapes(api: Api) -> None:
    await api.make(
        DEFINITIONS, definition(version("v1beta1"), version("v1", storage=True, subresources={"status": {}}))
    )
    group = (await api.ask("GET", "/apis/stable.example.com")).body
    assert [each["version"] for each in group["versions"]] == ["v1", "v1beta1"]
    assert group in [{**each, "kind": "APIGroup", "apiVersion": "v1"} for each in (await groups(api))]
    resources = (await api.ask("GET", "/apis/stable.example.com/v1")).body["resources"]
    assert [each["name"] for each in resources] == ["crontabs", "crontabs/status"]
    assert (resources[0]["shortNames"], resources[0]["kind"]) == (["ct"], "CronTab")
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    items = (await api.ask("GET", "/apis", **accept)).body["items"]
    found = next(item for item in items if item["metadata"]["name"] == "stable.example.com")
    assert [each["version"] for each in found["versions"]] == ["v1", "v1beta1"]
    assert found["versions"][0]["resources"][0]["subresources"][0]["subresource"] == "status"
    document = (await api.ask("GET", "/openapi/v3/apis/stable.example.com/v1")).body
    assert "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}" in document["paths"]


async def groups(api: Api) -> Any:
    return (await api.ask("GET", "/apis")).body["groups"]


async def test_objects_without_a_namespace_have_one_place(api: Api) -> None:
    await api.make(DEFINITIONS, definition(scope="Cluster"))
    await api.make("/apis/stable.example.com/v1/crontabs", crontab("a"))
    assert (await api.ask("GET", "/apis/stable.example.com/v1/crontabs/a")).body["metadata"].get("namespace") is None
    assert (await api.ask("GET", CRONTABS)).status == 404


async def test_the_second_definition_that_wants_a_name_is_told_so_and_not_served(api: Api) -> None:
    await api.make(DEFINITIONS, definition())
    late = await api.make(DEFINITIONS, definition(plural="others"))
    assert conditions(late) == {"NamesAccepted": "False", "Established": "False"}
    assert late["status"]["conditions"][0]["reason"] == "NameConflict"
    assert (await api.ask("GET", "/apis/stable.example.com/v1/others")).status == 404


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (definition(version("v1")), "spec.versions"),
        (definition(version("v1", storage=True), version("v2", storage=True)), "spec.versions"),
        (definition(version("v1", storage=True, schema=None)), "spec.versions[0].schema.openAPIV3Schema"),
        (definition(scope="Everywhere"), "spec.scope"),
        (definition(group="apps"), "spec.group"),
        (definition(conversion={"strategy": "Webhook"}), "spec.conversion.strategy"),
        ({**definition(), "metadata": {"name": "crontabs.example.com"}}, "metadata.name"),
        ({"metadata": {"name": "a.b"}}, "spec.names.plural"),
    ],
)
async def test_a_definition_that_cannot_be_served_is_refused(api: Api, wrong: Any, field: str) -> None:
    answer = await api.ask("POST", DEFINITIONS, wrong)
    assert answer.status == 422
    assert field in [cause["field"] for cause in answer.body["details"]["causes"]]


async def test_what_objects_are_stored_under_cannot_change(api: Api) -> None:
    await api.make(DEFINITIONS, definition())
    for change in ({"scope": "Cluster"}, {"names": {"kind": "Other"}}):
        answer = await api.ask("PATCH", f"{DEFINITIONS}/{NAME}", {"spec": change}, media=MERGE)
        assert answer.status == 422
    more = [version("v1", storage=True), version("v2")]
    answer = await api.ask("PATCH", f"{DEFINITIONS}/{NAME}", {"spec": {"versions": more}}, media=MERGE)
    assert answer.body["metadata"]["generation"] == 2
    assert (await api.ask("GET", CRONTABS.replace("v1", "v2"))).status == 200


async def test_a_definition_goes_after_its_objects_and_takes_what_they_own_with_it(api: Api) -> None:
    await api.make(DEFINITIONS, definition())
    free = await api.make(CRONTABS, crontab("free"))
    held = crontab("held")
    held["metadata"]["finalizers"] = ["example.com/wait"]
    await api.make(CRONTABS, held)
    owner = {"apiVersion": free["apiVersion"], "kind": "CronTab", "name": "free", "uid": free["metadata"]["uid"]}
    await api.config_map("owned", ownerReferences=[owner])

    async def is_gone(path: str) -> bool:
        return (await api.ask("GET", path)).status == 404

    async def until_gone(path: str) -> None:
        for _ in range(3000):
            if await is_gone(path):
                return
        raise AssertionError(f"still there: {path}")

    assert (await api.ask("DELETE", f"{DEFINITIONS}/{NAME}")).body["metadata"]["deletionTimestamp"]
    await until_gone(f"{CRONTABS}/free")
    await until_gone("/api/v1/namespaces/default/configmaps/owned")
    assert not await is_gone(f"{DEFINITIONS}/{NAME}")
    await api.ask("PATCH", f"{CRONTABS}/held", {"metadata": {"finalizers": None}}, media=MERGE)
    await until_gone(f"{DEFINITIONS}/{NAME}")
    assert "stable.example.com" not in [each["name"] for each in await groups(api)]


async def test_custom_objects_are_there_after_a_restart(tmp_path: Path) -> None:
    tokens = Tokens.load_or_make(tmp_path / "tokens.json")
    server = ApiServer(tmp_path, tokens, rng=random.Random(1))
    kinds = server.registry.kinds
    server.registry.create(kinds.stored()["customresourcedefinitions.apiextensions.k8s.io"], "", definition())
    kind = kinds.find("stable.example.com", "v1", "crontabs")
    assert kind is not None
    server.registry.create(kind, "default", crontab("a"))
    server.store.close()
    again = ApiServer(tmp_path, tokens, rng=random.Random(1))
    found = again.registry.kinds.find("stable.example.com", "v1", "crontabs")
    assert found is not None
    assert again.registry.read(found, "default/a").obj["spec"]["cron"] == "* * * * */5"
    again.store.close()
