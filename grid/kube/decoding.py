"""Bytes of lists and watches into slim typed objects, keeping one bad object from spoiling the rest. Messages about bad input name the
field that is wrong and never quote its value, which may be a secret."""

import logging
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import msgspec

from grid.core.decoding import prepared
from grid.core.errors import ClusterUnavailable
from grid.core.translation import gettext as _
from grid.kube.store import HasMetadata

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=HasMetadata)
_CHUNK = 500  # objects decoded between two chances for other tasks


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct, Generic[T]):
    metadata: _ListMetadata
    items: list[T]


class _Change(msgspec.Struct, Generic[T]):
    type: str
    object: T


class _LooseMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, Any] | None = None


class _Loose(msgspec.Struct):
    """Any event at all: a bookmark has no name, an error is a Status."""

    metadata: _LooseMetadata = _LooseMetadata()
    code: int = 0
    message: str = ""


class DecodedPage(msgspec.Struct, Generic[T], frozen=True):
    """A page of a list; `chunks` decodes as it is gone through, so that a caller can let others run in between."""

    resource_version: str
    continue_token: str
    chunks: Iterator[list[T]]


class Changed(msgspec.Struct, Generic[T], frozen=True):
    """ADDED and MODIFIED (`gone` False) or DELETED (`gone` True)."""

    object: T
    gone: bool


class Bookmark(msgspec.Struct, frozen=True):
    """Everything up to this version has been sent; `ends_list`: it is the one that ends a streaming list."""

    resource_version: str
    ends_list: bool = False


class Failed(msgspec.Struct, frozen=True):
    """The server ends the watch; 410 means that the version is forgotten."""

    code: int
    message: str


class Unreadable(msgspec.Struct, frozen=True):
    """An event that fits no known shape; with a version it is one object's fault, without one the stream's."""

    resource_version: str
    reason: str


Line = Changed[T] | Bookmark | Failed | Unreadable


class Codec(Generic[T]):
    """Decoders for one type of object, made once. A type that msgspec does not know is called with the whole object."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        # The type is only known here, so the checker cannot follow it into the generic structs.
        self._change: msgspec.json.Decoder[_Change[T]] = msgspec.json.Decoder(prepared(_Change[kind]), dec_hook=_made)  # type: ignore[valid-type]
        self._page: msgspec.json.Decoder[_Page[T]] = msgspec.json.Decoder(prepared(_Page[kind]), dec_hook=_made)  # type: ignore[valid-type]
        self._raw_page = msgspec.json.Decoder(prepared(_Page[msgspec.Raw]))  # type: ignore[type-var]
        self._object = msgspec.json.Decoder(prepared(kind), dec_hook=_made)
        self._loose = msgspec.json.Decoder(prepared(_Change[_Loose]))  # type: ignore[type-var]

    def page(self, body: bytes, *, whole: bool = False) -> DecodedPage[T]:
        """`whole`: the body is not one page but the full list, so it is decoded in chunks. Raise ClusterUnavailable when it is no list at
        all, as from a proxy before a server that is down."""
        if not whole:
            try:
                page = self._page.decode(body)
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass  # one bad object, which the chunks below find and skip
            else:
                return DecodedPage(page.metadata.resource_version, page.metadata.continue_token, iter((page.items,)))
        try:
            raw = self._raw_page.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            sentence = _("The API server's address answers with something that is not a list.")
            raise ClusterUnavailable(sentence) from error
        return DecodedPage(raw.metadata.resource_version, raw.metadata.continue_token, self._chunks(raw.items))

    def line(self, line: bytes) -> Line[T]:
        """Decode one watch event; never raise."""
        reason = ""
        try:
            change = self._change.decode(line)
            if change.type in ("ADDED", "MODIFIED", "DELETED"):
                return Changed(change.object, change.type == "DELETED")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reason = str(error)
        return self._other(line, reason)

    def _other(self, line: bytes, reason: str) -> Line[T]:
        try:
            event = self._loose.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return Unreadable("", str(error))
        version = event.object.metadata.resource_version
        if event.type == "BOOKMARK" and version:
            annotations = event.object.metadata.annotations or {}
            return Bookmark(version, annotations.get("k8s.io/initial-events-end") == "true")
        if event.type == "ERROR":
            return Failed(event.object.code, event.object.message)
        return Unreadable(version, reason or "unknown type of event")

    def _chunks(self, items: list[msgspec.Raw]) -> Iterator[list[T]]:
        for start in range(0, len(items), _CHUNK):
            yield [decoded for item in items[start : start + _CHUNK] if (decoded := self._one(item)) is not None]

    def _one(self, item: msgspec.Raw) -> T | None:
        try:
            return self._object.decode(item)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            logger.warning("unreadable object skipped in a list kind=%s reason=%s", self._kind.__name__, error)
            return None


def _made(kind: Callable[[Any], T], raw: Any) -> T:
    return kind(raw)
