"""uvicorn's HTTP protocol with limits of time and size; uvicorn alone waits for ever for the rest of a request and keeps what came.

A refused request is answered, and its connection lingers for a short time: if it were closed with unread bytes in it, the kernel would
reset it and the client would not see the answer.
"""

import asyncio
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from grid.core.translation import gettext as _
from grid.edge.connections import Connections
from grid.edge.refusals import Refusal

_LATE = HTTPStatus.REQUEST_TIMEOUT
_HEAD_LATE = Refusal(
    _LATE, "head-too-late", _("The request did not arrive in time. Check your connection and try again.")
)
_BODY_IDLE = Refusal(
    _LATE, "body-stopped", _("The rest of the request did not come. Check your connection and send it again.")
)
_URL_LONG = Refusal(
    HTTPStatus.REQUEST_URI_TOO_LONG, "url-too-long", _("This address is too long. Shorten the search or filter in it.")
)
_HEAD_LONG = Refusal(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    "head-too-large",
    _("The request's headers are too large. Delete the browser's cookies for this address, and log in again."),
)
_MALFORMED = Refusal(HTTPStatus.BAD_REQUEST, "malformed", _("This is not a request that this server understands."))
_PIPELINED = Refusal(
    HTTPStatus.TOO_MANY_REQUESTS, "too-many-waiting", _("Too many requests were sent before the first was answered."), 1
)
_UNREAD = Refusal(_LATE, "answer-not-read", _("The answer was not read in time."))


class LimitedHttp(HttpToolsProtocol):  # type: ignore[misc] # uvicorn's types are not followed
    """One connection of a client."""

    def __init__(self, *, guard: Connections, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._guard = guard
        self._limits = guard.limits
        self._head_since: float | None = None  # when the wait for the present head began
        self._head_bytes = 0
        self._held_bytes = 0  # in the parser, which reports a header or trailer only at its end
        self._begun = False  # a part of this head was received
        self._in_body = False
        self._received_at = 0.0
        self._answered_at = 0.0
        self._unread_since: float | None = None  # since when the client has not read our output
        self._closing_since: float | None = None
        self._lingering_since: float | None = None
        self._refusal: Refusal | None = None  # found by a callback of the parser, sent when the callback has returned

    # --- asyncio's callbacks ---

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._head_since = self.loop.time()
        refusal = self._guard.enter(transport, self, self._address())
        if refusal is not None:
            self._answer(refusal)
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.leave(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._lingering_since is not None or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        self._received_at = self.loop.time()
        if self._head_since is None and not self._in_body:
            self._head_since = self._received_at
        self._begun = True
        self._held_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
            return
        except httptools.HttpParserError:
            self._refuse(self._refusal or _MALFORMED)
            return
        if self._held_bytes > self._limits.head_bytes + self._limits.url_bytes:
            self._refuse(_HEAD_LONG)

    def pause_writing(self) -> None:
        self._unread_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._unread_since = None
        super().resume_writing()

    # --- the parser's callbacks ---

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = self._held_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._limits.url_bytes:
            self._stop_parsing(_URL_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        name, value = self.headers[-1]
        self._head_bytes += len(name) + len(value) + 4
        if len(self.headers) > self._limits.headers or self._head_bytes > self._limits.head_bytes:
            self._stop_parsing(_HEAD_LONG)

    def on_headers_complete(self) -> None:
        self._head_since, self._begun, self._in_body, self._held_bytes = None, False, True, 0
        super().on_headers_complete()
        if len(self.pipeline) > self._limits.waiting_requests:
            self._stop_parsing(_PIPELINED)

    def on_body(self, body: bytes) -> None:
        self._held_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._answered_at = self.loop.time()
        super().on_response_complete()

    def _stop_parsing(self, refusal: Refusal) -> None:
        self._refusal = refusal
        raise ValueError(refusal.reason)  # the parser gives up, with an error of its own

    # --- uvicorn's own ---

    def handle_websocket_upgrade(self) -> None:
        """Upgrade as uvicorn does, but refuse heads that its websocket protocol cannot read: they would stay open, or raise in it."""
        if not self.url.isascii():
            self._refuse(_MALFORMED)
            return
        self.connections.discard(self)
        head = [f"{self.scope['method']} ".encode(), self.url, f" HTTP/{self.scope['http_version']}\r\n".encode()]
        for name, value in self.scope["headers"]:
            head += [name, b": ", value, b"\r\n"]
        websocket = self.ws_protocol_class(config=self.config, server_state=self.server_state, app_state=self.app_state)
        websocket.connection_made(self.transport)
        self.transport.set_protocol(websocket)
        websocket.data_received(b"".join([*head, b"\r\n"]))

    def shutdown(self) -> None:
        if self._lingering_since is not None:
            self.transport.close()
            return
        super().shutdown()

    # --- refusing ---

    def cut_if_late(self, now: float) -> None:
        limits = self._limits
        if self.transport.is_closing():
            # The client may never read what is left to send, and asyncio would wait for it.
            self._closing_since = self._closing_since or now
            if now - self._closing_since > limits.send_seconds:
                self.transport.abort()
        elif self._lingering_since is not None:
            if now - self._lingering_since > limits.linger_seconds:
                self.transport.close()
        elif self._unread_since is not None:
            if now - self._unread_since > limits.send_seconds:
                _UNREAD.log(client=self._address(), asked=self._asked())
                self.transport.abort()
        elif self._in_body:
            self._cut_body_if_late(now)
        elif self._head_since is not None and now - self._head_since > limits.head_seconds and not self._is_answering():
            if self._begun:
                self._refuse(_HEAD_LATE)
            else:
                self.transport.close()  # an idle connection that a browser opened in advance

    def _cut_body_if_late(self, now: float) -> None:
        cycle = self.cycle
        if cycle is not None and cycle.response_complete:
            # The answer, mostly a refusal, did not need the rest. Let the client read it before the connection closes.
            if now - self._answered_at > self._limits.linger_seconds:
                self.transport.close()
            return
        waits_for_us = self.flow.read_paused or (cycle is not None and cycle.waiting_for_100_continue)
        if not waits_for_us and now - self._received_at > self._limits.body_idle_seconds:
            self._refuse(_BODY_IDLE)

    def _refuse(self, refusal: Refusal) -> None:
        """Answer with the refusal unless an answer has begun, and read no more from this connection."""
        is_answering = self._is_answering()
        if is_answering:
            cycle = self.cycle
            cycle.disconnected = True  # the application may be waiting for the rest, or writing what nobody will read
            cycle.message_event.set()
        if is_answering and (self.pipeline or self.cycle.response_started or not self._in_body):
            refusal.log(client=self._address(), asked=self._asked())
            self.transport.close()
            return
        self._answer(refusal)
        self._lingering_since = self.loop.time()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _answer(self, refusal: Refusal) -> None:
        refusal.log(client=self._address(), asked=self._asked())
        self.transport.write(refusal.as_http())

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _asked(self) -> str:
        if self.scope is None:
            return "nothing"
        return f"{self.scope.get('method', '')} {self.url.decode('latin-1')}".strip() or "nothing"
