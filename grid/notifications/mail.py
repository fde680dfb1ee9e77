"""Sends e-mail through Django's mail framework, in a few threads of its own: an SMTP server may take its time."""

import asyncio
import smtplib
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage, get_connection
from django.core.validators import validate_email

from grid.core.translation import gettext as _
from grid.notifications.letters import SENT, Payload, SendResult, mail_text, subject

AT_ONCE = 4
SECONDS = 60.0  # for all of one mail; each step of the conversation has EMAIL_TIMEOUT
_UNUSABLE = SendResult(_("The mail server takes no mail for this address. Correct it on your account."), True)


class Mailer:
    """Sends; `close` it."""

    def __init__(self, *, seconds: float = SECONDS) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="mail")
        self._seconds = seconds

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def send(self, address: str, payloads: Sequence[Payload], message: UUID) -> SendResult:
        """Send one mail that tells all of these, and return what became of it."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._seconds):
                return await loop.run_in_executor(self._threads, send, address, payloads, message)
        except TimeoutError:
            return SendResult(_("The mail server did not answer in time."))


def send(address: str, payloads: Sequence[Payload], message: UUID) -> SendResult:
    """Send one mail; the id of a repeated one is the same, so that readers of mail can tell."""
    try:
        validate_email(address)
    except ValidationError:
        return _UNUSABLE
    host = settings.DASHBOARD_ORIGIN.partition("://")[2].partition(":")[0]
    connection = get_connection()
    mail = EmailMessage(
        subject(payloads),
        mail_text(payloads, settings.DASHBOARD_ORIGIN),
        to=[address],
        connection=connection,
        headers={"Message-ID": f"<{message}@{host}>", "Auto-Submitted": "auto-generated"},
    )
    try:
        mail.send()
    except smtplib.SMTPRecipientsRefused as error:
        codes = [code for code, _ in error.recipients.values()]
        return _UNUSABLE if all(code >= 500 for code in codes) else SendResult(_("The mail server refused it for now."))
    except smtplib.SMTPAuthenticationError:
        return SendResult(
            _("The mail server does not accept the name and password of this installation. Tell an admin.")
        )
    except smtplib.SMTPResponseException as error:
        return SendResult(_("The mail server refused it ({code}). Tell an admin.", code=error.smtp_code))
    except smtplib.SMTPNotSupportedError:
        return SendResult(
            _("The mail server offers no TLS or no login, which this installation asks for. Tell an admin.")
        )
    except ssl.SSLCertVerificationError:
        return SendResult(_("The certificate of the mail server is not valid. Tell an admin."))
    except (smtplib.SMTPException, OSError) as error:
        return SendResult(_("The mail server cannot be reached ({error}). Tell an admin.", error=type(error).__name__))
    except ValueError as error:  # of a sender that is no address, or a password that SMTP cannot carry
        return SendResult(
            _(
                "This installation's settings for e-mail cannot be used ({error}). Tell an admin.",
                error=type(error).__name__,
            )
        )
    finally:
        connection.close()
    return SENT
