"""An API server as the controllers and the kubelets ask it: a `grid.kube` transport, with plain dicts at their paths.

Each request is sent once: retrying is up to the caller. Every failure is an error of `grid.core.errors`.
"""

import ssl
from pathlib import Path
from typing import Literal, Protocol, Self

from grid.kube.api import Followable, Propagation
from grid.kube.credentials import Access, CredentialSource
from grid.kube.http import Transport, query_of
from grid.sandbox.client.objects import Object

PatchKind = Literal["merge", "strategic"]
_PATCH_TYPES: dict[PatchKind, str] = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
_USER_AGENT = "grid-sandbox"


class Api(Followable, Protocol):
    """The operations on a cluster: implemented by `Client` over HTTP, and by the tests' fake in memory."""

    async def get(self, path: str) -> Object: ...

    async def list(self, path: str, *, label_selector: str = "", field_selector: str = "") -> list[Object]: ...

    async def create(self, path: str, body: Object) -> Object: ...

    async def update(self, path: str, body: Object) -> Object: ...

    async def patch(self, path: str, body: object, *, kind: PatchKind = "merge") -> Object: ...

    async def delete(
        self, path: str, *, grace_seconds: int | None = None, propagation: Propagation | None = None, uid: str = ""
    ) -> None: ...


class Client(Transport):
    """A client of one API server, without retries. `close` ends its connections, as does leaving its async context."""

    @classmethod
    def from_kubeconfig(cls, path: str | Path, context: str = "", *, user_agent: str = _USER_AGENT) -> Self:
        return cls(CredentialSource(str(path), context), user_agent=user_agent)

    @classmethod
    def with_token(cls, server: str, token: str, authority: str = "") -> Self:
        """Return a client of a server that is known without a kubeconfig; it does not import the official client, which takes long."""

        async def authorization() -> str:
            return f"Bearer {token}"

        tls = ssl.create_default_context(cadata=authority) if authority else None
        return cls(Access(server, authorization, tls), user_agent=_USER_AGENT)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def get(self, path: str) -> Object:
        return await self._object("GET", path)

    async def list(self, path: str, *, label_selector: str = "", field_selector: str = "") -> list[Object]:
        query = query_of(labelSelector=label_selector, fieldSelector=field_selector)
        return [*((await self._object("GET", path, query=query)).get("items") or ())]

    async def create(self, path: str, body: Object) -> Object:
        return await self._object("POST", path, body=body)

    async def update(self, path: str, body: Object) -> Object:
        return await self._object("PUT", path, body=body)

    async def patch(self, path: str, body: object, *, kind: PatchKind = "merge") -> Object:
        return await self._object("PATCH", path, body=body, content_type=_PATCH_TYPES[kind])

    async def delete(
        self, path: str, *, grace_seconds: int | None = None, propagation: Propagation | None = None, uid: str = ""
    ) -> None:
        await self._delete(path, grace_seconds=grace_seconds, propagation=propagation, uid=uid)
