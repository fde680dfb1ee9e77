"""People in front of the dashboard: their clients, and the text of the pages that they get."""

import zlib
from typing import Any

from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client

from grid.models import Execution, User


def client_of(user: User, **options: Any) -> Client:
    """Logged in."""
    client = Client(**options)
    client.force_login(user)
    return client


def page_at(user: User, path: str, **query: str) -> str:
    answer = client_of(user).get(path, query or None)
    assert answer.status_code == 200, path
    return str(answer.content.decode())


def execution_page(user: User, execution: Execution, rest: str = "") -> str:
    return page_at(user, f"/executions/{execution.pk}/{rest}")


def downloaded(user: User, path: str) -> tuple[Any, bytes]:
    """Return the answer and its whole body, as a browser that takes gzip gets it; the body may come in pieces."""
    client = AsyncClient()
    client.force_login(user)

    async def whole() -> tuple[Any, bytes]:
        answer: Any = await client.get(path, headers={"accept-encoding": "gzip"})
        pieces = [piece async for piece in answer.streaming_content] if answer.streaming else [answer.content]
        body = b"".join(pieces)
        # Browsers take the first of several compressed files.
        return answer, zlib.decompressobj(31).decompress(body) if answer.get("Content-Encoding") == "gzip" else body

    return async_to_sync(whole)()
