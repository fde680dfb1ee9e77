"""A cluster in memory: `KubeApi` with the promises of a real API server, and with faults on command.

Resource versions grow with each change; lists come in pages of one snapshot; watches replay from a version, send
bookmarks, and answer 410 for a forgotten one; a stale replace is a Conflict; deleting an owner deletes what it owns; a pod
bound to a node lingers with a deletion timestamp until `remove` (the kubelet's part), as in real life; a Service gets an address.
Faults: `available = False`, `fail_next`, `drop_watch`, `lose_events`, `compact`, `inject`. Everything happens on one event loop.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from grid.errors import ClusterUnavailable, Conflict, Expired, GridError, NotFound, Problem, Rejected
from grid.kube.api import PatchKind, Propagation
from grid.kube.objects import RawObject
from grid.kube.resources import PODS, SERVICES, Resource
from tests.support.patching import patched
from tests.support.selection import Matcher, matcher


@dataclass(frozen=True, slots=True)
class Request:
    """One call that was made of the cluster, in `FakeCluster.requests`."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class _Change:
    version: int
    resource: Resource
    old: RawObject | None
    new: RawObject | None


@dataclass(frozen=True, slots=True)
class _Watch:
    resource: Resource
    fits: Callable[[RawObject], bool]
    queue: asyncio.Queue[bytes | GridError | None] = field(default_factory=asyncio.Queue)


def _key(obj: RawObject) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class FakeCluster:
    """See the module. `clock` gives creation and deletion timestamps; `bookmark_seconds` is real (or virtual) loop time."""

    def __init__(
        self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC), bookmark_seconds: float = 60.0
    ) -> None:
        self.requests: list[Request] = []
        self.unserved: set[Resource] = set()
        self.bookmark_seconds = bookmark_seconds
        self.list_seconds = 0.0  # how long each page takes
        self.gives_addresses = True  # to Services
        self.closed = False
        self._clock = clock
        self._objects: dict[Resource, dict[str, RawObject]] = {}
        self._version = 1000
        self._forgotten = 0
        self._history: list[_Change] = []
        self._watches: list[_Watch] = []
        self._pages: dict[str, tuple[int, list[RawObject]]] = {}
        self._failures: list[tuple[GridError, str]] = []
        self._to_lose = 0
        self._made = 0
        self._available = True
        self._logs: dict[tuple[str, str, str, bool], list[bytes]] = {}

    # --- What a test says ---

    def put(self, resource: Resource, obj: RawObject) -> RawObject:
        """Create or replace without any check; returns the stored object (a copy)."""
        obj = copy.deepcopy(obj)
        old = self._objects.get(resource, {}).get(_key(obj))
        return copy.deepcopy(self._store(resource, obj, old))

    def remove(self, resource: Resource, name: str, *, namespace: str = "") -> None:
        """Gone at once, with everything that it owns; also how a lingering pod ends."""
        obj = self._find(resource, name, namespace)
        self._erase(resource, obj)
        self._cascade(obj)

    def objects(self, resource: Resource) -> list[RawObject]:
        return [copy.deepcopy(obj) for _, obj in sorted(self._objects.get(resource, {}).items())]

    def set_log(
        self, pod: str, lines: Sequence[str], *, namespace: str, container: str = "", previous: bool = False
    ) -> None:
        self._logs[namespace, pod, container, previous] = [f"{line}\n".encode() for line in lines]

    @property
    def available(self) -> bool:
        return self._available

    @available.setter
    def available(self, up: bool) -> None:
        """False: every call fails and open watches break, until it is True again."""
        self._available = up
        if not up:
            self._end_watches(ClusterUnavailable("The cluster does not answer: connection refused."))

    def fail_next(self, error: GridError, times: int = 1, *, verb: str = "") -> None:
        """The next `times` calls (of that verb, when given) raise `error`."""
        self._failures += [(error, verb)] * times

    def heal(self) -> None:
        """Nothing fails or is lost from now on."""
        self._failures.clear()
        self._to_lose = 0
        self.available = True

    def drop_watch(self) -> None:
        """Every open watch ends as when the server closes the stream."""
        self._end_watches(None)

    def break_watch(self) -> None:
        """Every open watch ends as when the connection breaks; new ones work."""
        self._end_watches(ClusterUnavailable("The connection to the API server broke."))

    def lose_events(self, count: int) -> None:
        """The next `count` changes reach no watch, not even one that resumes; only a list shows them."""
        self._to_lose += count

    def compact(self) -> None:
        """Forget all history: a watch or a page from any version known so far gets 410. Open watches go on."""
        self._version += 1
        self._forgotten = self._version
        self._history.clear()
        self._pages.clear()

    def become(self, other: "FakeCluster") -> None:
        """Another cluster takes over the address: its objects and its (lower) versions; open watches break."""
        self._end_watches(ClusterUnavailable("The connection broke."))
        self._objects, self._version, self._forgotten = other._objects, other._version, 0
        self._history.clear()

    def bookmark(self) -> None:
        for watch in self._watches:
            watch.queue.put_nowait(self._bookmark(watch.resource))

    def inject(self, resource: Resource, line: bytes) -> None:
        """Send exactly these bytes to the open watches of that resource."""
        for watch in self._watches:
            if watch.resource == resource:
                watch.queue.put_nowait(line)

    def count(self, verb: str = "", resource: Resource | None = None) -> int:
        """How many calls were made, of that verb and resource when given."""
        return sum(
            (not verb or request.verb == verb) and resource in (None, request.resource) for request in self.requests
        )

    @property
    def open_watches(self) -> int:
        return len(self._watches)

    # --- KubeApi: reading ---

    async def list_page(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        continue_token: str = "",
    ) -> bytes:
        if self.list_seconds:
            await asyncio.sleep(self.list_seconds)
        self._request("list", resource, namespace, detail=continue_token)
        if continue_token:
            if continue_token not in self._pages:
                raise Expired("The provided continue parameter is too old to display a consistent list result.")
            version, items = self._pages[continue_token]
        else:
            fits = _fits(namespace, label_selector, field_selector)
            known = self._objects.get(resource, {})
            version, items = self._version, [known[key] for key in sorted(known) if fits(known[key])]
        page, rest = (items[:limit], items[limit:]) if limit else (items, [])
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if rest:
            metadata |= {"continue": f"page-{version}-{len(rest)}", "remainingItemCount": len(rest)}
            self._pages[metadata["continue"]] = (version, rest)
        return msgspec.json.encode(
            {
                "kind": f"{resource.kind}List",
                "apiVersion": resource.api_version,
                "metadata": metadata,
                "items": [{k: v for k, v in item.items() if k not in ("kind", "apiVersion")} for item in page],
            }
        )

    async def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 300,
    ) -> AsyncIterator[bytes]:
        self._request("watch", resource, namespace, detail=resource_version)
        since = int(resource_version or self._version)
        if since < self._forgotten:
            message = f"too old resource version: {since} ({self._forgotten})"
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}
            yield msgspec.json.encode({"type": "ERROR", "object": status | {"message": message}})
            return
        watch = _Watch(resource, _fits(namespace, label_selector, field_selector))
        for change in self._history:
            if change.version > since:
                _deliver(watch, change)
        self._watches.append(watch)
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        try:
            async for line in self._lines(watch, deadline):
                yield line
        finally:
            if watch in self._watches:
                self._watches.remove(watch)

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> RawObject:
        self._request("get", resource, namespace, name)
        return copy.deepcopy(self._find(resource, name, namespace))

    # --- KubeApi: writing ---

    async def create(
        self, resource: Resource, body: RawObject, *, namespace: str = "", dry_run: bool = False
    ) -> RawObject:
        obj = copy.deepcopy(body)
        meta = obj.setdefault("metadata", {})
        if resource.namespaced:
            namespace = meta.setdefault("namespace", namespace)
        if "name" not in meta and "generateName" in meta:
            meta["name"] = f"{meta['generateName']}{self._made:05d}"
        self._request("create", resource, namespace, meta.get("name", ""), "dry run" if dry_run else "")
        if not meta.get("name") or (resource.namespaced and not namespace):
            raise Rejected([Problem("metadata.name", "name or generateName is required, and a namespace")])
        if _key(obj) in self._objects.get(resource, {}):
            raise Conflict(f'{resource.plural} "{meta["name"]}" already exists')
        if dry_run:
            return obj
        if resource == SERVICES and self.gives_addresses:
            self._give_address(obj.setdefault("spec", {}))
        return copy.deepcopy(self._store(resource, obj, None))

    async def replace(self, resource: Resource, name: str, body: RawObject, *, namespace: str = "") -> RawObject:
        self._request("replace", resource, namespace, name)
        old = self._find(resource, name, namespace)
        _check_version(resource, old, body.get("metadata", {}))
        obj = copy.deepcopy(body)
        obj["metadata"] = {**obj.get("metadata", {}), "name": name}
        if namespace and resource.namespaced:
            obj["metadata"]["namespace"] = namespace
        return copy.deepcopy(self._store(resource, obj, old))

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: object,
        *,
        namespace: str = "",
        subresource: str = "",
        kind: PatchKind = "merge",
    ) -> RawObject:
        self._request("patch", resource, namespace, name, f"{kind} {subresource}".strip())
        try:
            old = self._find(resource, name, namespace)
        except NotFound:
            if kind != "apply" or not isinstance(body, dict):
                raise
            return await self.create(resource, body, namespace=namespace)
        if isinstance(body, dict):
            _check_version(resource, old, body.get("metadata") or {})
        return copy.deepcopy(self._store(resource, patched(old, body, kind), old))

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        grace_seconds: int | None = None,
        propagation: Propagation | None = None,
        uid: str = "",
    ) -> None:
        self._request("delete", resource, namespace, name)
        obj = self._find(resource, name, namespace)
        if uid and obj["metadata"]["uid"] != uid:
            raise Conflict(f'the UID in the precondition ({uid}) does not match that of {resource.plural} "{name}"')
        self._delete(resource, obj, grace_seconds)
        if propagation != "Orphan":
            self._cascade(obj)

    async def logs(
        self,
        pod: str,
        *,
        namespace: str,
        container: str = "",
        tail_lines: int | None = None,
        previous: bool = False,
        follow: bool = False,
        timestamps: bool = False,
    ) -> AsyncIterator[bytes]:
        self._request("logs", PODS, namespace, pod, container)
        self._find(PODS, pod, namespace)
        lines = self._logs.get((namespace, pod, container, previous), [])
        for line in lines[-tail_lines:] if tail_lines else lines:
            yield line

    async def close(self) -> None:
        self.closed = True
        self._end_watches(None)

    # --- Inside ---

    def _request(self, verb: str, resource: Resource, namespace: str, name: str = "", detail: str = "") -> None:
        self.requests.append(Request(verb, resource, namespace, name, detail))
        if not self._available:
            raise ClusterUnavailable("The cluster does not answer: connection refused.")
        for place, (error, wanted) in enumerate(self._failures):
            if wanted in ("", verb):
                del self._failures[place]
                raise error
        if resource in self.unserved:
            raise NotFound("the server could not find the requested resource")

    def _find(self, resource: Resource, name: str, namespace: str) -> RawObject:
        key = f"{namespace}/{name}" if resource.namespaced and namespace else name
        try:
            return self._objects[resource][key]
        except KeyError:
            raise NotFound(f'{resource.plural} "{name}" not found') from None

    def _give_address(self, spec: RawObject) -> None:
        taken = {one.get("spec", {}).get("clusterIP") for one in self._objects.get(SERVICES, {}).values()}
        if spec.get("clusterIP") in taken - {None}:
            raise Rejected([Problem("spec.clusterIPs", "provided IP is already allocated")])
        if not spec.get("clusterIP"):
            spec["clusterIP"] = next(ip for ip in (f"10.96.0.{n}" for n in range(10, 250)) if ip not in taken)

    def _store(self, resource: Resource, obj: RawObject, old: RawObject | None) -> RawObject:
        meta = obj["metadata"]
        obj.setdefault("apiVersion", resource.api_version)
        obj.setdefault("kind", resource.kind)
        if old is None:
            self._made += 1
            meta.setdefault("uid", f"00000000-0000-4000-8000-{self._made:012d}")
            meta.setdefault("creationTimestamp", _stamp(self._clock()))
            meta["generation"] = 1
        else:
            kept = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
            meta.update({key: old["metadata"][key] for key in kept if key in old["metadata"]})
            meta["generation"] = old["metadata"].get("generation", 1) + (obj.get("spec") != old.get("spec"))
            if obj | {"metadata": {**meta, "resourceVersion": old["metadata"]["resourceVersion"]}} == old:
                return old
        self._version += 1
        meta["resourceVersion"] = str(self._version)
        self._objects.setdefault(resource, {})[_key(obj)] = obj
        self._publish(_Change(self._version, resource, old, obj))
        return obj

    def _delete(self, resource: Resource, obj: RawObject, grace_seconds: int | None) -> None:
        spec = obj.get("spec", {})
        grace = spec.get("terminationGracePeriodSeconds", 30) if grace_seconds is None else grace_seconds
        if resource != PODS or not spec.get("nodeName") or grace == 0:
            self._erase(resource, obj)
        elif "deletionTimestamp" not in obj["metadata"]:
            marked = copy.deepcopy(obj)
            marked["metadata"]["deletionTimestamp"] = _stamp(self._clock() + timedelta(seconds=grace))
            marked["metadata"]["deletionGracePeriodSeconds"] = grace
            self._store(resource, marked, obj)

    def _erase(self, resource: Resource, obj: RawObject) -> None:
        del self._objects[resource][_key(obj)]
        self._version += 1
        last = copy.deepcopy(obj)
        last["metadata"]["resourceVersion"] = str(self._version)
        self._publish(_Change(self._version, resource, last, None))

    def _cascade(self, owner: RawObject) -> None:
        uid = owner["metadata"]["uid"]
        for resource, obj in self._owned_by(uid):
            if obj["metadata"]["name"] and _key(obj) in self._objects[resource]:
                self._delete(resource, obj, None)
                self._cascade(obj)

    def _owned_by(self, uid: str) -> list[tuple[Resource, RawObject]]:
        return [
            (resource, obj)
            for resource, known in self._objects.items()
            for obj in known.values()
            if any(owner.get("uid") == uid for owner in obj["metadata"].get("ownerReferences", ()))
        ]

    def _publish(self, change: _Change) -> None:
        if self._to_lose:
            self._to_lose -= 1
            return
        self._history.append(change)
        for watch in self._watches:
            _deliver(watch, change)

    def _end_watches(self, how: GridError | None) -> None:
        for watch in self._watches:
            watch.queue.put_nowait(how)
        self._watches.clear()

    async def _lines(self, watch: _Watch, deadline: float) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        while (left := deadline - loop.time()) > 0:
            try:
                async with asyncio.timeout(min(left, self.bookmark_seconds)):
                    line = await watch.queue.get()
            except TimeoutError:
                yield self._bookmark(watch.resource)
                continue
            if isinstance(line, GridError):
                raise line
            if line is None:
                return
            yield line

    def _bookmark(self, resource: Resource) -> bytes:
        obj = {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": {"resourceVersion": str(self._version), "creationTimestamp": None},
        }
        return msgspec.json.encode({"type": "BOOKMARK", "object": obj})


def _fits(namespace: str, label_selector: str, field_selector: str) -> Matcher:
    try:
        selected = matcher(label_selector, field_selector)
    except ValueError as error:
        raise Rejected([Problem("", str(error))]) from error
    return lambda obj: (not namespace or obj["metadata"].get("namespace") == namespace) and selected(obj)


def _check_version(resource: Resource, old: RawObject, meta: RawObject) -> None:
    given = meta.get("resourceVersion")
    if given and given != old["metadata"]["resourceVersion"]:
        raise Conflict(
            f'Operation cannot be fulfilled on {resource.plural} "{old["metadata"]["name"]}": '
            "the object has been modified; please apply your changes to the latest version and try again"
        )


def _deliver(watch: _Watch, change: _Change) -> None:
    """As the API server does: what leaves the selector is DELETED, what enters it is ADDED."""
    if watch.resource != change.resource:
        return
    before = change.old is not None and watch.fits(change.old)
    after = change.new is not None and watch.fits(change.new)
    if not before and not after:
        return
    kind = "DELETED" if not after else "MODIFIED" if before else "ADDED"
    obj = change.new if change.new is not None else change.old
    assert obj is not None
    shown = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(change.version)}}
    watch.queue.put_nowait(msgspec.json.encode({"type": kind, "object": shown}))


def decoded(lines: Sequence[bytes]) -> Iterator[RawObject]:
    """Watch lines as objects, for tests that look at them."""
    return (msgspec.json.decode(line, type=dict) for line in lines)
