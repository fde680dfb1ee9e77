"""An ASGI wrapper that limits what one session and one address hold at the same time, and the size of request bodies."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http import HTTPStatus

from django.http import parse_cookie

from grid.core.translation import gettext as _
from grid.edge.addresses import client_key
from grid.edge.bodies import Bodies, BodyRefused, Gone, has_body, read_body
from grid.edge.counts import Counts
from grid.edge.refusals import Application, Receive, Refusal, Scope, Send, refuse

_RETRY_SECONDS = 5
Key = tuple[str, str, str]  # what is counted, the kind of holder, the holder


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


class RequestLimits:
    """Limits requests, websockets and bodies. `cookies` are the names of session cookies; without `bodies`, bodies stream through, for
    the application to bound. `holds` says before an upload whether somebody is logged in with the session of that cookie; it may raise
    BodyRefused."""

    def __init__(
        self,
        application: Application,
        *,
        cookies: tuple[str, ...],
        bodies: Bodies | None = None,
        shares: Shares = Shares(),
        holds: Callable[[str], Awaitable[bool]] | None = None,
    ) -> None:
        self._application = application
        self._cookies = cookies
        self._bodies = bodies
        self._shares = shares
        self._holds = holds
        self._open = Counts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        session = self._session(scope)
        address = client_key((scope.get("client") or ("", 0))[0])
        try:
            with self._shares_of(scope["type"], session, address):
                if self._bodies is None or scope["type"] != "http" or not has_body(scope):
                    await self._application(scope, receive, send)
                elif self._bodies.is_upload(scope["path"], is_anonymous=not session):
                    await self._upload(scope, receive, send, session=session, address=address)
                else:
                    receive = await self._body(scope, receive, address=address, is_anonymous=not session)
                    await self._application(scope, receive, send)
        except BodyRefused as refused:
            await refuse(scope, send, refused.refusal, value=refused.value)
        except Gone:
            return

    async def _upload(self, scope: Scope, receive: Receive, send: Send, *, session: str, address: str) -> None:
        """Let an upload through. Anybody can send a cookie, so what all people share is taken for sessions that hold alone."""
        assert self._bodies is not None
        with self._within((("upload", "address", address), self._shares.uploads_of_address)):
            if self._holds is None or await self._holds(session):
                with self._within((("upload", "process", ""), self._shares.uploads)):
                    receive = await self._read(scope, receive, self._bodies.upload_seconds, is_anonymous=False)
                    await self._application(scope, receive, send)
                return
        receive = await self._body(scope, receive, address=address, is_anonymous=True)
        await self._application(scope, receive, send)

    async def _body(self, scope: Scope, receive: Receive, *, address: str, is_anonymous: bool) -> Receive:
        assert self._bodies is not None
        with self._within((("body", "address", address), self._shares.bodies_of_address)):
            return await self._read(scope, receive, self._bodies.seconds, is_anonymous=is_anonymous)

    async def _read(self, scope: Scope, receive: Receive, seconds: float, *, is_anonymous: bool) -> Receive:
        assert self._bodies is not None
        most = self._bodies.most(scope["path"], is_anonymous=is_anonymous)
        too_large = self._bodies.too_large(scope["path"], is_anonymous=is_anonymous)
        return await read_body(scope, receive, most=most, seconds=seconds, too_large=too_large)

    def _session(self, scope: Scope) -> str:
        values = (value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie")
        cookies = parse_cookie("; ".join(values))
        return next((cookies[name] for name in self._cookies if cookies.get(name)), "")

    def _shares_of(self, kind: str, session: str, address: str) -> AbstractContextManager[None]:
        shares = self._shares
        of_session, of_address = (
            (shares.requests_of_session, shares.requests_of_address)
            if kind == "http"
            else (shares.websockets_of_session, shares.websockets_of_address)
        )
        wanted = [((kind, "address", address), of_address)]
        if session:
            wanted.append(((kind, "session", session), of_session))
        return self._within(*wanted)

    @contextmanager
    def _within(self, *wanted: tuple[Key, int]) -> Iterator[None]:
        for key, most in wanted:
            if self._open[key] >= most:
                raise BodyRefused(_too_many(key[0], key[1], most), value=f"{most} open")
        with self._open.held(*(key for key, _ in wanted)):
            yield


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
    return Refusal(HTTPStatus.TOO_MANY_REQUESTS, reason, sentence, retry_after=_RETRY_SECONDS)
