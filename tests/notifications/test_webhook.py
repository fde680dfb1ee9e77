"""Letters and posts through real servers that take them, fail, hang and lie: what they say, what arrives, and where nothing goes."""

import asyncio
import hashlib
import hmac
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from aiohttp import web
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from pytest_django.fixtures import Settings

from grid.core.egress import may_be_called, read_blocks
from grid.models import NotificationEvent
from grid.notifications.letters import SENT, TEST, SendResult, mail_text, subject, webhook_body, what_of
from grid.notifications.sender import SIGNATURE, Mailer, Poster, send
from tests.support.golden import assert_golden
from tests.support.http_server import Answer, Certificate, certificate, serving
from tests.support.ports import free_ports


def payload(**changes: Any) -> dict[str, Any]:
    return {
        "event": "failed",
        "execution": "abc",
        "kind": "job",
        "title": "Train",
        "sentence": "It ended with exit code 1. Look at its log.",
        "path": "/executions/abc/",
        "at": "2026-03-04T09:00:00+00:00",
    } | changes


LOOPBACK, _ = read_blocks("", ["127.0.0.0/8", "::1/128"])
MESSAGE = UUID(int=7)
ORIGIN = "https://grid.example.com"
BODY = webhook_body(payload(), MESSAGE, ORIGIN)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(Path(tmp_path_factory.mktemp("tls")))


@pytest_asyncio.fixture
async def poster(tls: Certificate) -> AsyncIterator[Callable[..., Poster]]:
    made = []

    def make(*, seconds: float = 5.0, allowed: bool = True, trusts: ssl.SSLContext | None = tls.client) -> Poster:
        made.append(Poster(LOOPBACK if allowed else (), tls=trusts, seconds=seconds))
        return made[-1]

    yield make
    for poster in made:
        poster.close()


async def post(poster: Poster, url: str) -> SendResult:
    return await poster.post(url, "secret", BODY, event="failed", message=str(MESSAGE))


def answering(status: int, **headers: str) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers=headers)

    return answer


async def test_post_is_signed_and_says_what_why_and_where(poster: Callable[..., Poster], tls: Certificate) -> None:
    async with serving(answering(204), tls=tls.server) as server:
        assert await post(poster(), f"{server.url}/hook?room=1") == SENT
    request, body = server.seen[0], server.bodies[0]
    expected = hmac.new(b"secret", body, hashlib.sha256).hexdigest()
    assert request.headers[SIGNATURE] == f"sha256={expected}"
    assert (request.method, request.path_qs) == ("POST", "/hook?room=1")
    assert request.headers["X-Compute-Grid-Event"] == "failed"
    assert request.headers["X-Compute-Grid-Delivery"] == str(MESSAGE)
    posted = json.loads(body)
    assert (posted["what"], posted["why"]) == ("Train has failed", payload()["sentence"])
    assert posted["url"] == "https://grid.example.com/executions/abc/"
    assert posted["next"]


@pytest.mark.parametrize(("status", "is_final"), [(500, False), (404, False), (410, True)])
async def test_refusal_is_told(poster: Callable[..., Poster], tls: Certificate, status: int, is_final: bool) -> None:
    async with serving(answering(status), tls=tls.server) as server:
        result = await post(poster(), server.url)
    assert result == SendResult(f"127.0.0.1 answered with status {status}.", is_final)


@pytest.mark.parametrize("status", [301, 307])
async def test_no_redirect_is_followed(poster: Callable[..., Poster], tls: Certificate, status: int) -> None:
    async with serving(answering(200), tls=tls.server) as other:
        async with serving(answering(status, Location=f"{other.url}/"), tls=tls.server) as server:
            result = await post(poster(), server.url)
        assert not other.seen
    assert result.is_final
    assert f"redirects ({status})" in result.error


async def test_hanging_or_dripping_server_is_abandoned_in_time(poster: Callable[..., Poster], tls: Certificate) -> None:
    async def hang(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(60)
        return web.Response()

    async with serving(hang, tls=tls.server) as server:
        result = await post(poster(seconds=0.3), server.url)
    assert result == SendResult("127.0.0.1 did not answer within 0 seconds.")


async def test_a_long_answer_is_not_read(poster: Callable[..., Poster], tls: Certificate) -> None:
    async def flood(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b"x" * 65536)

    async with serving(flood, tls=tls.server) as server:
        assert await post(poster(), server.url) == SENT


async def test_untrusted_certificate_gets_no_post(poster: Callable[..., Poster], tls: Certificate) -> None:
    async with serving(answering(200), tls=tls.server) as server:
        result = await post(poster(trusts=None), server.url)
        assert not server.seen
    assert result.error == "127.0.0.1 cannot be reached: its certificate is not valid."


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]"])
async def test_private_address_is_never_called(poster: Callable[..., Poster], tls: Certificate, host: str) -> None:
    async with serving(answering(200), tls=tls.server) as server:
        result = await post(poster(allowed=False), server.url.replace("127.0.0.1", host))
        assert not server.seen
    assert not result.is_sent
    # The library refuses numbers that it takes for neither a name nor an address.
    assert (
        "private or excepted address" if host[0] in "l[" or host.count(".") == 3 else "cannot be reached"
    ) in result.error


async def test_name_is_checked_at_the_address_actually_called(
    poster: Callable[..., Poster], tls: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = []

    def rebinding(host: str, port: int, *args: object, **kwargs: object) -> list[object]:
        looked_up.append(host)
        address = "93.184.216.34" if len(looked_up) > 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    async with serving(answering(200), tls=tls.server) as server:
        monkeypatch.setattr(socket, "getaddrinfo", rebinding)
        result = await post(poster(allowed=False), server.url.replace("127.0.0.1", "rebind.example.com"))
        assert not server.seen
    assert "leads to a private or excepted address" in result.error
    assert looked_up == ["rebind.example.com"], "and it is not asked again"


async def test_missing_address_and_closed_port_are_distinguished(poster: Callable[..., Poster]) -> None:
    assert (
        await post(poster(), "https://no-such.invalid/")
    ).error == "no-such.invalid cannot be reached: its name leads to no address."
    assert (await post(poster(), "https://127.0.0.1:9/")).error == "127.0.0.1 cannot be reached: connection refused."


@pytest.mark.parametrize(
    "address",
    [
        *("10.0.0.1", "172.16.3.4", "192.168.1.1", "127.0.0.1", "169.254.1.1", "100.64.0.1", "0.0.0.0", "224.0.0.1"),
        *("255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"),
        *("::7f00:1", "::a9fe:a9fe", "::ffff:0:7f00:1", "fec0::1"),
        *("169.254.169.254", "fd00:ec2::254", "168.63.129.16", "ff02::1", "2002:7f00:1::", "localhost", ""),
    ],
)
def test_address_that_is_not_public_is_not_called(address: str) -> None:
    assert not may_be_called(address, ())


def test_admin_allows_private_addresses_but_never_metadata_services() -> None:
    allowed, mistakes = read_blocks("GRID_WEBHOOK_PRIVATE", ["10.1.0.0/16", "169.254.0.0/16", "x"])
    assert may_be_called("10.1.2.3", allowed)
    assert not may_be_called("10.2.2.3", allowed)
    assert not may_be_called("169.254.169.254", allowed)
    assert mistakes == ["GRID_WEBHOOK_PRIVATE names “x”, but that is no block of addresses such as 203.0.113.0/24."]
    denied, _ = read_blocks("GRID_EGRESS_EXCEPT", ["93.184.0.0/16", "10.1.9.0/24"])
    assert not may_be_called("93.184.216.34", allowed, denied)
    assert not may_be_called("::ffff:93.184.216.34", allowed, denied)
    assert not may_be_called("10.1.9.3", allowed, denied)
    assert may_be_called("93.184.216.34", ())
    assert may_be_called("2606:2800:220:1::1", ())


class Inbox:
    """Takes mail for everybody but nobody@ (never) and later@ (not now)."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], EmailMessage]] = []
        self.answer = "250 OK"

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address.startswith("nobody@"):
            return "550 no such mailbox"
        if address.startswith("later@"):
            return "451 try again"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.answer.startswith("250"):
            assert isinstance(envelope.content, bytes)
            mail: Any = message_from_bytes(envelope.content, policy=policy.default)
            self.mails.append((list(envelope.rcpt_tos), mail))
        return self.answer


@pytest.fixture
def inbox(settings: Settings) -> Iterator[Inbox]:
    inbox = Inbox()
    login: Any = {"authenticator": lambda *_: AuthResult(success=True), "auth_require_tls": False}
    server = Controller(inbox, hostname="127.0.0.1", port=free_ports(), **login)
    server.start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.DEFAULT_FROM_EMAIL = "Compute Grid <grid@example.com>"
    settings.DASHBOARD_ORIGIN = "https://grid.example.com"
    yield inbox
    server.stop()


def test_a_mail_arrives_as_plain_text_with_its_link(inbox: Inbox) -> None:
    assert send("ada@example.com", [payload(title="Zürich")], MESSAGE) == SENT
    [(recipients, mail)] = inbox.mails
    assert recipients == ["ada@example.com"]
    assert mail["Subject"] == "Compute Grid: Zürich has failed"
    assert mail["From"] == "Compute Grid <grid@example.com>"
    assert mail["Message-ID"] == f"<{MESSAGE}@grid.example.com>"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content_type() == "text/plain"
    assert "https://grid.example.com/executions/abc/" in mail.get_content()


@pytest.mark.parametrize("title", ["x\r\nBcc: victim@example.com\r\n\r\nbody", "\x00\x1b[31m", "\u202e" * 50, "."])
def test_a_hostile_title_adds_no_recipient_and_no_header(inbox: Inbox, title: str) -> None:
    assert send("ada@example.com", [payload(title=title, sentence=f".\r\n{title}\r\n.\r\n")], MESSAGE) == SENT
    [(recipients, mail)] = inbox.mails
    assert recipients == ["ada@example.com"]
    assert mail["Bcc"] is None
    assert "\n" not in mail["Subject"]


@pytest.mark.parametrize(
    "address", ["ada@example.com\r\nBcc: victim@example.com", "nobody@example.com", "a@b, victim@example.com", "@"]
)
def test_an_address_that_takes_no_mail_is_given_up(inbox: Inbox, address: str) -> None:
    result = send(address, [payload()], MESSAGE)
    assert result.is_final
    assert "takes no mail for this address" in result.error
    assert not inbox.mails


def test_mail_server_with_temporary_refusal_is_retried(inbox: Inbox, settings: Settings) -> None:
    assert not send("later@example.com", [payload()], MESSAGE).is_final
    inbox.answer = "452 the disk is full"
    assert send("ada@example.com", [payload()], MESSAGE) == SendResult(
        "The mail server refused it (452). Tell an admin."
    )
    settings.EMAIL_PORT = free_ports()
    assert "cannot be reached: connection refused" in send("ada@example.com", [payload()], MESSAGE).error


def test_mail_server_without_required_tls_gets_nothing(inbox: Inbox, settings: Settings) -> None:
    settings.EMAIL_USE_TLS = True
    assert not send("ada@example.com", [payload()], MESSAGE).is_sent
    assert not inbox.mails


def test_untrusted_certificate_is_no_fault_of_the_address(inbox: Inbox, settings: Settings, tmp_path: Path) -> None:
    server = Controller(inbox, hostname="127.0.0.1", port=free_ports(), ssl_context=certificate(tmp_path).server)
    server.start()
    settings.EMAIL_PORT, settings.EMAIL_USE_SSL = server.port, True
    result = send("ada@example.com", [payload()], MESSAGE)
    server.stop()
    assert result == SendResult("The mail server cannot be reached: its certificate is not valid. Tell an admin.")
    assert not inbox.mails


@pytest.mark.parametrize(
    "wrong",
    [
        {"EMAIL_HOST_USER": "grid", "EMAIL_HOST_PASSWORD": "Schlüssel"},
        {"DEFAULT_FROM_EMAIL": "Compute Grid <grid@"},
        {"DEFAULT_FROM_EMAIL": "grid@example.com\nBcc: victim@example.com"},
    ],
)
def test_unusable_mail_settings_do_not_blame_address(inbox: Inbox, settings: Settings, wrong: dict[str, str]) -> None:
    for name, value in wrong.items():
        setattr(settings, name, value)
    result = send("ada@example.com", [payload()], MESSAGE)
    assert not result.is_final
    assert "The sender or password in the settings for e-mail cannot be used." in result.error
    assert not inbox.mails


async def test_a_server_that_hangs_is_left_in_time(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_TIMEOUT, settings.EMAIL_USE_TLS = "127.0.0.1", 0.5, False
    mailer = Mailer(seconds=0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.EMAIL_PORT = silent.getsockname()[1]
        result = await mailer.send("ada@example.com", [payload()], MESSAGE)
    mailer.close()
    await asyncio.to_thread(mailer._threads.shutdown)  # the thread that was left notices that its server is gone
    assert result == SendResult("The mail server did not answer in time.")


def test_a_mail_says_what_why_what_next_and_where() -> None:
    assert_golden("mail-of-a-failure", f"{subject([payload()])}\n{mail_text([payload()], ORIGIN)!r}", ending="txt")


@pytest.mark.parametrize("event", [*NotificationEvent.values, TEST, "of-a-later-version"])
def test_every_event_has_words(event: str) -> None:
    bare = payload(event=event, sentence="")
    assert what_of(bare)
    assert "\n\n\n\n" not in mail_text([bare], ORIGIN)
    assert json.loads(webhook_body(bare, UUID(int=1), ORIGIN))["event"] == event


HOSTILE = [
    "a\r\nBcc: victim@example.com",
    "a\nb\x00c\x85d\u2028e\u2029f",
    "safe\u202egnp.exe\u2066",
    "{title} {0}",
    "   ",
]


def test_a_hostile_title_is_one_line_of_a_subject() -> None:
    subjects = [subject([payload(title=title)]) for title in HOSTILE]
    assert all(words.isprintable() for words in subjects)
    assert_golden("mail-subjects", "\n".join(subjects), ending="txt")
