"""What one session and one address may hold at the same time, and what their requests may bring."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from grid.core.regexes import Expression
from grid.edge.limits import Bodies, RequestLimits, Shares
from grid.edge.refusals import Message, Receive, Scope, Send
from grid.edge.wrappers import SlowRefusals
from tests.edge.serving import refusals

Caplog = pytest.LogCaptureFixture
KIB = 2**10
USUAL = Shares()
UPLOADS = Expression("/files/upload/")


@dataclass
class Asked:
    """One request: what it sends, and what it was answered."""

    scope: dict[str, Any]
    messages: list[dict[str, Any]] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)

    async def receive(self) -> dict[str, Any]:
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])


def asked(
    *chunks: bytes, path: str = "/", cookie: str = "", headers: dict[str, str] | None = None, **scope: Any
) -> Asked:
    known = {**({"cookie": f"other=1; grid={cookie}"} if cookie else {}), **(headers or {})}
    if chunks:
        known.setdefault("transfer-encoding", "chunked")
    return Asked(
        {
            "type": "http",
            "method": "POST",
            "path": path,
            "client": ("10.0.0.1", 5),
            "headers": [(name.encode(), value.encode()) for name, value in known.items()],
            **scope,
        },
        [
            {"type": "http.request", "body": chunk, "more_body": number < len(chunks)}
            for number, chunk in enumerate(chunks, 1)
        ],
    )


@dataclass
class Waiting:
    """An application that notes what it is asked, and answers when it may."""

    bodies: list[bytes] = field(default_factory=list)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        self.bodies.append((await receive())["body"] if scope["type"] == "http" and scope["method"] == "POST" else b"")
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})


def at_once() -> Waiting:
    waiting = Waiting()
    waiting.may_answer.set()
    return waiting


async def is_known(session: str) -> bool:
    return session != "made-up"


def limited(application: Any, *, shares: Shares = USUAL, bodies: Bodies | None = None) -> RequestLimits:
    return RequestLimits(application, cookies=("grid",), shares=shares, bodies=bodies, holds=is_known)


async def status_of(application: RequestLimits, request: Asked) -> int:
    await application(request.scope, request.receive, request.send)
    return request.status


@pytest.mark.parametrize(
    ("cookie", "path", "size", "status"),
    [
        ("", "/launch/", 17 * KIB, 413),
        ("somebody", "/launch/", 17 * KIB, 200),
        ("somebody", "/login/", 17 * KIB, 413),
        ("somebody", "/launch/", 1025 * KIB, 413),
        ("somebody", "/files/upload/", 1025 * KIB, 200),
        ("somebody", "/files/upload/", 2049 * KIB, 413),
        ("", "/files/upload/", 17 * KIB, 413),
        ("made-up", "/files/upload/", 17 * KIB, 413),
        ("made-up", "/files/upload/", 15 * KIB, 200),
    ],
)
@pytest.mark.parametrize("is_declared", [True, False])
async def test_bodies_are_limited_by_path_and_session(
    cookie: str, path: str, size: int, status: int, is_declared: bool, caplog: Caplog
) -> None:
    inner = at_once()
    application = limited(inner, bodies=Bodies(paths={"/login/": 16 * KIB}, uploads=UPLOADS, upload=2048 * KIB))
    request = asked(b"a" * (size // 2), b"a" * (size - size // 2), path=path, cookie=cookie)
    if is_declared:
        request.scope["headers"][-1] = (b"content-length", str(size).encode())
    assert await status_of(application, request) == status
    assert [len(body) for body in inner.bodies] == ([size] if status == 200 else [])
    assert len(refusals(caplog.records)) == (status != 200)
    assert not is_declared or status == 200 or len(request.messages) == 2  # refused before a byte was read


async def test_slow_body_in_total_is_answered_408(caplog: Caplog) -> None:
    inner = at_once()
    request = asked(b"a", b"b", b"c")
    request.messages.pop()
    assert await status_of(limited(inner, bodies=Bodies(seconds=0.05)), request) == 408
    assert inner.bodies == [] and "value=2 of unknown" in refusals(caplog.records)[0]


SHARES = Shares(requests_of_session=2, requests_of_address=3, websockets_of_session=2, websockets_of_address=3)


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("held", "asks", "is_refused"),
    [
        (["a", "a"], "a", True),
        (["a", "a"], "b", False),
        (["a", "a"], "", False),
        (["a", "b", ""], "c", True),
        (["a", "b", ""], "", True),
    ],
)
async def test_a_session_and_an_address_have_their_share(
    kind: str, held: list[str], asks: str, is_refused: bool, caplog: Caplog
) -> None:
    inner = Waiting()
    application = limited(inner, shares=SHARES)
    extensions: dict[str, Any] = {"websocket.http.response": {}}

    def ask(cookie: str) -> Asked:
        return asked(cookie=cookie, type=kind, method="GET", extensions=extensions)

    async with asyncio.TaskGroup() as tasks:
        for cookie in held:
            tasks.create_task(status_of(application, ask(cookie)))
        while len(inner.bodies) < len(held):  # noqa: ASYNC110 - the application does not announce whom it serves
            await asyncio.sleep(0)
        request = ask(asks)
        asking = tasks.create_task(status_of(application, request))
        while not asking.done() and len(inner.bodies) <= len(held):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)
        inner.may_answer.set()
    assert request.status == (429 if is_refused else 200)
    assert len(refusals(caplog.records)) == is_refused
    if is_refused:
        prefix = "websocket." if kind == "websocket" else ""
        assert request.sent[0]["type"] == f"{prefix}http.response.start"
        assert (b"retry-after", b"5") in request.sent[0]["headers"]
    assert await status_of(application, ask(asks)) == 200  # what was held is given back


@asynccontextmanager
async def half_sent(application: RequestLimits, **about: Any) -> AsyncIterator[None]:
    """A request of whose body only the first half has come, until the block ends."""
    half = asked(b"a", b"b", **about)
    half.messages.pop()
    task = asyncio.create_task(status_of(application, half))
    while half.messages:  # noqa: ASYNC110 - nobody announces that its first byte was read
        await asyncio.sleep(0)
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_pending_bodies_count_in_the_share_of_address() -> None:
    application = limited(at_once(), shares=Shares(bodies_of_address=1), bodies=Bodies())
    async with half_sent(application):
        assert await status_of(application, asked(b"a")) == 429
    assert await status_of(application, asked(b"a")) == 200


UPLOAD = "/files/upload/"


@pytest.mark.parametrize("shares", [Shares(uploads=1), Shares(uploads_of_address=1)])
async def test_uploads_have_a_share_until_they_are_answered(shares: Shares) -> None:
    application = limited(at_once(), shares=shares, bodies=Bodies(uploads=UPLOADS))
    async with half_sent(application, path=UPLOAD, cookie="somebody"):
        assert await status_of(application, asked(b"a", path=UPLOAD, cookie="other")) == 429
        assert await status_of(application, asked(b"a", cookie="other")) == 200
    assert await status_of(application, asked(b"a", path=UPLOAD, cookie="other")) == 200


async def test_made_up_cookie_takes_no_share_of_uploads() -> None:
    application = limited(at_once(), shares=Shares(uploads=1), bodies=Bodies(uploads=UPLOADS))
    async with half_sent(application, path=UPLOAD, cookie="made-up"):
        assert await status_of(application, asked(b"a", path=UPLOAD, cookie="somebody")) == 200


@pytest.mark.parametrize(
    ("cookie", "path", "sentence"),
    [
        ("somebody", "/launch/", "This form takes no more than 1 MiB. Put large data into"),
        ("somebody", "/files/upload/", "one upload and its form take no more than 21 MiB together"),
        ("made-up", "/files/upload/", "Log in, and choose the files again"),
    ],
)
async def test_oversized_body_is_refused_with_an_alternative(cookie: str, path: str, sentence: str) -> None:
    application = limited(at_once(), bodies=Bodies(uploads=UPLOADS, upload=21 * 1024 * KIB))
    request = asked(path=path, cookie=cookie, headers={"content-length": "30000000"})
    assert await status_of(application, request) == 413
    assert sentence in request.sent[1]["body"].decode()


async def is_answered_at_once(status: int, path: str) -> bool:
    sent: list[Message] = []

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("nothing is asked for")

    scope: dict[str, Any] = {"type": "http", "path": path}
    answering = asyncio.ensure_future(SlowRefusals(answer, paths=["/login/"], seconds=60)(scope, receive, send))
    await asyncio.wait([answering], timeout=0.05)
    answering.cancel()
    return len(sent) == 2


@pytest.mark.parametrize(
    ("status", "path", "at_once"),
    [
        (429, "/login/", False),
        (503, "/login/", False),
        (200, "/login/", True),
        (302, "/login/", True),
        (503, "/readyz", True),
    ],
)
async def test_only_refused_password_attempts_have_to_wait(status: int, path: str, at_once: bool) -> None:
    assert await is_answered_at_once(status, path) is at_once
