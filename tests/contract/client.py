"""The tiny HTTP client of the suite: one request in, one answer out, and watches as streams of events.

It hides nothing of the protocol: no retries, no caching, no typed models. An `Answer` is asked either for success (`ok`)
or for a refusal of an exact status and reason (`refused`), and fails the test with the server's own words otherwise.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

import aiohttp

from tests.contract.kubeconfig import Connection

Object = dict[str, Any]

EVENT_DEADLINE_SECONDS = 10.0
LONGEST_EVENT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer; `body` is {} when it was not a JSON object."""

    request: str
    status: int
    headers: Mapping[str, str]
    text: str
    body: Object

    def ok(self, status: int = 0) -> Object:
        wanted = self.status == status if status else 200 <= self.status < 300
        assert wanted, f"{self.request} answered {self.status}: {self.text[:2000]}"
        return self.body

    def refused(self, status: int, reason: str) -> Object:
        """Asserts the refusal's status and its machine-readable shape; returns the Status object."""
        assert self.status == status, f"{self.request} answered {self.status}, not {status}: {self.text[:2000]}"
        assert (self.body.get("apiVersion"), self.body.get("kind")) == ("v1", "Status"), self.text[:2000]
        assert self.body.get("status") == "Failure", self.body
        assert self.body.get("code") == status, self.body
        assert self.body.get("reason", "") == reason, self.body
        assert self.body.get("message"), self.body
        return self.body


class Watch:
    """The events of one watch, in order."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self, timeout: float = EVENT_DEADLINE_SECONDS) -> Object:
        event = await self.next_or_end(timeout)
        assert event is not None, "the server ended the watch before the awaited event"
        return event

    async def next_or_end(self, timeout: float = EVENT_DEADLINE_SECONDS) -> Object | None:
        try:
            line = await asyncio.wait_for(self._response.content.readline(), timeout)
        except TimeoutError:
            raise AssertionError(f"no watch event within {timeout} s") from None
        return dict(json.loads(line)) if line.strip() else None

    async def rest(self, timeout: float = EVENT_DEADLINE_SECONDS) -> list[Object]:
        """All events until the server ends the watch."""
        events = []
        while (event := await self.next_or_end(timeout)) is not None:
            events.append(event)
        return events


class Client:
    def __init__(self, session: aiohttp.ClientSession, connection: Connection) -> None:
        self._session = session
        self._connection = connection

    @classmethod
    @asynccontextmanager
    async def connected(cls, connection: Connection) -> AsyncIterator[Self]:
        async with aiohttp.ClientSession(
            read_bufsize=LONGEST_EVENT_BYTES, timeout=aiohttp.ClientTimeout(total=None, sock_connect=10)
        ) as session:
            yield cls(session, connection)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Object | list[Any] | str | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        query: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> Answer:
        """One request; `token` replaces the kubeconfig's credentials altogether ("" sends none)."""
        anonymous = token is not None
        headers = {"Accept": accept} | self._authorization(token)
        if body is not None:
            headers["Content-Type"] = content_type
        async with self._session.request(
            method,
            self._connection.server + path,
            params=query,
            data=None if body is None else body if isinstance(body, str) else json.dumps(body),
            headers=headers,
            ssl=(self._connection.tls_without_certificate if anonymous else self._connection.tls) or True,
            timeout=aiohttp.ClientTimeout(total=30),
        ) as response:
            text = await response.text()
            return Answer(
                f"{method} {path}", response.status, dict(response.headers), text, _json_object(response, text)
            )

    @asynccontextmanager
    async def watch(self, path: str, query: Mapping[str, str], accept: str) -> AsyncIterator[Watch]:
        async with self._session.get(
            self._connection.server + path,
            params={"watch": "true", **query},
            headers={"Accept": accept} | self._authorization(None),
            ssl=self._connection.tls or True,
        ) as response:
            assert response.status == 200, f"watch of {path} answered {response.status}: {await response.text()}"
            try:
                yield Watch(response)
            finally:
                # A polite TLS goodbye outlives the test's event loop; a watcher that goes away may just be gone.
                if response.connection and response.connection.transport:
                    response.connection.transport.abort()

    def _authorization(self, token: str | None) -> dict[str, str]:
        used = self._connection.token if token is None else token
        return {"Authorization": f"Bearer {used}"} if used else {}


def _json_object(response: aiohttp.ClientResponse, text: str) -> Object:
    if response.content_type != "application/json":
        return {}
    parsed = json.loads(text)
    return parsed if isinstance(parsed, dict) else {}
