"""The one seam to Kubernetes, implemented over HTTP by `grid.kube.http` and in memory by the tests' fake, both held to `tests/contract`.
Every method raises only errors of `grid.core.errors`."""

from collections.abc import AsyncIterator
from typing import Literal, Protocol

from grid.kube.objects import RawObject
from grid.kube.resources import Resource

Propagation = Literal["Background", "Foreground", "Orphan"]


class Followable(Protocol):
    """What a reflector asks of a cluster."""

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
        """Return one page of a list as raw JSON, of each object only its metadata if that is enough. Raise Expired when the
        continue token is too old."""
        ...

    def watch(
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
        """Yield raw watch events (bookmarks included), one JSON document each, until the server closes the stream.

        With `initial_events` it is a streaming list: what exists comes first, as ADDED, and then a bookmark that says so. Raise
        Rejected when the server has none."""
        ...


class KubeApi(Followable, Protocol):
    """Reading returns bytes where a cache decodes them itself, and whole objects where a caller wants one."""

    async def get(self, resource: Resource, name: str, *, namespace: str = "") -> RawObject: ...

    async def create(
        self, resource: Resource, body: RawObject, *, namespace: str = "", dry_run: bool = False
    ) -> RawObject: ...

    async def replace(self, resource: Resource, name: str, body: RawObject, *, namespace: str = "") -> RawObject: ...

    async def patch(self, resource: Resource, name: str, body: RawObject, *, namespace: str = "") -> RawObject:
        """Merge the body into the object (JSON merge patch): None deletes a field, a list is replaced."""
        ...

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
        """Ask for deletion; `uid` makes it conditional on that very object (Conflict otherwise)."""
        ...

    async def evict(self, pod: str, *, namespace: str, uid: str = "") -> None:
        """Ask for the pod's eviction, a deletion that its disruption budget may refuse now (TooManyRequests); `uid` makes it conditional on
        that very pod (Conflict otherwise)."""
        ...

    def logs(
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
        """Yield chunks of a container's log, as they come; with `since`, an RFC 3339 time, from there on. Kubernetes drops its fraction
        of a second."""
        ...

    async def ask_sandbox(
        self, method: Literal["GET", "PATCH", "POST"], path: str, body: RawObject | None = None
    ) -> RawObject:
        """Ask what only the embedded cluster answers, below /sandbox/. Raises NotFound, or NotAllowed, on any other."""
        ...

    async def server_text(self, path: str, *, verbose: bool = False) -> str:
        """Return what the API server says about itself: /version, /apis/GROUP/VERSION, or /readyz, with `verbose` each check, also when
        some fail."""
        ...

    async def close(self) -> None: ...
