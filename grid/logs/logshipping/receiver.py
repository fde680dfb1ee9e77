"""Posts lines to the receiver that the settings name. Its credential stands in a header, and nowhere else."""

import asyncio
import io
import json
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import aiohttp
from django.conf import settings
from yarl import URL

from grid.core.egress import read_blocks
from grid.core.errors import why_unreached
from grid.core.translation import gettext as _
from grid.edge.guarded_connector import GuardedConnector
from grid.edge.refusals import cleaned
from grid.logs.logshipping.lines import LineSource, LoggedLine, Portion

SERVICE = "compute-grid"
# https://opentelemetry.io/docs/specs/otlp/#otlphttp: the one form that collectors and Loki take as it is.
PATH = "/v1/logs"  # below the receiver's address
LONGEST_WAIT = 300.0  # seconds that a receiver may make us wait
_TOO_LARGE = 413
_REFUSALS = frozenset({400, 415, 422})  # the lines are at fault; all else may be well the next time

SECONDS = 15.0  # for all of a request
_LONGEST_ANSWER = 65536
# The address is the installation's own setting and mostly a private one, so only what hands out a machine's credentials is barred.
ANYWHERE = read_blocks("", ["0.0.0.0/0", "::/0"])[0]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a request: "sent" but for `refused` lines, to be sent "again" after `wait` seconds, or as "smaller" ones."""

    result: Literal["sent", "again", "smaller"]
    refused: int = 0
    why: str = ""
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class ReceiverSettings:
    """Where lines go: `authorization` is the value of that header, a secret."""

    url: str
    authorization: str = field(default="", repr=False)
    tenant: str = ""
    authorities: str = ""

    @property
    def name(self) -> str:
        return _("Log receiver at {host}", host=URL(self.url).host)


def configured() -> ReceiverSettings | None:
    """Return what the settings name; None where executions' logs stay here."""
    if not settings.LOG_RECEIVER_URL:
        return None
    secret, tenant = settings.LOG_RECEIVER_AUTHORIZATION, settings.LOG_RECEIVER_TENANT
    return ReceiverSettings(settings.LOG_RECEIVER_URL, secret, tenant, settings.LOG_RECEIVER_AUTHORITIES)


class LogReceiver:
    def __init__(self, receiver: ReceiverSettings, *, seconds: float = SECONDS) -> None:
        self.name = receiver.name
        self._receiver = receiver
        self._seconds = seconds
        self._tls: ssl.SSLContext | bool = True
        self._problem = ""
        if receiver.authorities:
            try:
                self._tls = ssl.create_default_context(cafile=receiver.authorities)
            except OSError as error:  # executions are worth more than their logs
                self._problem = _("GRID_LOG_RECEIVER_AUTHORITIES cannot be read: {why}", why=why_unreached(error))
        self._connections = GuardedConnector(ANYWHERE, name="log receiver")

    def close(self) -> None:
        self._connections.close()

    async def post(self, portions: Sequence[Portion], now: datetime) -> Verdict:
        receiver = self._receiver
        if self._problem:
            return Verdict("again", why=self._problem)
        # In a thread: a megabyte takes tens of milliseconds to encode, and the loop moves executions on.
        body = await asyncio.to_thread(encode, portions, now)
        headers = {"Content-Type": "application/json", "User-Agent": "compute-grid"}
        if receiver.authorization:
            headers["Authorization"] = receiver.authorization
        if receiver.tenant:
            headers["X-Scope-OrgID"] = receiver.tenant
        url, permitted = receiver.url.rstrip("/") + PATH, list[bool]()
        try:
            async with (
                asyncio.timeout(self._seconds),
                aiohttp.ClientSession(connector=self._connections.connector(permitted)) as session,
                session.post(
                    URL(url, encoded=True),
                    data=io.BytesIO(body),  # written in parts, between which others run
                    headers=headers,
                    allow_redirects=False,
                    ssl=self._tls,
                ) as answer,
            ):
                text = await answer.content.read(_LONGEST_ANSWER)
                while len(text) < _LONGEST_ANSWER and (more := await answer.content.read(_LONGEST_ANSWER - len(text))):
                    text += more
                status, retry_after = answer.status, answer.headers.get("Retry-After", "")
        except TimeoutError:
            return Verdict("again", why=_("no answer within {seconds:.0f} s", seconds=self._seconds))
        except aiohttp.ClientConnectorCertificateError:
            return Verdict("again", why=_("its certificate is not valid: see GRID_LOG_RECEIVER_AUTHORITIES"))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if permitted and not any(permitted):
                return Verdict("again", why=_("its name leads to an address that may not be called"))
            return Verdict("again", why=_("it cannot be reached: {why}", why=why_unreached(error)))
        lines = sum(len(portion.lines) for portion in portions)
        return self._without_secrets(judge(status, text, retry_after, lines=lines))

    def _without_secrets(self, verdict: Verdict) -> Verdict:
        """Return the verdict with words that may be shown: a receiver may send back what it was sent. Cut last, lest a part is left."""
        why = verdict.why
        for secret in (self._receiver.authorization, self._receiver.authorization.rpartition(" ")[2]):
            why = why.replace(secret, "(hidden)") if secret else why
        return Verdict(verdict.result, verdict.refused, cleaned(why, 240), verdict.wait)


def encode(portions: Sequence[Portion], now: datetime) -> bytes:
    """Return the lines as a request's body, in the protocol's JSON form, where 64-bit numbers are texts."""
    by_source: dict[LineSource, list[LoggedLine]] = {}
    for portion in portions:
        by_source.setdefault(portion.source, []).extend(portion.lines)
    observed = str(int(now.timestamp() * 1_000_000) * 1000)
    scope = {"name": "compute_grid.executions"}

    def record(line: LoggedLine) -> dict[str, Any]:
        at, text = str(_nanoseconds(line, now)), {"stringValue": line.text}
        return {"timeUnixNano": at, "observedTimeUnixNano": observed, "body": text}

    logs = [
        {
            "resource": {"attributes": _attributes(source)},
            "scopeLogs": [{"scope": scope, "logRecords": [*map(record, lines)]}],
        }
        for source, lines in by_source.items()
    ]
    return json.dumps({"resourceLogs": logs}, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def judge(status: int, body: bytes, retry_after: str, *, lines: int) -> Verdict:
    if status == _TOO_LARGE:
        return Verdict("smaller", why=_("413: the request is too large"))
    if 200 <= status < 300:
        return _partly(body, lines)
    if status in _REFUSALS:
        return Verdict(
            "sent",
            lines,
            f"{status}: {' '.join(body[:65536].decode(errors='replace').split())}" if body else str(status),
        )
    return Verdict("again", why=_meaning(status), wait=_seconds(retry_after))


def _partly(body: bytes, lines: int) -> Verdict:
    try:
        partial = json.loads(body or b"{}")["partialSuccess"]
        rejected = min(max(0, int(partial.get("rejectedLogRecords") or 0)), lines)
        return Verdict("sent", rejected, str(partial.get("errorMessage") or "") if rejected else "")
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, OverflowError):
        return Verdict("sent")  # it has said that all is well


def _meaning(status: int) -> str:
    if status in (401, 403):
        return _("it refuses our credentials ({status}): see GRID_LOG_RECEIVER_AUTHORIZATION", status=status)
    if status in (404, 405):
        return _("it has no such address ({status}): see GRID_LOG_RECEIVER_URL", status=status)
    if 300 <= status < 400:
        return _("it redirects ({status}), which is not followed: see GRID_LOG_RECEIVER_URL", status=status)
    if status == 429:
        return _("it takes no more for now (429)")
    return _("it answered with status {status}", status=status)


def _seconds(retry_after: str) -> float:
    return min(float(retry_after), LONGEST_WAIT) if retry_after.isascii() and retry_after.isdecimal() else 0.0


def _nanoseconds(line: LoggedLine, now: datetime) -> int:
    try:
        seconds = int(datetime.fromisoformat(line.stamp[:19]).replace(tzinfo=UTC).timestamp())
        return seconds * 1_000_000_000 + int(line.stamp[20:29] or 0)
    except (ValueError, OverflowError):  # a line without a timestamp
        return int(now.timestamp() * 1_000_000) * 1000


def _attributes(source: LineSource) -> list[dict[str, Any]]:
    named = {
        "service.name": SERVICE,
        "k8s.namespace.name": source.namespace,
        "k8s.pod.name": source.pod,
        "k8s.container.name": source.container,
        "user.name": source.user,
        "compute_grid.execution.id": source.execution,  # as in our traces
        "compute_grid.execution.kind": source.kind,
        "compute_grid.project.id": source.project,
    }
    return [{"key": name, "value": {"stringValue": value}} for name, value in named.items() if value]
