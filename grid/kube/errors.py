"""Translates foreign errors into those of `grid.core.errors`, here and nowhere else. The original stays chained as the cause.

Messages are made of what the API server says in a Status (trimmed), of host names and of error kinds: never of headers, tokens, or bodies
that are not a Status, which may hold anything.
"""

import asyncio
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import aiohttp
import msgspec

from grid.core.decoding import prepared
from grid.core.errors import (
    ClusterUnavailable,
    Conflict,
    Expired,
    GridError,
    NotAllowed,
    NotFound,
    Problem,
    Rejected,
    TooManyRequests,
)
from grid.core.translation import gettext as _

_LONGEST_MESSAGE = 500
_LONGEST_BODY = 1_000_000  # a Status with a thousand causes is far smaller


class Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, rename="camel"):
    causes: list[Cause] | None = None
    retry_after_seconds: float = 0


class Status(msgspec.Struct):
    """The API server's answer when it refuses a request, and the object of a watch's ERROR event."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None


def decode_status(body: bytes) -> Status:
    """Decode a Status; return an empty one for any other body, such as a proxy's page."""
    try:
        return msgspec.json.decode(body[:_LONGEST_BODY], type=prepared(Status))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Status()


def trimmed(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 1] + "…"


class _Refused(Exception):
    """The cause of an error that is made of the API server's answer; it keeps that answer word for word."""

    def __init__(self, code: int, status: Status) -> None:
        super().__init__(code, status.reason)
        self.status = msgspec.structs.replace(status, code=code)


def error_of(code: int, status: Status, headers: Mapping[str, str] | None = None) -> GridError:
    error = _error_of(code, status, headers or {})
    error.__cause__ = _Refused(code, status)
    return error


def answer_of(error: BaseException) -> Status:
    """Return what the API server said, word for word; the error's own sentence when it said nothing, and code 0 when it did not answer."""
    status = error.__cause__.status if isinstance(error.__cause__, _Refused) else Status()
    return status if status.message else msgspec.structs.replace(status, message=str(error))


_KINDS: dict[int, type[GridError]] = {403: NotAllowed, 404: NotFound, 409: Conflict, 410: Expired}


def _error_of(code: int, status: Status, headers: Mapping[str, str]) -> GridError:
    message = trimmed(status.message) or _("The API server answered HTTP {code}.", code=code)
    if code == 401:
        return NotAllowed(_("The cluster does not accept our credentials; they may have expired."))
    if code in _KINDS:
        return _KINDS[code](message)
    details, reason = status.details or Details(), status.reason or "invalid"
    if code == 429:
        seconds = headers.get("Retry-After", "")
        return TooManyRequests(
            message, retry_after=float(seconds) if seconds.isdigit() else details.retry_after_seconds or 1.0
        )
    if 400 <= code < 500:
        causes = details.causes or [Cause(reason=reason, message=message)]
        return Rejected(
            [Problem(each.field, trimmed(each.message) or message, each.reason or reason) for each in causes]
        )
    if 300 <= code < 400:
        words = _("The API server's address answers with a redirect (HTTP {code}); is it the right one?", code=code)
        return ClusterUnavailable(words)
    return ClusterUnavailable(_("The cluster is failing: {said}", said=message))


@contextmanager
def translated(host: str) -> Iterator[None]:
    """Translate all errors of talking to the API server within the block; the most specific come first."""
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        words = _(
            "The API server at {host} shows a certificate that is not trusted; check the kubeconfig's certificate-authority.",
            host=host,
        )
        raise ClusterUnavailable(words) from error
    except (aiohttp.ClientSSLError, ssl.SSLError) as error:
        words = _("No secure connection to the API server at {host}: its TLS is not as expected.", host=host)
        raise ClusterUnavailable(words) from error
    except TimeoutError as error:
        raise ClusterUnavailable(_("The API server at {host} does not answer in time.", host=host)) from error
    except aiohttp.InvalidURL as error:
        raise ClusterUnavailable(_("The API server's address in the kubeconfig is not a valid URL.")) from error
    except aiohttp.ClientConnectorError as error:
        # In lower case; asyncio's own text for a refused connection repeats the address instead.
        number = error.os_error.errno or 0
        reason = os.strerror(number).lower() if number > 0 else _("no connection")
        words = _("The API server at {host} cannot be reached: {reason}.", host=host, reason=reason)
        raise ClusterUnavailable(words) from error
    except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
        raise ClusterUnavailable(_("The connection to the API server at {host} broke.", host=host)) from error
