"""The refusal of a request: its status, a sentence for the person, and one line of log."""

import html
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

logger = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

_TRY_AGAIN_LATER = 1013  # close code of a websocket
_VIOLATES_POLICY = 1008


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused: `reason` is for the log, `sentence` for the person; `retry_after` is in seconds, 0 for never."""

    status: HTTPStatus
    reason: str
    sentence: str
    retry_after: int = 0

    def answer(self) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Return the headers and a small page."""
        title = html.escape(self.status.phrase)
        body = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
            f'<meta name="color-scheme" content="light dark"><h1>{title}</h1><p>{html.escape(self.sentence)}</p></html>'
        ).encode()
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
        ]
        if self.retry_after:
            headers.append((b"retry-after", str(self.retry_after).encode()))
        return headers, body

    def as_http(self) -> bytes:
        """Return the whole HTTP/1.1 answer, after which the connection is closed."""
        headers, body = self.answer()
        lines = [name + b": " + value + b"\r\n" for name, value in [*headers, (b"connection", b"close")]]
        return b"".join([f"HTTP/1.1 {self.status} {self.status.phrase}\r\n".encode(), *lines, b"\r\n", body])

    def log(self, *, client: str, asked: str, value: str = "") -> None:
        """Log the refusal; `asked` is the method and path, `value` what was wrong."""
        wrong = f" value={cleaned(value)}" if value else ""
        words = "refused status=%d reason=%s asked=%s client=%s%s"
        logger.warning(words, self.status, self.reason, cleaned(asked), cleaned(client), wrong)


def header(scope: Scope, name: bytes, *, joint: bytes = b", ") -> str:
    """Return the values of a header, joined as HTTP says; `name` is in lower case, as names in a scope are."""
    values = [value for key, value in scope["headers"] if key == name]
    return joint.join(values).decode("latin-1") if values else ""


async def refuse(scope: Scope, send: Send, refusal: Refusal, *, value: str = "") -> None:
    """Log the refusal and answer a request, or a websocket that is not accepted yet."""
    client = (scope.get("client") or ("", 0))[0]
    refusal.log(client=client, asked=f"{scope.get('method', 'websocket')} {scope['path']}", value=value)
    kind = "http.response"
    if scope["type"] == "websocket":
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            code = _TRY_AGAIN_LATER if refusal.retry_after else _VIOLATES_POLICY
            await send({"type": "websocket.close", "code": code})
            return
        kind = "websocket.http.response"
    headers, body = refusal.answer()
    await send({"type": f"{kind}.start", "status": int(refusal.status), "headers": headers})
    await send({"type": f"{kind}.body", "body": body if scope.get("method") != "HEAD" else b""})


def cleaned(value: str, most: int = 100) -> str:
    """Return `value` with control characters escaped, which could forge log lines, and cut after `most` characters."""
    start = value[:most]
    if not start.isprintable():
        # ascii() needs no codec lookup, which fails while the interpreter shuts down.
        start = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in start)
    return start if len(value) <= most else f"{start}… ({len(value)} characters)"
