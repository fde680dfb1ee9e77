"""Events tell about an object, are found by it, and count their repetitions."""

from tests.contract.client import Object
from tests.contract.manifests import config_map, event
from tests.contract.space import Space


async def subject(space: Space, name: str) -> Object:
    return (await space.create("configmaps", config_map(name))).ok(201)


async def test_an_event_keeps_what_was_told(space: Space, name: str) -> None:
    about = await subject(space, name)
    time = "2026-01-02T03:04:05Z"
    sent = event(name, about, count=3, firstTimestamp=time, lastTimestamp=time, source={"component": "contract-tests"})
    made = (await space.create("events", sent)).ok(201)
    for key in ("reason", "message", "type", "count", "firstTimestamp", "lastTimestamp", "source"):
        assert made[key] == sent[key]
    assert made["involvedObject"] == sent["involvedObject"]


async def test_events_are_found_by_the_object_they_are_about(space: Space, name: str) -> None:
    first, second = await subject(space, f"{name}-1"), await subject(space, f"{name}-2")
    (await space.create("events", event(f"{name}-a", first, type="Warning", reason="Failed"))).ok(201)
    (await space.create("events", event(f"{name}-b", first))).ok(201)
    (await space.create("events", event(f"{name}-c", second))).ok(201)

    async def event_names(**fields: str) -> list[str]:
        about = {"involvedObject.kind": "ConfigMap", "involvedObject.name": f"{name}-1", **fields}
        return await space.names("events", fieldSelector=",".join(f"{key}={value}" for key, value in about.items()))

    assert await event_names() == [f"{name}-a", f"{name}-b"]
    assert await event_names(type="Warning") == [f"{name}-a"]
    assert await event_names(reason="Tested") == [f"{name}-b"]
    assert await event_names(**{"involvedObject.uid": first["metadata"]["uid"]}) == [f"{name}-a", f"{name}-b"]
    assert await event_names(**{"involvedObject.uid": second["metadata"]["uid"]}) == []


async def test_a_repetition_is_counted_by_a_patch(space: Space, name: str) -> None:
    (await space.create("events", event(name, await subject(space, name), count=1))).ok(201)
    change = {"count": 2, "lastTimestamp": "2026-01-02T03:04:06Z", "message": "again"}
    patched = (await space.patch("events", name, change, kind="strategic")).ok(200)
    assert {key: patched[key] for key in change} == change
