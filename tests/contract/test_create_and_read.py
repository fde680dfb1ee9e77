"""What is created is stored under the server's own identity, once per name, and read back as it was accepted."""

import asyncio
import re
from datetime import datetime

from tests.contract.manifests import config_map, pod
from tests.contract.space import Space


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
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert spec["containers"][0]["resources"] == {}
