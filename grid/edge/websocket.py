"""uvicorn's websocket protocol, for clients that break the rules: some of what they send raises in uvicorn's own.

What uvicorn logs of each websocket goes to a logger of our own, because it writes the whole address at every connection.
"""

import asyncio
import logging
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from grid.core.translation import gettext as _
from grid.edge.connections import Connections
from grid.edge.refusals import Message, Refusal

logger = logging.getLogger(__name__)

_INVALID_TEXT = 1007
_NO_HANDSHAKE = Refusal(HTTPStatus.BAD_REQUEST, "no-handshake", _("This is not the handshake of a websocket."))
_TOO_EARLY = Refusal(HTTPStatus.BAD_REQUEST, "too-early", _("Data came before the websocket was accepted."))
_MALFORMED = Refusal(
    HTTPStatus.BAD_REQUEST, "malformed", _("This is not a valid websocket message, or it is too large.")
)
_UNREAD = Refusal(HTTPStatus.REQUEST_TIMEOUT, "messages-not-read", _("The messages were not read in time."))
_TOO_MUCH = Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE, "messages-half-sent", _("Too much is being sent here at the same time.")
)


class LimitedWebSocket(WebSocketsSansIOProtocol):  # type: ignore[misc] # uvicorn's types are not followed
    """One websocket of a client."""

    frames: list[bytes | bytearray]  # the arriving message's first frame, and one buffer for its continuations

    def __init__(self, *, guard: Connections, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.logger = self.conn.logger = logger
        self._guard = guard
        self._unread_since: float | None = None
        self._closing_since: float | None = None
        self._arriving = 0  # bytes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._guard.enter(transport, self, "")

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.leave(self.transport)
        self._count_arriving(0)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self.handshake_initiated and not self.handshake_complete:
            self._cut(_TOO_EARLY)
            return
        is_begin = not self.handshake_initiated
        self.conn.receive_data(data)
        if self.conn.parser_exc is not None:
            self._give_up(str(self.conn.parser_exc))
            return
        self.handle_events()
        if not self.handshake_initiated:
            # Our HTTP parser took this head and this one did not; it waits for the end of the connection.
            self._cut(_NO_HANDSHAKE, str(self.conn.handshake_exc or ""))
        elif is_begin and self.conn.handshake_exc is not None:
            answered = replace(_NO_HANDSHAKE, status=HTTPStatus(self.response.status_code))
            self._log(answered, str(self.conn.handshake_exc))
        self._count_arriving(len(self.conn.reader.buffer) + sum(map(len, self.frames)))
        if self._guard.arriving > self._guard.limits.arriving_bytes:
            self._cut(_TOO_MUCH, f"{self._guard.arriving} bytes")

    def _count_arriving(self, now: int) -> None:
        """Update the server's count of arriving bytes: each message has its own limit, but a client may leave very many half-sent."""
        self._guard.arriving += now - self._arriving
        self._arriving = now

    def handle_cont(self, event: Frame) -> None:
        """Append a fragment to one buffer: fragments kept apart take more than their bytes, and nothing bounds the number of empty ones."""
        if len(self.frames) < 2:
            self.frames.append(bytearray())
        self.frames[1] += event.data
        if event.fin:
            self.frames = [b"".join(self.frames)]
            self.send_receive_event_to_app()

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text" and not self.close_sent:
            # uvicorn would log a traceback for invalid text.
            try:
                self.frames[0].decode()
            except UnicodeDecodeError as error:
                self.frames = []
                self.conn.fail(_INVALID_TEXT)
                self._give_up(str(error))
                return
        super().send_receive_event_to_app()

    async def receive(self) -> Message:
        message: Message = await super().receive()
        self._stay_paused()
        return message

    async def send(self, message: Message) -> None:
        """Send it. Raise OSError when the websocket was closed meanwhile, for example because the client answers no ping."""
        if self.close_sent and message["type"] == "websocket.send":
            raise ClientDisconnected
        await super().send(message)
        self._stay_paused()
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True  # else uvicorn logs that the application has not answered

    def pause_writing(self) -> None:
        """Stop reading until the client reads: each of its pings would add an answer to what waits for it."""
        self._unread_since = self.loop.time()
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self._unread_since = None
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()

    def _stay_paused(self) -> None:
        """Pause reading again: uvicorn resumes as soon as the application does, whether the client reads or not."""
        if self._unread_since is not None:
            self.transport.pause_reading()

    def keepalive_timeout(self) -> None:
        """Close a silent client. A ping may wait behind data that the client still reads, and its answer behind data that the
        application still takes: neither is silence, and the sweep closes a client that reads nothing."""
        if self._unread_since is None and not self.read_paused:
            super().keepalive_timeout()
            return
        self.pong_timer = self.pending_ping_payload = None
        self.schedule_ping()

    def cut_if_late(self, now: float) -> None:
        send_seconds = self._guard.limits.send_seconds
        if self.transport.is_closing():
            self._closing_since = self._closing_since or now
            if now - self._closing_since > send_seconds:
                self.transport.abort()
        elif self._unread_since is not None and now - self._unread_since > send_seconds:
            self._cut(_UNREAD)

    def _give_up(self, error: str) -> None:
        """Close with the code that fits the error, or abort when the websocket had not begun."""
        self._log(_MALFORMED, error)
        if self.conn.close_sent is None:
            self.transport.abort()
        else:
            self.handle_parser_exception()

    def _cut(self, refusal: Refusal, value: str = "") -> None:
        self._log(refusal, value)
        if not self.handshake_initiated:
            self.transport.write(refusal.as_http())
            self.transport.close()
        else:
            self.transport.abort()

    def _log(self, refusal: Refusal, value: str = "") -> None:
        path = self.scope["path"] if self.handshake_initiated and hasattr(self, "scope") else ""
        refusal.log(client=self.client[0] if self.client else "", asked=f"websocket {path}", value=value)
