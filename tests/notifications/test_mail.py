"""E-mail through a real SMTP server: what arrives, to whom, and what is said when the server takes nothing."""

import asyncio
import socket
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from pytest_django.fixtures import Settings

from grid.notifications.letters import SENT, SendResult
from grid.notifications.sender import Mailer, send
from tests.notifications.test_letters import payload
from tests.support.certificates import certificate
from tests.support.ports import free_ports

MESSAGE = UUID(int=7)


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
    assert "settings for e-mail cannot be used" in result.error
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
