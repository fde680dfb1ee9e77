"""Alertmanager's API, version 2, as far as it is needed: silences, and which alerts it knows.

https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, TypeVar

import aiohttp
import msgspec

from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.core.wording import one_line

SECONDS = 10.0  # for one request
MOST_BYTES = 32 * 1024 * 1024  # of an answer: some ten thousand alerts
_ANSWER_LENGTH = 120  # characters of its own words

T = TypeVar("T")
_Id = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]  # what is stored, and part of a path


class AlertmanagerGone(GridError):
    """Raised when Alertmanager does not answer, or not as it should; the text is a sentence without the URL, which may hold a password."""


class AlertmanagerRefused(GridError):
    """Raised when Alertmanager does not take what it is sent; the text is a sentence."""


class KnownAlert(msgspec.Struct, frozen=True, rename="camel"):
    fingerprint: str


class _State(msgspec.Struct, frozen=True):
    state: str


class KnownSilence(msgspec.Struct, frozen=True, rename="camel"):
    """A silence as Alertmanager has it."""

    id: _Id
    status: _State
    ends_at: Annotated[datetime, msgspec.Meta(tz=True)]
    created_by: str = ""
    comment: str = ""

    @property
    def is_over(self) -> bool:
        return self.status.state == "expired"


class _Created(msgspec.Struct, frozen=True):
    id: _Id = msgspec.field(name="silenceID")


class Alertmanager:
    """One Alertmanager, or a cluster of them behind one address; `url` may carry a user and a password."""

    def __init__(self, url: str, *, seconds: float = SECONDS) -> None:
        self._url = f"{url.rstrip('/')}/api/v2"
        self._seconds = seconds

    async def create_silence(
        self, matchers: Mapping[str, str], *, starts_at: datetime, ends_at: datetime, by: str, comment: str
    ) -> str:
        """Create a silence of the alerts with all these labels; return its id."""
        body = {
            "matchers": [
                {"name": name, "value": value, "isRegex": False, "isEqual": True} for name, value in matchers.items()
            ],
            "startsAt": starts_at.isoformat(),
            "endsAt": ends_at.isoformat(),
            "createdBy": by,
            "comment": comment,
        }
        return _decoded(await self._ask("POST", "/silences", body), _Created).id

    async def silences(self) -> Sequence[KnownSilence]:
        """Return all silences, those that were over within the last days among them."""
        return _decoded(await self._ask("GET", "/silences"), list[KnownSilence])

    async def end_silence(self, id: str) -> None:
        """End a silence that is not over; an unknown one is none."""
        await self._ask("DELETE", f"/silence/{id}", may_be_unknown=True)

    async def fingerprints(self) -> frozenset[str]:
        """Return the alerts that fire as Alertmanager knows it, silenced and inhibited ones among them."""
        return frozenset(alert.fingerprint for alert in _decoded(await self._ask("GET", "/alerts"), list[KnownAlert]))

    async def _ask(self, method: str, path: str, body: object = None, *, may_be_unknown: bool = False) -> bytes:
        try:
            async with (
                asyncio.timeout(self._seconds),
                aiohttp.ClientSession() as session,
                session.request(method, f"{self._url}{path}", json=body, allow_redirects=False) as response,
            ):
                status, answer = response.status, await _read(response.content)
        except TimeoutError as error:
            sentence = _("Alertmanager did not answer within {seconds:.0f} seconds.", seconds=self._seconds)
            raise AlertmanagerGone(sentence) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            sentence = _("Alertmanager cannot be reached ({error}).", error=type(error).__name__)
            raise AlertmanagerGone(sentence) from error
        if status != 404 or not may_be_unknown:
            _check(status, answer)
        return answer


async def _read(content: aiohttp.StreamReader) -> bytes:
    parts, size = [], 0
    async for part in content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise AlertmanagerGone(_("Alertmanager answers with more than can be read."))
    return b"".join(parts)


def _check(status: int, answer: bytes) -> None:
    """Raise unless the request was granted; 4xx is about what was sent, except for rights."""
    if status < 300:
        return
    if status in (401, 403):
        sentence = _("Alertmanager refuses this installation's user and password ({status}).", status=status)
        raise AlertmanagerGone(sentence)
    if status in (400, 422):
        words = one_line(answer[:1000].decode(errors="replace")).strip('" ')[:_ANSWER_LENGTH]
        raise AlertmanagerRefused(_("Alertmanager does not take it ({status}): {answer}", status=status, answer=words))
    raise AlertmanagerGone(_("Alertmanager answers with status {status}.", status=status))


def _decoded(answer: bytes, type: type[T]) -> T:
    try:
        return msgspec.json.decode(answer, type=type)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise AlertmanagerGone(_("Alertmanager does not answer as version 2 of its API does.")) from error
