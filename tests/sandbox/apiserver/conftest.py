"""A running API server with an empty data directory, and a client of it."""

import io
import json
import random
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest_asyncio

from grid.sandbox.apiserver import ApiServer, Tokens
from grid.sandbox.apiserver.streaming import StreamSettings

MERGE = "application/merge-patch+json"
JSON = "application/json"


class Clock:
    """Stands still until told otherwise."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass(slots=True)
class Answer:
    status: int
    body: Any
    headers: Any


@dataclass(slots=True)
class Api:
    """Requests as the admin."""

    server: ApiServer
    session: aiohttp.ClientSession
    url: str
    clock: Clock

    async def ask(self, method: str, path: str, body: Any = None, *, media: str = JSON, **headers: str) -> Answer:
        token = self.server.tokens.by_name["admin"]
        sent = {"Authorization": f"Bearer {token}", "Content-Type": media, **headers}
        text = body if isinstance(body, str) else json.dumps(body)
        data = None if body is None else io.BytesIO(text.encode())
        async with self.session.request(method, self.url + path, data=data, headers=sent) as response:
            text = await response.text()
            try:
                return Answer(response.status, json.loads(text), response.headers)
            except json.JSONDecodeError:
                return Answer(response.status, text, response.headers)

    async def make(self, path: str, body: Any) -> Any:
        answer = await self.ask("POST", path, body)
        assert answer.status == 201, answer.body
        return answer.body

    async def config_map(self, name: str, **metadata: Any) -> Any:
        path = "/api/v1/namespaces/default/configmaps"
        return await self.make(path, {"metadata": {"name": name, **metadata}, "data": {"k": "v"}})

    async def pod(self, name: str, node: str = "", **spec: Any) -> Any:
        made = await self.make("/api/v1/namespaces/default/pods", pod(name, **spec))
        if node:
            binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
            await self.make(f"/api/v1/namespaces/default/pods/{name}/binding", binding)
        return made


def pod(name: str, **spec: Any) -> Any:
    containers = [{"name": "app", "image": "registry.example/app:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


@pytest_asyncio.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    clock = Clock()
    server = ApiServer(
        tmp_path,
        Tokens.load_or_make(tmp_path / "tokens.json"),
        clock=clock,
        rng=random.Random(1),
        streams=StreamSettings(bookmark_seconds=0.2),
    )
    url = await server.start()
    trust = ssl.create_default_context(cadata=server.certificate.authority)
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
            yield Api(server, session, url, clock)
    finally:
        await server.stop()
