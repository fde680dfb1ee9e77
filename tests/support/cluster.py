"""A cluster in memory: `KubeApi` with the promises of a real API server, and with faults on command.

Resource versions grow with each change; lists come in pages of one snapshot; watches replay from a version, send
bookmarks, and answer 410 for a forgotten one; a stale replace is a Conflict; deleting an owner deletes what it owns; a pod
bound to a node lingers with a deletion timestamp until `remove` (the kubelet's part), as in real life; a Service gets an address.
`tests/support/storage.py` keeps it. Faults: `available = False`, `fail_next`, `drop_watch`, `lose_events`, `compact`, `inject`.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from grid.errors import ClusterUnavailable, Conflict, Expired, GridError, NotAllowed, NotFound, Problem, Rejected
from grid.kube.api import Propagation
from grid.kube.objects import RawObject
from grid.kube.resources import PODS, SERVICES, Resource
from tests.support.patching import merged
from tests.support.selection import Matcher, matcher
from tests.support.storage import Storage, Watch


@dataclass(frozen=True, slots=True)
class Request:
    """One call that was made of the cluster, in `FakeCluster.requests`."""

    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    detail: str = ""


POPULATION: RawObject = {
    "nodes": 50,
    "pods": 1500,
    "wanted": {"nodes": 50, "pods": 1500, "churn": 20.0},
    "changes": 12345,
    "pools": ["cpu", "gpu"],
    "outOfStock": ["cpu"],
}


class FakeCluster:
    """Answer as an API server does. `clock` gives creation and deletion timestamps; `bookmark_seconds` is real (or virtual) loop time."""

    # Refused: as by older Kubernetes, with 422. Ignored: as by servers that know no such parameter.
    streaming_lists: Literal["served", "refused", "ignored"] = "served"

    def __init__(
        self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC), bookmark_seconds: float = 60.0
    ) -> None:
        self.requests: list[Request] = []
        self.unserved: set[Resource] = set()
        self.forbidden: dict[Resource, str] = {}  # with the server's sentence
        self.bookmark_seconds = bookmark_seconds
        self.list_seconds = 0.0  # how long each page takes, or each object of a streaming list
        self.gives_addresses = True  # to Services
        self.closed = False
        self.sandbox: RawObject | None = None  # how its population is; None of any other cluster
        self.asked_of_sandbox: list[tuple[str, str, RawObject | None]] = []
        self.storage = Storage(clock)
        self._pages: dict[str, tuple[int, list[RawObject]]] = {}
        self._failures: list[tuple[GridError, str]] = []
        self._available = True
        self._logs: dict[tuple[str, str, str, bool], list[bytes]] = {}

    # --- What a test says ---

    def put(self, resource: Resource, obj: RawObject) -> RawObject:
        """Create or replace without any check; returns the stored object (a copy)."""
        obj = copy.deepcopy(obj)
        return copy.deepcopy(self.storage.store(resource, obj, self.storage.same(resource, obj)))

    def remove(self, resource: Resource, name: str, *, namespace: str = "") -> None:
        """Gone at once, with everything that it owns; also how a lingering pod ends."""
        obj = self.storage.find(resource, name, namespace)
        self.storage.erase(resource, obj)
        self.storage.cascade(obj)

    def objects(self, resource: Resource) -> list[RawObject]:
        return [copy.deepcopy(obj) for obj in self.storage.of(resource)]

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
            self.storage.end_watches(ClusterUnavailable("The cluster does not answer: connection refused."))

    def fail_next(self, error: GridError, times: int = 1, *, verb: str = "") -> None:
        """The next `times` calls (of that verb, when given) raise `error`."""
        self._failures += [(error, verb)] * times

    def heal(self) -> None:
        """Nothing fails or is lost from now on."""
        self._failures.clear()
        self.storage.to_lose = 0
        self.available = True

    def drop_watch(self) -> None:
        """Every open watch ends as when the server closes the stream."""
        self.storage.end_watches(None)

    def break_watch(self) -> None:
        """Every open watch ends as when the connection breaks; new ones work."""
        self.storage.end_watches(ClusterUnavailable("The connection to the API server broke."))

    def lose_events(self, count: int) -> None:
        """The next `count` changes reach no watch, not even one that resumes; only a list shows them."""
        self.storage.to_lose += count

    def compact(self) -> None:
        """Forget all history: a watch or a page from any version known so far gets 410. Open watches go on."""
        self.storage.compact()
        self._pages.clear()

    def become(self, other: "FakeCluster") -> None:
        """Another cluster takes over the address: its objects and its (lower) versions; open watches break."""
        self.storage.end_watches(ClusterUnavailable("The connection broke."))
        self.storage.become(other.storage)

    def bookmark(self) -> None:
        for watch in self.storage.watches:
            watch.queue.put_nowait(self._bookmark(watch.resource))

    def inject(self, resource: Resource, line: bytes) -> None:
        """Send exactly these bytes to the open watches of that resource."""
        for watch in self.storage.watches:
            if watch.resource == resource:
                watch.queue.put_nowait(line)

    def count(self, verb: str = "", resource: Resource | None = None) -> int:
        """How many calls were made, of that verb and resource when given."""
        return sum(
            (not verb or request.verb == verb) and resource in (None, request.resource) for request in self.requests
        )

    @property
    def open_watches(self) -> int:
        return len(self.storage.watches)

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
        metadata_only: bool = False,
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
            version, items = self.storage.version, [obj for obj in self.storage.of(resource) if fits(obj)]
        page, rest = (items[:limit], items[limit:]) if limit else (items, [])
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if rest:
            metadata |= {"continue": f"page-{version}-{len(rest)}", "remainingItemCount": len(rest)}
            self._pages[metadata["continue"]] = (version, rest)
        if metadata_only:
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            return msgspec.json.encode(head | {"items": [{"metadata": item["metadata"]} for item in page]})
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
        initial_events: bool = False,
    ) -> AsyncIterator[bytes]:
        """A streaming list counts as a list, with the detail "stream", unless it is refused."""
        if initial_events and self.streaming_lists == "refused":
            self._request("refused list", resource, namespace, detail="stream")
            raise Rejected([Problem("sendInitialEvents", "Forbidden: the WatchList feature gate is not enabled")])
        if initial_events:
            self._request("list", resource, namespace, detail="stream")
        else:
            self._request("watch", resource, namespace, detail=resource_version)
        since = int(resource_version or self.storage.version)
        if since < self.storage.forgotten:
            message = f"too old resource version: {since} ({self.storage.forgotten})"
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}
            yield msgspec.json.encode({"type": "ERROR", "object": status | {"message": message}})
            return
        watch = self.storage.open_watch(resource, _fits(namespace, label_selector, field_selector), since)
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        try:
            if not resource_version:
                async for line in self._initial(watch):
                    yield line
            async for line in self._lines(watch, deadline):
                yield line
        finally:
            if watch in self.storage.watches:
                self.storage.watches.remove(watch)

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> RawObject:
        self._request("get", resource, namespace, name)
        return copy.deepcopy(self.storage.find(resource, name, namespace))

    # --- KubeApi: writing ---

    async def create(
        self, resource: Resource, body: RawObject, *, namespace: str = "", dry_run: bool = False
    ) -> RawObject:
        obj = copy.deepcopy(body)
        meta = obj.setdefault("metadata", {})
        if resource.namespaced:
            namespace = meta.setdefault("namespace", namespace)
        if "name" not in meta and "generateName" in meta:
            meta["name"] = f"{meta['generateName']}{self.storage.made:05d}"
        self._request("create", resource, namespace, meta.get("name", ""), "dry run" if dry_run else "")
        if not meta.get("name") or (resource.namespaced and not namespace):
            raise Rejected([Problem("metadata.name", "name or generateName is required, and a namespace")])
        if self.storage.same(resource, obj) is not None:
            raise Conflict(f'{resource.plural} "{meta["name"]}" already exists')
        if dry_run:
            return obj
        if resource == SERVICES and self.gives_addresses:
            self._give_address(obj.setdefault("spec", {}))
        return copy.deepcopy(self.storage.store(resource, obj, None))

    async def replace(self, resource: Resource, name: str, body: RawObject, *, namespace: str = "") -> RawObject:
        self._request("replace", resource, namespace, name)
        old = self.storage.find(resource, name, namespace)
        _check_version(resource, old, body.get("metadata", {}))
        obj = copy.deepcopy(body)
        obj["metadata"] = {**obj.get("metadata", {}), "name": name}
        if namespace and resource.namespaced:
            obj["metadata"]["namespace"] = namespace
        return copy.deepcopy(self.storage.store(resource, obj, old))

    async def patch(self, resource: Resource, name: str, body: RawObject, *, namespace: str = "") -> RawObject:
        self._request("patch", resource, namespace, name)
        old = self.storage.find(resource, name, namespace)
        _check_version(resource, old, body.get("metadata") or {})
        return copy.deepcopy(self.storage.store(resource, merged(copy.deepcopy(old), copy.deepcopy(body)), old))

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
        obj = self.storage.find(resource, name, namespace)
        if uid and obj["metadata"]["uid"] != uid:
            raise Conflict(f'the UID in the precondition ({uid}) does not match that of {resource.plural} "{name}"')
        self.storage.delete(resource, obj, grace_seconds)
        if propagation != "Orphan":
            self.storage.cascade(obj)

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
        self.storage.find(PODS, pod, namespace)
        lines = self._logs.get((namespace, pod, container, previous), [])
        for line in lines[-tail_lines:] if tail_lines else lines:
            yield line

    async def ask_sandbox(
        self, method: Literal["GET", "PATCH", "POST"], path: str, body: RawObject | None = None
    ) -> RawObject:
        if self.sandbox is None:
            raise NotFound("the server could not find the requested resource")
        self.asked_of_sandbox.append((method, path, body))
        return self.sandbox if path == "population" else {"about": ""}

    async def close(self) -> None:
        self.closed = True
        self.storage.end_watches(None)

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
        if resource in self.forbidden:
            raise NotAllowed(self.forbidden[resource])

    def _give_address(self, spec: RawObject) -> None:
        taken = {one.get("spec", {}).get("clusterIP") for one in self.storage.of(SERVICES)}
        if spec.get("clusterIP") in taken - {None}:
            raise Rejected([Problem("spec.clusterIPs", "provided IP is already allocated")])
        if not spec.get("clusterIP"):
            spec["clusterIP"] = next(ip for ip in (f"10.96.0.{n}" for n in range(10, 250)) if ip not in taken)

    async def _lines(self, watch: Watch, deadline: float) -> AsyncIterator[bytes]:
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

    async def _initial(self, watch: Watch) -> AsyncIterator[bytes]:
        """What exists now; with the bookmark that ends it where streaming lists are known, and cut short when the watch is."""
        metadata: RawObject = {"annotations": {"k8s.io/initial-events-end": "true"}}
        end = self._bookmark(watch.resource, metadata)
        for obj in [obj for obj in self.storage.of(watch.resource) if watch.fits(obj)]:
            if self.list_seconds:
                await asyncio.sleep(self.list_seconds)
            if watch not in self.storage.watches:
                return
            yield msgspec.json.encode({"type": "ADDED", "object": obj})
        if self.streaming_lists == "served":
            yield end

    def _bookmark(self, resource: Resource, metadata: RawObject | None = None) -> bytes:
        obj = {
            "kind": resource.kind,
            "apiVersion": resource.api_version,
            "metadata": {"resourceVersion": str(self.storage.version), "creationTimestamp": None} | (metadata or {}),
        }
        return msgspec.json.encode({"type": "BOOKMARK", "object": obj})


def _fits(namespace: str, label_selector: str, field_selector: str) -> Matcher:
    try:
        selected = matcher(label_selector, field_selector)
    except ValueError as error:
        raise Rejected([Problem("", str(error))]) from error
    return lambda obj: (not namespace or obj["metadata"].get("namespace") == namespace) and selected(obj)


def _check_version(resource: Resource, old: RawObject, meta: RawObject) -> None:
    if any(meta.get(key) not in ("", None, old["metadata"][key]) for key in ("resourceVersion", "uid")):
        raise Conflict(
            f'Operation cannot be fulfilled on {resource.plural} "{old["metadata"]["name"]}": '
            "the object has been modified; please apply your changes to the latest version and try again"
        )


def decoded(lines: Sequence[bytes]) -> Iterator[RawObject]:
    """Watch lines as objects, for tests that look at them."""
    return (msgspec.json.decode(line, type=dict) for line in lines)
