"""A mirror shows what the server has, whatever happens to the connection, and never asks in a hot loop."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from grid.sandbox.client import ApiError, Mirror, Object, ObjectList, WatchEvent, name_of
from tests.sandbox.support import START, eventually

PATH = "/api/v1/pods"


def item(name: str, version: int, uid: str = "") -> Object:
    return {"metadata": {"name": name, "uid": uid or name, "resourceVersion": str(version)}}


class RecordingClock:
    """Time that only passes when somebody sleeps."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return START

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


@dataclass(slots=True)
class ScriptedApi:
    """Answers lists and watches as scripted; a watch after the script stays open."""

    lists: list[ObjectList | ApiError]
    watches: list[list[WatchEvent | ApiError]] = field(default_factory=list)
    listed: int = 0
    watched_from: list[str] = field(default_factory=list)
    clock: RecordingClock = field(default_factory=RecordingClock)

    async def list(
        self, path: str, *, label_selector: str = "", field_selector: str = "", limit: int = 500
    ) -> ObjectList:
        self.listed += 1
        answer = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def watch(
        self,
        path: str,
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 240,
    ) -> AsyncIterator[WatchEvent]:
        self.watched_from.append(resource_version)
        if not self.watches:
            await asyncio.Event().wait()
        for event in self.watches.pop(0):
            if isinstance(event, ApiError):
                raise event
            yield event
        self.clock.time += 60

    async def get(self, path: str) -> Object:
        raise NotImplementedError

    async def create(self, path: str, body: Object) -> Object:
        raise NotImplementedError

    async def update(self, path: str, body: Object) -> Object:
        raise NotImplementedError

    async def patch(self, path: str, body: object, *, kind: str = "merge") -> Object:
        raise NotImplementedError

    async def delete(
        self, path: str, *, grace_seconds: int | None = None, uid: str = "", propagation: str = ""
    ) -> Object:
        raise NotImplementedError


async def play(api: ScriptedApi, *, watches: int) -> tuple[Mirror, list[tuple[str, str]]]:
    """Runs a mirror until it has begun so many watches; returns it and what its listener heard."""
    mirror = Mirror(api, PATH, clock=api.clock, rng=random.Random(1))
    heard: list[tuple[str, str]] = []

    def listen(old: Object | None, new: Object | None) -> None:
        kind = "added" if old is None else "deleted" if new is None else "changed"
        heard.append((kind, name_of(new or old or {})))

    mirror.subscribe(listen)
    task = asyncio.create_task(mirror.run())
    await eventually(lambda: len(api.watched_from) >= watches and not api.watches, "all watches are begun")
    await mirror.synced()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return mirror, heard


def names(items: Iterable[Object]) -> set[str]:
    return {name_of(found) for found in items}


async def test_a_dropped_watch_is_resumed_from_the_last_version_without_a_new_list() -> None:
    lost = ApiError(0, "Unreachable", "connection reset")
    api = ScriptedApi([ObjectList([item("a", 1)], "5")], [[WatchEvent("ADDED", item("b", 6)), lost]])
    mirror, heard = await play(api, watches=2)
    assert api.listed == 1
    assert api.watched_from == ["5", "6"]
    assert names(mirror.items()) == {"a", "b"}
    assert heard == [("added", "a"), ("added", "b")]


async def test_an_expired_version_lists_again_and_notices_what_was_deleted_meanwhile() -> None:
    expired = ApiError(410, "Expired", "too old resource version")
    api = ScriptedApi(
        [ObjectList([item("a", 1), item("b", 2)], "5"), ObjectList([item("b", 2), item("c", 8)], "9")], [[expired]]
    )
    mirror, heard = await play(api, watches=2)
    assert names(mirror.items()) == {"b", "c"}
    assert heard[2:] == [("deleted", "a"), ("added", "c")]


async def test_an_object_that_was_deleted_and_made_again_is_heard_of_as_two() -> None:
    expired = ApiError(410, "Expired", "too old resource version")
    api = ScriptedApi([ObjectList([item("a", 1, "old")], "5"), ObjectList([item("a", 8, "new")], "9")], [[expired]])
    _, heard = await play(api, watches=2)
    assert heard == [("added", "a"), ("deleted", "a"), ("added", "a")]


async def test_a_bookmark_moves_the_version_and_tells_nobody() -> None:
    bookmark = WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "42"}})
    api = ScriptedApi([ObjectList([], "5")], [[bookmark]])
    _, heard = await play(api, watches=2)
    assert api.watched_from == ["5", "42"]
    assert not heard


async def test_a_server_that_is_down_for_long_is_asked_ever_more_rarely_and_never_given_up() -> None:
    down = ApiError(0, "Unreachable", "connection refused")
    api = ScriptedApi([down] * 40 + [ObjectList([item("a", 1)], "5")])
    mirror, _ = await play(api, watches=1)
    assert names(mirror.items()) == {"a"}
    assert api.listed == 41
    assert len(api.clock.slept) == 40
    assert api.clock.slept[-1] >= 5
    assert max(api.clock.slept) <= 10


async def test_a_watch_that_always_ends_at_once_does_not_become_a_hot_loop() -> None:
    api = ScriptedApi([ObjectList([], "5")], [[ApiError(500, "InternalError", "broken")] for _ in range(10)])
    await play(api, watches=11)
    assert len(api.clock.slept) == 10
    assert all(seconds > 0.2 for seconds in api.clock.slept)


async def test_an_event_of_a_broken_shape_is_survived_by_a_new_list() -> None:
    broken = WatchEvent("ADDED", {"metadata": {}})
    api = ScriptedApi([ObjectList([], "5"), ObjectList([item("a", 6)], "6")], [[broken]])
    mirror, _ = await play(api, watches=2)
    assert names(mirror.items()) == {"a"}
