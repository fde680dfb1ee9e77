"""All objects of the embedded cluster: in memory for reading, in SQLite to survive a restart.

One event loop owns a store; no method waits, so what a request reads does not change under it. Objects are
immutable once stored: a change stores a new `Record`, whose JSON is encoded once and then used for every list and
watch; only the objects in use are held decoded. Each change is committed before the caller goes on, so an answer that a
client has seen survives `kill -9`.
The recent history of each resource stays in memory, for watches and for pages of one consistent list; what is older
is forgotten ("compacted"), and asking for it is an error.
"""

import bisect
import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Literal

import msgspec

from grid.database.trouble import TroubleLog
from grid.sandbox.apiserver.kinds import Object
from grid.sandbox.apiserver.status import not_stored

_MOST_DECODED = 4000
_TAKEN_AT_ONCE = 10_000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
  resource TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (resource, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL);
INSERT OR IGNORE INTO counter VALUES (1, 1);
"""


class Decoded:
    """The `most` objects that were decoded last; of all others only the bytes are held, a fifth of the memory."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._records: deque[Record] = deque()

    def keep(self, record: "Record", obj: Object) -> None:
        record.decoded = obj
        self._records.append(record)
        if len(self._records) > self._most:
            self._records.popleft().decoded = None


class Record:
    """One stored object. `obj` must not be changed; `fresh()` returns a copy that may be.

    `key` is "namespace/name", or "name" for cluster-scoped objects. `is_kept` says whether the object survives the
    process.
    """

    __slots__ = ("_cache", "_labels", "decoded", "is_kept", "key", "raw", "version")

    def __init__(
        self,
        key: str,
        obj: Object | None,
        raw: bytes,
        version: int,
        *,
        cache: Decoded | None = None,
        is_kept: bool = True,
    ) -> None:
        self.key = key
        self.raw = raw
        self.version = version
        self.is_kept = is_kept
        self.decoded = obj
        self._cache = cache
        self._labels: Mapping[str, str] | None = None if obj is None else _labels_of(obj)
        if cache is not None and obj is not None:
            cache.keep(self, obj)

    @property
    def obj(self) -> Object:
        if self.decoded is not None:
            return self.decoded
        obj = self.fresh()
        if self._cache is not None:
            self._cache.keep(self, obj)
        return obj

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels, which stay in memory: nearly all selection is by label, and decoding every object takes seconds."""
        if self._labels is None:
            self._labels = _labels_of(self.obj)
        return self._labels

    def fresh(self) -> Object:
        copy: Object = msgspec.json.decode(self.raw)
        return copy


def _labels_of(obj: Object) -> Mapping[str, str]:
    labels: Mapping[str, str] = (obj.get("metadata") or {}).get("labels") or {}
    return labels


@dataclass(slots=True)
class StoreEvent:
    """One step of a resource's history: `now` is None for a removal, `before` is None for a creation."""

    version: int
    key: str
    before: Record | None
    now: Record | None
    lines: dict[str, bytes] = field(default_factory=dict)

    @property
    def record(self) -> Record:
        record = self.now or self.before
        if record is None:
            raise ValueError(f"change {self.version} of {self.key} changes nothing")
        return record

    def gone(self) -> Object:
        """Return the object's last state with the version of its removal, as a DELETED event carries it."""
        before = self.before or self.record
        return with_version(before.fresh(), self.version)

    def line(self, kind: Literal["ADDED", "MODIFIED", "DELETED"]) -> bytes:
        """Return the watch event as a line of JSON, encoded at the first call only."""
        if kind not in self.lines:
            raw = msgspec.json.encode(self.gone()) if kind == "DELETED" else self.record.raw
            self.lines[kind] = event_line(kind, raw)
        return self.lines[kind]


def event_line(kind: str, raw: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + raw + b"}\n"


def with_version(obj: Object, version: int) -> Object:
    obj["metadata"]["resourceVersion"] = str(version)
    return obj


def _opened(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    # WAL with NORMAL survives the death of the process without a disk flush for each change.
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=NORMAL")
    database.executescript(_SCHEMA)
    return database


def _version_in(database: sqlite3.Connection) -> int:
    version: int = database.execute("SELECT version FROM counter").fetchone()[0]
    return version


Listener = Callable[[StoreEvent], None]


@dataclass(slots=True)
class _Resource:
    records: dict[str, Record] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)  # sorted
    history: deque[StoreEvent] = field(default_factory=deque)
    floor: int = 0  # the oldest version from which the history is complete
    listeners: list[Listener] = field(default_factory=list)


class ObjectStore:
    """All objects and their recent history. With `path` None there is no database: everything is in memory only."""

    def __init__(
        self,
        path: Path | None = None,
        *,
        history: int = 5000,
        snapshot_seconds: float = 300.0,
        most_decoded: int = _MOST_DECODED,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._history = history
        self._snapshot_seconds = snapshot_seconds
        self._clock = clock
        self._path = path
        self._troubles = TroubleLog(clock)
        self._marks: deque[tuple[float, int]] = deque()
        self._decoded = Decoded(most_decoded)
        self._resources: dict[str, _Resource] = {}
        self._database = None if path is None else _opened(path)
        self.version: int = 1 if self._database is None else _version_in(self._database)
        self._taken = self.version  # versions up to this one are reserved on the disk for objects that are not kept
        self._opened_at = self.version  # earlier changes are unknown
        if self._database is not None:
            self._read(self._database)
        self.compacted = self.version  # older states cannot be listed any more

    def _read(self, database: sqlite3.Connection) -> None:
        for resource, key, version, data in database.execute("SELECT resource, key, version, data FROM objects"):
            self._of(resource).records[key] = Record(key, None, bytes(data), version, cache=self._decoded)
        for collection in self._resources.values():
            collection.keys = sorted(collection.records)

    def close(self) -> None:
        if self._database is not None:
            self._database.close()

    def _of(self, resource: str) -> _Resource:
        if resource not in self._resources:
            self._resources[resource] = _Resource(floor=self._opened_at)
        return self._resources[resource]

    # Reading

    def get(self, resource: str, key: str) -> Record | None:
        return self._of(resource).records.get(key)

    def records(self, resource: str, *, prefix: str = "", after: str = "") -> Iterator[Record]:
        """Yield records in the order of keys, from the first key beyond `after`; `prefix` "namespace/" selects a namespace."""
        collection = self._of(resource)
        position = bisect.bisect_right(collection.keys, after) if after else bisect.bisect_left(collection.keys, prefix)
        for key in collection.keys[position:]:
            if not key.startswith(prefix):
                return
            yield collection.records[key]

    def records_at(self, resource: str, version: int, *, prefix: str = "", after: str = "") -> Iterator[Record]:
        """Yield the records as they were at an earlier version, for which `can_show` must hold."""
        collection = self._of(resource)
        undone: dict[str, Record | None] = {}
        for change in reversed(collection.history):
            if change.version <= version:
                break
            undone[change.key] = change.before
        if not undone:
            yield from self.records(resource, prefix=prefix, after=after)
            return
        keys = sorted({*collection.keys, *undone})
        for key in keys[bisect.bisect_right(keys, after) if after else 0 :]:
            record = undone[key] if key in undone else collection.records[key]
            if record is not None and key.startswith(prefix):
                yield record

    def count(self, resource: str, *, prefix: str = "", after: str = "") -> int:
        """Return the number of keys beyond `after`, without reading the objects."""
        keys = self._of(resource).keys
        first = bisect.bisect_right(keys, after) if after else bisect.bisect_left(keys, prefix)
        last = bisect.bisect_left(keys, prefix[:-1] + "0") if prefix else len(keys)  # "0" follows "/" in ASCII
        return last - first

    def floor(self, resource: str) -> int:
        """Return the oldest version from which all changes of a resource are known."""
        return self._of(resource).floor

    def can_show(self, resource: str, version: int) -> bool:
        return version == self.version or version >= max(self.compacted, self._of(resource).floor)

    def changes_since(self, resource: str, version: int) -> list[StoreEvent]:
        """Return the changes after `version`, oldest first; `version` must not be below `floor(resource)`."""
        recent: list[StoreEvent] = []
        for change in reversed(self._of(resource).history):
            if change.version <= version:
                break
            recent.append(change)
        recent.reverse()
        return recent

    def listen(self, resource: str, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every later change, at once and in order; calling the result ends that."""
        listeners = self._of(resource).listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    # Changing

    def put(self, resource: str, key: str, obj: Object, *, is_kept: bool = True) -> Record:
        """Store the object, which the store owns from now on, with the next version.

        An object that is not kept is only in memory, and so is every later object under its key.
        """
        collection = self._of(resource)
        before = collection.records.get(key)
        is_kept = is_kept if before is None else before.is_kept
        version = self.version + 1
        raw = msgspec.json.encode(with_version(obj, version))
        if is_kept:
            self._commit(
                version,
                "INSERT INTO objects VALUES (?, ?, ?, ?) "
                "ON CONFLICT (resource, key) DO UPDATE SET version = excluded.version, data = excluded.data",
                (resource, key, version, raw),
            )
        else:
            self._pass(version)
        record = Record(key, obj, raw, version, cache=self._decoded, is_kept=is_kept)
        collection.records[key] = record
        if before is None:
            bisect.insort(collection.keys, key)
        self._happened(collection, StoreEvent(version, key, before, record))
        return record

    def remove(self, resource: str, key: str) -> StoreEvent:
        collection, version = self._of(resource), self.version + 1
        if collection.records[key].is_kept:
            self._commit(version, "DELETE FROM objects WHERE resource = ? AND key = ?", (resource, key))
        else:
            self._pass(version)
        before = collection.records.pop(key)
        del collection.keys[bisect.bisect_left(collection.keys, key)]
        change = StoreEvent(version, key, before, None)
        self._happened(collection, change)
        return change

    def compact(self, *, everything: bool = False) -> None:
        """End the life of old states, as a real cluster does every few minutes. The caller repeats this regularly."""
        now = self._clock()
        self._marks.append((now, self.version))
        while self._marks and (everything or self._marks[0][0] <= now - self._snapshot_seconds):
            self.compacted = self._marks.popleft()[1]

    def forget(self, resource: str, version: int) -> None:
        """Drop the changes up to a version, so that watches from before it have to start again."""
        collection = self._of(resource)
        self._drop(collection, sum(1 for change in collection.history if change.version <= version))

    def forget_everything(self) -> None:
        """Drop all history: every watch from an earlier version has to start again."""
        self._pass(self.version + 1)
        for collection in self._resources.values():
            collection.history.clear()
            collection.floor = self.version
        self._marks.clear()
        self.compacted = self.version

    def _pass(self, version: int) -> None:
        """Use a version for which nothing is written. Versions are reserved on the disk in batches, so that none is used twice."""
        if version > self._taken:
            self._taken = version + _TAKEN_AT_ONCE
            self._commit(self._taken, "UPDATE counter SET version = ?", (self._taken,))
        self.version = version

    def _commit(self, version: int, statement: str, values: tuple[object, ...]) -> None:
        """Execute the statement and store the version in one transaction. Raise `Failure` when that fails; then nothing is changed."""
        database = self._database
        if database is not None:
            try:
                database.execute("BEGIN IMMEDIATE")
                database.execute(statement, values)
                database.execute("UPDATE counter SET version = max(version, ?)", (version,))
                database.execute("COMMIT")
            except sqlite3.Error as problem:
                # A full disk ends some transactions itself; others fail only when they commit, and stay open.
                if database.in_transaction:
                    database.execute("ROLLBACK")
                self._troubles.handles(problem)
                raise not_stored(self._path, problem) from problem
        self.version = version

    def _happened(self, collection: _Resource, change: StoreEvent) -> None:
        collection.history.append(change)
        self._drop(collection, len(collection.history) - self._history)
        for listener in tuple(collection.listeners):
            listener(change)

    def _drop(self, collection: _Resource, count: int) -> None:
        for _ in range(count):
            collection.floor = collection.history.popleft().version
