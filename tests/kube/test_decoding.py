"""What the bytes of lists and watches are taken for: each line that a server may send, in any order, the wrong ones too."""

import asyncio
import logging
from collections.abc import AsyncIterator
from itertools import chain
from typing import Any

import msgspec
import pytest

from grid.core.errors import ClusterUnavailable
from grid.kube.decoding import Bookmark, Changed, Codec, Failed, Unreadable
from grid.kube.objects import Pod
from grid.kube.resources import PODS
from tests.kube.following import following, lists_again, ways
from tests.support.builders import decode, pod
from tests.support.cluster import FakeCluster, Request
from tests.support.virtual import passes, until, virtual_time

CODEC = Codec(Pod)
ODD = pod("odd", resourceVersion="7", labels={"s3cret": 7})  # type: ignore[dict-item]


def line(kind: str, obj: object) -> object:
    return CODEC.line(msgspec.json.encode({"type": kind, "object": obj}))


def listed(*items: object, token: str = "") -> bytes:
    return msgspec.json.encode({"metadata": {"resourceVersion": "9", "continue": token}, "items": items})


def names(chunks: object) -> list[list[str]]:
    return [[obj.metadata.name for obj in chunk] for chunk in chunks]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("kind", "gone"), [("ADDED", False), ("MODIFIED", False), ("DELETED", True)])
def test_a_change_says_whether_the_object_is_gone(kind: str, gone: bool) -> None:
    assert line(kind, pod("a")) == Changed(decode(pod("a"), Pod), gone)


def test_a_bookmark_needs_no_more_than_a_version() -> None:
    assert line("BOOKMARK", {"metadata": {"resourceVersion": "12"}}) == Bookmark("12")
    for value, ends in (("true", True), ("false", False)):
        metadata = {"resourceVersion": "12", "annotations": {"k8s.io/initial-events-end": value}}
        assert line("BOOKMARK", {"metadata": metadata}) == Bookmark("12", ends)


def test_a_bookmark_without_a_version_is_none() -> None:
    decoded = line("BOOKMARK", {"metadata": {}})
    assert isinstance(decoded, Unreadable)
    assert decoded.resource_version == ""


@pytest.mark.parametrize(
    ("kind", "obj", "decoded"),
    [
        ("ERROR", {"code": 410, "message": "too old"}, Failed(410, "too old")),
        ("TELEPORTED", pod("a", resourceVersion="12"), Unreadable("12", "unknown type of event")),
    ],
    ids=["an error", "an unknown type"],
)
def test_object_without_a_change_keeps_what_is_known(kind: str, obj: object, decoded: object) -> None:
    assert line(kind, obj) == decoded


def test_bad_object_is_named_by_field_without_value() -> None:
    decoded = line("MODIFIED", ODD)
    assert isinstance(decoded, Unreadable)
    assert decoded.resource_version == "7"
    assert "$.object.metadata.labels" in decoded.reason
    assert "s3cret" not in decoded.reason


@pytest.mark.parametrize("garbage", [b"", b"<html>", b"\xff", b"[]", b'{"type":"ADDED","object":{"meta'])
def test_garbage_has_no_version_and_a_reason(garbage: bytes) -> None:
    decoded = CODEC.line(garbage)
    assert isinstance(decoded, Unreadable)
    assert decoded.resource_version == ""
    assert decoded.reason


def test_page_is_decoded_whole_with_its_continuation() -> None:
    page = CODEC.page(listed(*(pod(f"p{number}") for number in range(600)), token="next"))
    assert (page.resource_version, page.continue_token) == ("9", "next")
    assert [len(chunk) for chunk in page.chunks] == [600]


def test_whole_list_is_decoded_in_yielding_chunks() -> None:
    page = CODEC.page(listed(*(pod(f"p{number}") for number in range(1001)), token="none"), whole=True)
    assert (page.resource_version, page.continue_token) == ("9", "none")
    chunks = names(page.chunks)
    assert [len(chunk) for chunk in chunks] == [500, 500, 1]
    assert list(chain.from_iterable(chunks)) == [f"p{number}" for number in range(1001)]


def test_bad_object_in_a_list_is_skipped_and_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        page = CODEC.page(listed(pod("a"), ODD, pod("b"), token="next"))
        assert (page.resource_version, page.continue_token) == ("9", "next")
        assert names(page.chunks) == [["a", "b"]]
    (warning,) = caplog.messages
    assert warning.startswith("unreadable object skipped in a list kind=Pod reason=")
    assert "$.metadata.labels" in warning
    assert "s3cret" not in warning


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"[]", b'{"items": 3}'])
@pytest.mark.parametrize("whole", [False, True])
def test_answer_that_is_no_list_is_an_outage(body: bytes, whole: bool) -> None:
    with pytest.raises(
        ClusterUnavailable, match=r"^The API server's address answers with something that is not a list\.$"
    ):
        CODEC.page(body, whole=whole)


class _Scripted(FakeCluster):
    """Streaming lists are these lines, one list after the other; then as usual."""

    def __init__(self, *scripts: tuple[bytes, ...]) -> None:
        super().__init__()
        self.scripts = list(scripts)

    async def watch(self, *args: Any, initial_events: bool = False, **kwargs: Any) -> AsyncIterator[bytes]:
        if initial_events and self.scripts:
            self.requests.append(Request("list", PODS, detail="stream"))
            for line in self.scripts.pop(0):
                yield line
            return
        async for line in super().watch(*args, initial_events=initial_events, **kwargs):
            yield line


def event(kind: str, name: str, **metadata: str) -> bytes:
    fields = ",".join(f'"{key}":"{value}"' for key, value in {"name": name, **metadata}.items())
    return f'{{"type":"{kind}","object":{{"metadata":{{{fields}}}}}}}'.encode()


def ends(version: int) -> bytes:
    annotations = '{"k8s.io/initial-events-end":"true"}'
    return (
        f'{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{version}","annotations":{annotations}}}}}}}'
    ).encode()


@virtual_time
async def test_list_that_ends_early_fails_and_is_begun_anew() -> None:
    cluster = _Scripted((event("ADDED", "a"),))
    cluster.put(PODS, pod("b"))
    async with following(cluster) as it:
        await passes(0.1)
        assert it.freshness().error == "The API server's list ended before it was complete."
        await until(it.is_equal, within=5)
        assert ways(cluster) == ["stream", "stream"]


@virtual_time
async def test_failures_count_from_the_last_list_that_was_read() -> None:
    garbled = (b"<html>",)
    cluster = _Scripted(garbled, garbled, (event("ADDED", "a"), ends(1000)), garbled, garbled)
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        cluster.compact()
        cluster.drop_watch()
        await until(lambda: not cluster.scripts and it.is_equal())
        assert "page" not in ways(cluster)
    cluster = _Scripted(garbled, garbled, garbled)
    async with following(cluster) as it:
        await until(lambda: it.freshness().synced, within=30)
        assert ways(cluster) == ["stream"] * 3 + ["page"]
        await passes(400)
        cluster.scripts = [garbled, garbled]
        assert await lists_again(it) == ["stream"] * 3


@virtual_time
async def test_long_list_is_received_in_yielding_portions() -> None:
    turns: list[int] = []

    class Counting(FakeCluster):
        async def watch(self, *args: Any, initial_events: bool = False, **kwargs: Any) -> AsyncIterator[bytes]:
            for number in range(1000 if initial_events else 0):
                turns.append(others)
                yield event("ADDED", f"p{number}")
            async for line in super().watch(*args, initial_events=initial_events, **kwargs):
                yield line

    others = 0
    async with following(Counting()) as it:
        while not it.freshness().synced:
            await asyncio.sleep(0)
            others += 1
    assert turns[-1] - turns[0] == 9


@virtual_time
async def test_objects_changed_during_a_list_have_their_last_form() -> None:
    cluster = _Scripted(
        (
            event("ADDED", "a", uid="1"),
            event("ADDED", "b", uid="1"),
            event("MODIFIED", "a", uid="2"),
            event("DELETED", "b", uid="1"),
            ends(1000),
        )
    )
    async with following(cluster) as it:
        await until(lambda: it.freshness().synced)
        assert {key: pod.metadata.uid for key, pod in zip(it.store.keys(), it.store.values(), strict=True)} == {
            "a": "2"
        }


@virtual_time
async def test_object_changed_and_changed_back_is_no_change() -> None:
    same = event("ADDED", "a", uid="1"), event("MODIFIED", "a", uid="2"), event("MODIFIED", "a", uid="1")
    cluster = _Scripted((same[0], ends(1000)), (*same, ends(2000)))
    async with following(cluster) as it:
        await until(lambda: cluster.open_watches == 1)
        cluster.compact()
        cluster.drop_watch()
        await until(lambda: ways(cluster) == ["stream", "stream"])
        await passes(1)
        assert [pod.metadata.uid for pod in it.store.values()] == ["1"]
        assert it.store.version == 1, "which is no change"


@virtual_time
@pytest.mark.parametrize(
    "code, message", [(410, "too old resource version"), (504, "Too large resource version: 7, current: 5")]
)
async def test_an_error_in_a_streaming_list_is_waited_out(code: int, message: str) -> None:
    error = f'{{"type":"ERROR","object":{{"kind":"Status","code":{code},"message":"{message}"}}}}'.encode()
    cluster = _Scripted((event("ADDED", "a"), error), (event("ADDED", "a"), error))
    cluster.put(PODS, pod("b"))
    async with following(cluster) as it:
        await passes(0.1)
        assert (len(it.store), cluster.count()) == (0, 1), "not again at once"
        await until(it.is_equal, within=5)
        assert ways(cluster) == ["stream"] * 3


@virtual_time
async def test_a_refusal_in_the_stream_is_a_refusal() -> None:
    error = b'{"type":"ERROR","object":{"kind":"Status","code":422,"message":"sendInitialEvents is forbidden"}}'
    cluster = _Scripted((error,))
    cluster.put(PODS, pod("b"))
    async with following(cluster) as it:
        await until(it.is_equal, within=1)
        assert ways(cluster) == ["stream", "page"]


@virtual_time
async def test_garbled_streaming_list_is_begun_anew_unlike_bad_object() -> None:
    bad = b'{"type":"ADDED","object":{"metadata":{"name":"c","resourceVersion":"7"},"spec":{"priority":"very"}}}'
    cluster = _Scripted((event("ADDED", "a"), b"<html>"), (event("ADDED", "b"), bad, event("ADDED", "d"), ends(1000)))
    async with following(cluster) as it:
        await passes(0.1)
        assert it.freshness().error == "The API server's list cannot be read."
        await until(lambda: it.freshness().synced, within=5)
        assert it.names() == {"b", "d"}
