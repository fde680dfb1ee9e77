"""WATCH over HTTP: initial events, then changes as they happen, with regular bookmarks, until the time is over or the
client disconnects.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from time import monotonic

import msgspec
from aiohttp import web

from grid.sandbox.apiserver.bodies import JSON, Form, parse_bool, parse_int
from grid.sandbox.apiserver.interruptions import Line
from grid.sandbox.apiserver.kinds import Object, ServedKind
from grid.sandbox.apiserver.listing import selection_of
from grid.sandbox.apiserver.paths import ResourcePath
from grid.sandbox.apiserver.selectors import exact_name
from grid.sandbox.apiserver.status import expired, invalid_options, prohibited, server_error, wrong
from grid.sandbox.apiserver.store import ObjectStore, Record, event_line
from grid.sandbox.apiserver.tables import partial, table
from grid.sandbox.apiserver.watching import Interest, View, Watch

_SHORTEST_DEFAULT, _LONGEST_DEFAULT = 1800.0, 3600.0
_BEFORE_THE_END = 2.0  # a last bookmark comes this long before the time is over
_PART_BYTES = 2**18
END_OF_LIST = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True, slots=True)
class StreamSettings:
    bookmark_seconds: float = 60.0


async def stream_watch(
    request: web.Request,
    target: ResourcePath,
    form: Form,
    store: ObjectStore,
    settings: StreamSettings,
    line: Line,
    clock: Callable[[], datetime],
) -> web.StreamResponse:
    query = request.query
    start = _start(store, request)
    interest = _interest(target, request, form, clock)
    timeout = float(parse_int(query.get("timeoutSeconds") or "0"))
    if timeout <= 0:
        timeout = random.uniform(_SHORTEST_DEFAULT, _LONGEST_DEFAULT)
    response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"})
    response.enable_chunked_encoding()
    if start.after < store.floor(target.kind.resource) and start.after < store.version and not start.initial:
        problem = expired(f"too old resource version: {start.after} ({store.floor(target.kind.resource)})").body()
        await response.prepare(request)
        await response.write(event_line("ERROR", msgspec.json.encode(problem)))
        return response
    # Between reading the present state and listening nothing is awaited, so no change is missed or seen twice.
    watch = Watch(store, interest, after=store.version if start.initial else start.after)
    try:
        records = list(store.records(interest.resource, prefix=interest.prefix)) if start.initial else []
        end = bookmark(target.kind, store.version, END_OF_LIST) if start.initial and start.announce_end else b""
        await response.prepare(request)
        for part in _initial(records, interest):
            await response.write(part)
            await asyncio.sleep(0)
        if end:
            await response.write(end)
        bookmarks = _Bookmarks(target, settings.bookmark_seconds) if parse_bool(query, "allowWatchBookmarks") else None
        await _follow(response, watch, store, bookmarks, monotonic() + timeout, line)
    except ConnectionResetError:
        return response
    finally:
        watch.close()
    return response


@dataclass(frozen=True, slots=True)
class _Start:
    after: int
    initial: bool  # begin with all existing objects
    announce_end: bool  # send a bookmark after the initial objects


def _start(store: ObjectStore, request: web.Request) -> _Start:
    query = request.query
    text, match, initial = (
        query.get("resourceVersion", ""),
        query.get("resourceVersionMatch", ""),
        query.get("sendInitialEvents"),
    )
    bookmarks = parse_bool(query, "allowWatchBookmarks")
    path = "resourceVersionMatch"
    if initial is not None and match != "NotOlderThan":
        problem = prohibited(path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        raise invalid_options("ListOptions", problem)
    if initial is None and match:
        problem = prohibited(path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        raise invalid_options("ListOptions", problem)
    if text and not text.isdigit():
        problem = wrong("resourceVersion", text, f'strconv.ParseUint: parsing "{text}": invalid syntax')
        raise server_error(f"{problem.field}: {problem.message}")
    version = int(text or 0)
    if initial == "true":
        return _Start(version, initial=True, announce_end=bookmarks)
    if initial is not None:
        return _Start(version or store.version, initial=False, announce_end=False)
    # A client that asks for any version and understands bookmarks gets that bookmark, too.
    return _Start(version, initial=version == 0, announce_end=bookmarks and text == "0")


def _interest(target: ResourcePath, request: web.Request, form: Form, clock: Callable[[], datetime]) -> Interest:
    kind = target.kind
    name = target.name or exact_name(request.query.get("fieldSelector", ""))
    whole_key = bool(name) and (bool(target.prefix) or not kind.namespaced)
    return Interest(
        kind.resource,
        prefix=target.prefix + name if whole_key else target.prefix,
        name=name if whole_key else "",
        selection=selection_of(kind, request.query),
        view=_view(target, request, form, clock),
    )


def _view(target: ResourcePath, request: web.Request, form: Form, clock: Callable[[], datetime]) -> View | None:
    kind = target.kind
    if form.transform == "Table":
        include = request.query.get("includeObject", "Metadata")
        return lambda obj: _one_row(table(kind, [obj], include=include, now=clock()), obj)
    if form.transform:
        return partial
    return None


def _one_row(body: Object, obj: Object) -> Object:
    return {**body, "metadata": {"resourceVersion": obj["metadata"]["resourceVersion"]}}


def _initial(records: Iterable[Record], interest: Interest) -> Iterator[bytes]:
    """Yield what exists as ADDED, in parts of about a quarter of a megabyte: made and sent so that others are served in between."""
    lines: list[bytes] = []
    size = 0
    for record in records:
        if interest.covers(record.key) and interest.matches(record):
            raw = record.raw if interest.view is None else msgspec.json.encode(interest.view(record.obj))
            lines.append(event_line("ADDED", raw))
            size += len(raw)
        if size > _PART_BYTES:
            yield b"".join(lines)
            lines, size = [], 0
    if lines:
        yield b"".join(lines)


def bookmark(kind: ServedKind, version: int, annotations: Mapping[str, str] | None = None) -> bytes:
    metadata: Object = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        metadata["annotations"] = annotations
    body = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
    return event_line("BOOKMARK", msgspec.json.encode(body))


class _Bookmarks:
    """The time at which the next bookmark is due."""

    def __init__(self, target: ResourcePath, seconds: float) -> None:
        self._target = target
        self._seconds = seconds
        self.due = monotonic() + seconds

    def line(self, version: int) -> bytes:
        self.due = monotonic() + self._seconds
        return bookmark(self._target.kind, version)


async def _follow(
    response: web.StreamResponse, watch: Watch, store: ObjectStore, bookmarks: _Bookmarks | None, end: float, line: Line
) -> None:
    """Write changes and bookmarks until the end. An overflowed watch ends too: its client was too slow and lists again."""
    if bookmarks is not None and bookmarks.due > end - _BEFORE_THE_END > monotonic():
        bookmarks.due = end - _BEFORE_THE_END
    while not watch.overflowed and not line.cut.is_set():
        await line.is_open.wait()
        data = watch.drain()
        now = monotonic()
        if bookmarks is not None and now >= bookmarks.due:
            data += bookmarks.line(store.version)
        if data:
            await response.write(data)
            continue
        if now >= end:
            return
        wake = min(end, bookmarks.due) if bookmarks is not None else end
        await watch.wait(min(max(wake - now, 0.001), 1.0))
