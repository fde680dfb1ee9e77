"""A cluster in memory: the embedded API server without HTTP, as a `KubeApi`, and with faults on command.

What is kept, refused, selected, defaulted, listed and collected is the embedded server's own doing (`tests/support/apiserver.py`). Here is
what tests need beside: requests are counted, what a test puts is not checked, and a watch runs on the loop's time, which
may be virtual. Faults: `available = False`, `fail_next`, `drop_watch`, `lose_events`, `compact`, `inject`.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from grid.core.errors import ClusterUnavailable, GridError, NotAllowed, NotFound, Problem, Rejected
from grid.kube.api import Propagation
from grid.kube.objects import RawObject
from grid.kube.resources import PODS, SERVICES, Resource
from grid.sandbox.apiserver import discovery
from grid.sandbox.apiserver.deletion import DeleteOptions
from grid.sandbox.apiserver.kinds import has_group
from grid.sandbox.apiserver.status import expired
from grid.sandbox.apiserver.store import event_line
from grid.sandbox.apiserver.streaming import END_OF_LIST, bookmark
from tests.support.apiserver import BareServer, OpenWatch, kind_of

_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z ")


def _stamp_of(number: int) -> str:
    return (datetime(2026, 3, 4, 9, tzinfo=UTC) + timedelta(milliseconds=number)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


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
        self.readyz = "[+]ping ok\n[+]etcd ok\nreadyz check passed\n"
        self.version = "v1.36.2"
        self.lacking: set[str] = set()  # versions of groups that discovery does not name
        self.server = BareServer(clock)
        self.watches: list[OpenWatch] = []
        self._failures: list[tuple[GridError, str]] = []
        self._available = True
        self._logs: dict[tuple[str, str, str, bool], list[tuple[str, str]]] = {}

    # --- What a test says ---

    def put(self, resource: Resource, obj: RawObject) -> RawObject:
        """Create or replace without any check; returns the stored object (a copy)."""
        return self.server.put(resource, obj)

    def remove(self, resource: Resource, name: str, *, namespace: str = "") -> None:
        """Gone at once, with everything that it owns; also how a lingering pod ends."""
        self.server.remove(resource, name, namespace)

    def objects(self, resource: Resource) -> list[RawObject]:
        return self.server.objects(resource)

    def set_log(
        self,
        pod: str,
        lines: Sequence[str],
        *,
        namespace: str,
        container: str = "",
        previous: bool = False,
        append: bool = False,
    ) -> None:
        """Lines may begin with the node's timestamp; others get that of the line before, or one of a millisecond after it."""
        log = self._logs[namespace, pod, container, previous] = (
            [*self._logs.get((namespace, pod, container, previous), [])] if append else []
        )
        for number, line in enumerate(lines, len(log)):
            match = _STAMP.match(line)
            stamp = match[0].strip() if match else log[-1][0] if log and _STAMP.match(lines[0]) else _stamp_of(number)
            log.append((stamp, line[match.end() :] if match else line))

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
        self.server.store.to_lose = 0
        self.available = True

    def drop_watch(self) -> None:
        """Every open watch ends as when the server closes the stream."""
        self._end_watches(None)

    def break_watch(self) -> None:
        """Every open watch ends as when the connection breaks; new ones work."""
        self._end_watches(ClusterUnavailable("The connection to the API server broke."))

    def lose_events(self, count: int) -> None:
        """The next `count` changes reach no watch, not even one that resumes; only a list shows them."""
        self.server.store.to_lose += count

    def compact(self) -> None:
        """Forget all history: a watch or a page from any version known so far gets 410. Open watches go on."""
        self.server.store.forget_everything()

    def become(self, other: "FakeCluster") -> None:
        """Another cluster takes over the address: its objects and its (lower) versions; open watches break."""
        self._end_watches(ClusterUnavailable("The connection broke."))
        self.server = other.server

    def bookmark(self) -> None:
        for watch in self.watches:
            watch.add(self._bookmark(watch.resource))

    def inject(self, resource: Resource, line: bytes) -> None:
        """Send exactly these bytes to the open watches of that resource."""
        for watch in self.watches:
            if watch.resource == resource:
                watch.add(line)

    def count(self, verb: str = "", resource: Resource | None = None) -> int:
        """How many calls were made, of that verb and resource when given."""
        return sum(
            (not verb or request.verb == verb) and resource in (None, request.resource) for request in self.requests
        )

    @property
    def open_watches(self) -> int:
        return len(self.watches)

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
        query = _query(label_selector, field_selector) | {"limit": str(limit), "continue": continue_token}
        return self.server.page(resource, namespace, query, metadata_only=metadata_only)

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
        store = self.server.store
        since, floor = int(resource_version or store.version), store.floor(kind_of(resource).resource)
        if since < min(floor, store.version):
            status = expired(f"too old resource version: {since} ({floor})").body()
            yield event_line("ERROR", msgspec.json.encode(status))
            return
        watch = self.server.watch(resource, namespace, _query(label_selector, field_selector), since)
        self.watches.append(watch)
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        try:
            if not resource_version:
                async for line in self._initial(watch):
                    yield line
            async for line in self._lines(watch, deadline):
                yield line
        finally:
            if watch in self.watches:
                self.watches.remove(watch)
                watch.close()

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> RawObject:
        self._request("get", resource, namespace, name)
        return self.server.find(resource, name, namespace).fresh()

    # --- KubeApi: writing ---

    async def create(
        self, resource: Resource, body: RawObject, *, namespace: str = "", dry_run: bool = False
    ) -> RawObject:
        meta = body.get("metadata") or {}
        if resource.namespaced:
            namespace = namespace or meta.get("namespace", "") or "default"
        self._request("create", resource, namespace, meta.get("name", ""), "dry run" if dry_run else "")
        made = self.server.create(resource, body, namespace, dry_run=dry_run)
        if resource != SERVICES or self.gives_addresses:
            return made
        kept = {key: value for key, value in made["spec"].items() if key not in ("clusterIP", "clusterIPs")}
        return self.put(SERVICES, {**made, "spec": kept})

    async def replace(self, resource: Resource, name: str, body: RawObject, *, namespace: str = "") -> RawObject:
        self._request("replace", resource, namespace, name)
        return self.server.replace(resource, name, body, namespace)

    async def patch(self, resource: Resource, name: str, body: RawObject, *, namespace: str = "") -> RawObject:
        self._request("patch", resource, namespace, name)
        return self.server.patch(resource, name, body, namespace)

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
        self.server.delete(resource, name, namespace, DeleteOptions(grace_seconds, propagation or "", uid))

    async def evict(self, pod: str, *, namespace: str, uid: str = "") -> None:
        self._request("evict", PODS, namespace, pod)
        self.server.evict(pod, namespace, uid)

    async def logs(
        self,
        pod: str,
        *,
        namespace: str,
        container: str = "",
        tail_lines: int | None = None,
        previous: bool = False,
        timestamps: bool = False,
        since: str = "",
    ) -> AsyncIterator[bytes]:
        self._request("logs", PODS, namespace, pod, container)
        self.server.find(PODS, pod, namespace)
        lines = self._logs.get((namespace, pod, container, previous), [])
        for stamp, text in lines[-tail_lines:] if tail_lines else lines:
            if stamp[:19] >= since[:19]:
                yield f"{stamp} {text}\n".encode() if timestamps else f"{text}\n".encode()

    async def ask_sandbox(
        self, method: Literal["GET", "PATCH", "POST"], path: str, body: RawObject | None = None
    ) -> RawObject:
        if self.sandbox is None:
            raise NotFound("the server could not find the requested resource")
        self.asked_of_sandbox.append((method, path, body))
        return self.sandbox if path == "population" else {"about": ""}

    async def server_text(self, path: str, *, verbose: bool = False) -> str:
        if not self._available:
            raise ClusterUnavailable("The cluster does not answer: connection refused.")
        if path == "/readyz":
            return self.readyz
        if path == "/version":
            return msgspec.json.encode({**discovery.VERSION, "gitVersion": self.version}).decode()
        group, version = path.split("/")[2:] if path.startswith("/apis/") else ("", "v1")
        if not has_group(group, version) or f"{group}/{version}".strip("/") in self.lacking:
            raise NotFound("the server could not find the requested resource")
        return msgspec.json.encode(discovery.resource_list(group, version)).decode()

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
        if resource in self.forbidden:
            raise NotAllowed(self.forbidden[resource])

    def _end_watches(self, how: GridError | None) -> None:
        for watch in self.watches:
            watch.end(how)
        self.watches.clear()

    async def _lines(self, watch: OpenWatch, deadline: float) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        while (left := deadline - loop.time()) > 0:
            if not watch.ended:
                await watch.wait(min(left, self.bookmark_seconds))
            lines = watch.take()
            for line in lines:
                yield line
            if lines:
                continue
            if watch.how is not None:
                raise watch.how
            if watch.ended:
                return
            yield self._bookmark(watch.resource)

    async def _initial(self, watch: OpenWatch) -> AsyncIterator[bytes]:
        """What exists now; with the bookmark that ends it where streaming lists are known, and cut short when the watch is."""
        end = bookmark(kind_of(watch.resource), self.server.store.version, END_OF_LIST)
        for record in list(self.server.store.records(watch.interest.resource, prefix=watch.interest.prefix)):
            if not watch.interest.matches(record):
                continue
            if self.list_seconds:
                await asyncio.sleep(self.list_seconds)
            if watch.ended:
                return
            yield event_line("ADDED", record.raw)
        if self.streaming_lists == "served":
            yield end

    def _bookmark(self, resource: Resource) -> bytes:
        return bookmark(kind_of(resource), self.server.store.version)


def _query(label_selector: str, field_selector: str) -> dict[str, str]:
    return {"labelSelector": label_selector, "fieldSelector": field_selector}


def decoded(lines: Sequence[bytes]) -> Iterator[RawObject]:
    """Watch lines as objects, for tests that look at them."""
    return (msgspec.json.decode(line, type=dict) for line in lines)
