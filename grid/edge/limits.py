"""An ASGI wrapper that limits what one session and one address hold at the same time, and the size of request bodies.

Bodies are read whole into memory before the application begins. Django would write a body to a temporary file and hold a request while it
waits, so an upload that never ends would cost a file and a task. Here it costs at most its limit, for a limited time, and the application
sees only what has arrived.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http import HTTPStatus

from django.http import parse_cookie

from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.edge.connections import Counts, client_key
from grid.edge.refusals import Application, Message, Receive, Refusal, Scope, Send, header, refuse

KIB, MIB = 2**10, 2**20
Key = tuple[str, str, str]  # what is counted, the kind of holder, the holder


@dataclass(frozen=True, slots=True)
class Bodies:
    """The largest bodies in bytes: without a session, on particular paths, on those where programs post without a session, otherwise, and
    of uploads of files, which are the paths that match `uploads`; and the seconds in which a body, and an upload, must arrive."""

    anonymous: int = 16 * KIB
    paths: Mapping[str, int] = field(default_factory=dict)
    posts: Mapping[str, int] = field(default_factory=dict)
    others: int = MIB
    seconds: float = 30.0
    uploads: Expression | None = None
    upload: int = MIB
    upload_seconds: float = 120.0

    def is_upload(self, path: str, *, is_anonymous: bool) -> bool:
        return not is_anonymous and self.is_for_uploads(path)

    def is_for_uploads(self, path: str) -> bool:
        return self.uploads is not None and self.uploads.fullmatch(path) is not None

    def too_large(self, path: str, *, is_anonymous: bool) -> Refusal:
        """Return what is answered to a body beyond `most`."""
        most = self.most(path, is_anonymous=is_anonymous)
        size = f"{most // MIB} MiB" if most >= MIB else f"{most // KIB} KiB"
        if not self.is_for_uploads(path):
            sentence = _(
                "This form takes no more than {size}. Put large data into your project's files, and name their path instead."
            )
        elif is_anonymous:
            sentence = _(
                "Nothing was saved: you are not logged in, or your session has ended. Log in, and choose the files again."
            )
        else:
            sentence = _(
                "Nothing was saved: all files of one upload and its form take no more than {size} together. Upload fewer at a time, and "
                "have a workspace or job write large ones into the project."
            )
        return Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", sentence.format(size=size))

    def most(self, path: str, *, is_anonymous: bool) -> int:
        if self.is_upload(path, is_anonymous=is_anonymous):
            return self.upload
        if path in self.posts:
            return self.posts[path]
        usual = self.anonymous if is_anonymous else self.others
        return min(usual, self.paths.get(path, usual))


@dataclass(frozen=True, slots=True)
class Shares:
    """How many may be open at the same time. An address may be a whole office behind one router."""

    requests_of_session: int = 64
    requests_of_address: int = 256
    websockets_of_session: int = 100
    websockets_of_address: int = 1000
    bodies_of_address: int = 16  # those still arriving, each in memory
    uploads: int = 4  # of all people, until they are answered: each is in memory three times
    uploads_of_address: int = 2


class BodyRefused(Exception):
    """A request whose body is too large or too late, or for which too many others are open."""

    def __init__(self, refusal: Refusal, value: str = "") -> None:
        super().__init__(refusal.reason)
        self.refusal, self.value = refusal, value


class Gone(Exception):
    """The client has closed the connection."""


@dataclass(eq=False)
class RequestLimits:
    """Limits requests, websockets and bodies. `cookies` are the names of session cookies; without `bodies`, bodies stream through, for
    the application to bound. `holds` says before an upload whether somebody is logged in with the session of that cookie; it may raise
    BodyRefused."""

    application: Application
    cookies: tuple[str, ...]
    bodies: Bodies | None = None
    shares: Shares = field(default_factory=Shares)
    holds: Callable[[str], Awaitable[bool]] | None = None
    _open: Counts = field(default_factory=Counts, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.application(scope, receive, send)
            return
        session = self._session(scope)
        address = client_key((scope.get("client") or ("", 0))[0])
        try:
            with self._shares_of(scope["type"], session, address):
                if self.bodies is None or scope["type"] != "http" or not _has_body(scope):
                    await self.application(scope, receive, send)
                elif self.bodies.is_upload(scope["path"], is_anonymous=not session):
                    await self._upload(self.bodies, scope, receive, send, session, address)
                else:
                    receive = await self._body(self.bodies, scope, receive, address, is_anonymous=not session)
                    await self.application(scope, receive, send)
        except BodyRefused as refused:
            await refuse(scope, send, refused.refusal, value=refused.value)
        except Gone:
            return

    async def _upload(
        self, bodies: Bodies, scope: Scope, receive: Receive, send: Send, session: str, address: str
    ) -> None:
        """Let an upload through. Anybody can send a cookie, so what all people share is taken for sessions that hold alone."""
        with self._within((("upload", "address", address), self.shares.uploads_of_address)):
            if self.holds is None or await self.holds(session):
                with self._within((("upload", "process", ""), self.shares.uploads)):
                    receive = await _read(bodies, scope, receive, bodies.upload_seconds, is_anonymous=False)
                    await self.application(scope, receive, send)
                return
        receive = await self._body(bodies, scope, receive, address, is_anonymous=True)
        await self.application(scope, receive, send)

    async def _body(
        self, bodies: Bodies, scope: Scope, receive: Receive, address: str, *, is_anonymous: bool
    ) -> Receive:
        with self._within((("body", "address", address), self.shares.bodies_of_address)):
            return await _read(bodies, scope, receive, bodies.seconds, is_anonymous=is_anonymous)

    def _session(self, scope: Scope) -> str:
        if not (text := header(scope, b"cookie", joint=b"; ")):
            return ""
        cookies = parse_cookie(text)
        return next((cookies[name] for name in self.cookies if cookies.get(name)), "")

    def _shares_of(self, kind: str, session: str, address: str) -> AbstractContextManager[None]:
        shares = self.shares
        of_session, of_address = shares.requests_of_session, shares.requests_of_address
        if kind == "websocket":
            of_session, of_address = shares.websockets_of_session, shares.websockets_of_address
        wanted = [((kind, "address", address), of_address)]
        if session:
            wanted.append(((kind, "session", session), of_session))
        return self._within(*wanted)

    def _within(self, *wanted: tuple[Key, int]) -> AbstractContextManager[None]:
        for key, most in wanted:
            if self._open.get(key, 0) >= most:
                raise BodyRefused(_too_many(key[0], key[1], most), value=f"{most} open")
        return self._open.held([key for key, _ in wanted])


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


async def _read(bodies: Bodies, scope: Scope, receive: Receive, seconds: float, *, is_anonymous: bool) -> Receive:
    """Return a `receive` that replays the whole body. Raise BodyRefused when it is too late or large, Gone when the client is."""
    most, declared = bodies.most(scope["path"], is_anonymous=is_anonymous), header(scope, b"content-length")
    too_large = bodies.too_large(scope["path"], is_anonymous=is_anonymous)
    if declared.isdecimal() and int(declared[:20]) > most:
        raise BodyRefused(too_large, value=declared)
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > most:
                    raise BodyRefused(too_large, value=f"{len(body)} and more")
    except TimeoutError:
        sentence = _(
            "The form did not arrive within {seconds:g} seconds. Check your connection, go back and send it again."
        )
        too_late = Refusal(HTTPStatus.REQUEST_TIMEOUT, "body-too-late", sentence.format(seconds=seconds))
        raise BodyRefused(too_late, value=f"{len(body)} of {declared or 'unknown'}") from None
    whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def replay() -> Message:
        return whole.pop() if whole else await receive()

    return replay


_ADVICE = _("Close tabs that you do not need, wait a few seconds and try again.")


def _too_many(kind: str, holder: str, most: int) -> Refusal:
    limit = {
        "http": _("{most} requests are being answered {where} already, which is the limit."),
        "websocket": _("{most} websockets are open {where} already, which is the limit."),
        "body": _("{most} forms are arriving {where} already, which is the limit."),
        "upload": _("{most} uploads are arriving {where} already, which is the limit."),
    }[kind]
    where = {
        "session": _("in your session"),
        "address": _("from your address"),
        "process": _("from all people together"),
    }[holder]
    reason, sentence = f"too-many-{kind}-of-{holder}", f"{limit.format(most=most, where=where)} {_ADVICE}"
    return Refusal(HTTPStatus.TOO_MANY_REQUESTS, reason, sentence, retry_after=5)
