"""What is created, as a dry run too, is stored under the server's own identity and read back; what is wrong is refused."""

import asyncio
import base64
import re
from datetime import datetime

from tests.contract.client import Object
from tests.contract.manifests import config_map, deployment, pod, secret
from tests.contract.space import Space
from tests.contract.versions import Version


async def test_the_server_gives_a_new_object_its_identity(space: Space, name: str) -> None:
    made = (await space.create("configmaps", config_map(name, {"a": "b"}))).ok(201)
    given = made["metadata"]
    assert (given["name"], given["namespace"]) == (name, space.namespace)
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", given["uid"])
    assert int(given["resourceVersion"]) > 0
    assert given["creationTimestamp"].endswith("Z")
    assert datetime.fromisoformat(given["creationTimestamp"])
    assert made["data"] == {"a": "b"}


async def test_identity_and_status_sent_with_a_creation_are_ignored(space: Space, name: str) -> None:
    forged = "11111111-2222-3333-4444-555555555555"
    sent = pod(name, uid=forged, creationTimestamp="2001-01-01T00:00:00Z", generation=77) | {
        "status": {"phase": "Succeeded"}
    }
    made = (await space.create("pods", sent)).ok(201)
    assert made["metadata"]["uid"] != forged
    assert not made["metadata"]["creationTimestamp"].startswith("2001")
    assert made["status"]["phase"] == "Pending"


async def test_an_existing_name_is_refused(space: Space, name: str) -> None:
    (await space.create("configmaps", config_map(name, {"who": "first"}))).ok(201)
    refusal = (await space.create("configmaps", config_map(name, {"who": "second"}))).refused(409, "AlreadyExists")
    assert refusal["details"] == {"name": name, "kind": "configmaps"}
    assert (await space.get("configmaps", name)).ok()["data"] == {"who": "first"}


async def test_a_name_is_completed_by_the_server(space: Space, name: str) -> None:
    answers = await asyncio.gather(*(space.create("configmaps", config_map(f"{name}-")) for _ in range(10)))
    given = [answer.ok(201)["metadata"] for answer in answers]
    assert len({each["name"] for each in given}) == 10
    assert all(re.fullmatch(rf"{name}-[a-z0-9]{{5}}", each["name"]) for each in given)
    assert {each["generateName"] for each in given} == {f"{name}-"}


async def test_deleted_name_is_free_again_with_new_identity(space: Space, name: str) -> None:
    first = (await space.create("configmaps", config_map(name))).ok(201)
    (await space.delete("configmaps", name)).ok(200)
    second = (await space.create("configmaps", config_map(name))).ok(201)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])


async def test_defaults_are_filled_in(space: Space, name: str) -> None:
    spec = (await space.create("pods", pod(name))).ok(201)["spec"]
    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"]) == ("Always", 30)
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert spec["containers"][0]["resources"] == {}


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


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def test_text_is_stored_encoded_and_never_returned_as_text(space: Space, name: str) -> None:
    made = (await space.create("secrets", secret(name, stringData={"token": "s3cret ü"}))).ok(201)
    assert (made["data"], made["type"]) == ({"token": encoded("s3cret ü")}, "Opaque")
    assert "stringData" not in made
    assert (await space.get("secrets", name)).ok() == made


async def test_text_can_be_patched_in(space: Space, name: str) -> None:
    (await space.create("secrets", secret(name, stringData={"a": "1"}))).ok(201)
    patched = (await space.patch("secrets", name, {"stringData": {"b": "2"}})).ok(200)
    assert patched["data"] == {"a": encoded("1"), "b": encoded("2")}


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


INVALID, REQUIRED, UNSUPPORTED = "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported"


def problems(refusal: Object) -> set[tuple[str, str]]:
    """Fields with reasons; older servers repeat some, so they are a set."""
    return {(cause["field"], cause["reason"]) for cause in refusal["details"]["causes"]}


async def test_all_problems_are_told_at_once(space: Space, name: str) -> None:
    wrong = pod(
        name, labels={"a b": "x"}, spec={"restartPolicy": "Sometimes", "containers": [{"name": "", "image": ""}]}
    )
    refusal = (await space.create("pods", wrong)).refused(422, "Invalid")
    assert problems(refusal) == {
        ("metadata.labels", INVALID),
        ("spec.restartPolicy", UNSUPPORTED),
        ("spec.containers[0].name", REQUIRED),
        ("spec.containers[0].image", REQUIRED),
    }


def service(name: str, **spec: str) -> Object:
    ports = [{"port": 80, "protocol": "TCP"}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports, **spec}}


async def test_a_service_keeps_its_address(space: Space, name: str, version: Version) -> None:
    made = (await space.create("services", service(name))).ok(201)
    address = made["spec"]["clusterIP"]
    head, _, last = address.rpartition(".")
    other = {"spec": {"clusterIP": f"{head}.{(int(last) + 1) % 250}"}}
    refusal = (await space.patch("services", name, other)).refused(422, "Invalid")
    assert {field for field, _ in problems(refusal)} == {"spec.clusterIPs[0]"}
    without = service(name)
    without["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    without["metadata"]["labels"] = {"a": "b"}
    answer = await space.replace("services", without)
    if version > (1, 20):
        assert answer.ok(200)["metadata"]["labels"] == {"a": "b"}
    else:
        # It takes a replacement without an address for the wish to have none.
        assert problems(answer.refused(422, "Invalid")) == {("spec.clusterIPs[0]", INVALID)}
    kept = (await space.get("services", name)).ok(200)["spec"]
    assert (kept["clusterIP"], kept["clusterIPs"]) == (address, [address])
