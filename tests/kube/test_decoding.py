"""What the bytes of lists and watches are taken for, the wrong ones too."""

import logging
from itertools import chain

import msgspec
import pytest

from grid.core.errors import ClusterUnavailable
from grid.kube.decoding import Bookmark, Changed, Codec, Failed, Unreadable
from grid.kube.objects import Pod
from tests.support.builders import decode, pod

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
