"""Lines of logs in the OpenTelemetry protocol (OTLP) over HTTP, and what the answers mean; pure.

It is the one form that collectors and Loki take as it is, and from which a collector makes all others. Its JSON needs no package.
https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from grid.core.translation import gettext as _
from grid.logs.logshipping.lines import LineSource, LoggedLine, Portion

SERVICE = "compute-grid"
PATH = "/v1/logs"  # below the receiver's address
LONGEST_WAIT = 300.0  # seconds that a receiver may make us wait
_TOO_LARGE = 413
_REFUSALS = frozenset({400, 415, 422})  # the lines are at fault; all else may be well the next time


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a request: "sent" but for `refused` lines, to be sent "again" after `wait` seconds, or as "smaller" ones."""

    result: Literal["sent", "again", "smaller"]
    refused: int = 0
    why: str = ""
    wait: float = 0.0


def encode(portions: Sequence[Portion], now: datetime) -> bytes:
    """Return the lines as a request's body, in the protocol's JSON form, where 64-bit numbers are texts."""
    by_source: dict[LineSource, list[LoggedLine]] = {}
    for portion in portions:
        by_source.setdefault(portion.source, []).extend(portion.lines)
    observed = str(int(now.timestamp() * 1_000_000) * 1000)
    body = {
        "resourceLogs": [
            {
                "resource": {"attributes": _attributes(source)},
                "scopeLogs": [
                    {
                        "scope": {"name": "compute_grid.executions"},
                        "logRecords": [
                            {
                                "timeUnixNano": str(_nanoseconds(line, now)),
                                "observedTimeUnixNano": observed,
                                "body": {"stringValue": line.text},
                            }
                            for line in lines
                        ],
                    }
                ],
            }
            for source, lines in by_source.items()
        ]
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def judge(status: int, body: bytes, retry_after: str, *, lines: int) -> Verdict:
    """Return what the answer to a request with so many lines means."""
    if status == _TOO_LARGE:
        return Verdict("smaller", why=_("413: the request is too large"))
    if 200 <= status < 300:
        return _partly(body, lines)
    if status in _REFUSALS:
        return Verdict("sent", lines, f"{status}: {_said(body)}" if body else str(status))
    return Verdict("again", why=_meaning(status), wait=_seconds(retry_after))


def _partly(body: bytes, lines: int) -> Verdict:
    """Read an answer of success, which may say how many lines were rejected."""
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
    return (
        _("it takes no more for now (429)") if status == 429 else _("it answered with status {status}", status=status)
    )


def _seconds(retry_after: str) -> float:
    return min(float(retry_after), LONGEST_WAIT) if retry_after.isascii() and retry_after.isdecimal() else 0.0


def _said(body: bytes) -> str:
    return " ".join(body[:65536].decode(errors="replace").split())


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
