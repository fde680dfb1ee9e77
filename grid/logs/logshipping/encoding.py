"""Lines of logs as Loki, Elasticsearch and OpenTelemetry collectors take them, and what their answers mean; pure.

https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs
https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk
https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

from grid.core.translation import gettext as _
from grid.logs.logshipping.lines import LineSource, LoggedLine, Portion

SERVICE = "compute-grid"
LONGEST_WAIT = 300.0  # seconds that a receiver may make us wait
_TOO_LARGE = 413
_REFUSALS = frozenset({400, 409, 415, 422})  # the lines are at fault; all else may be well the next time


@dataclass(frozen=True, slots=True)
class Encoded:
    path: str  # below the receiver's address
    body: bytes
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a request: "sent", but for `refused` lines; to be sent "again", not before `wait` seconds; or as "smaller" ones. `why`
    says why not all was well."""

    result: Literal["sent", "again", "smaller"]
    refused: int = 0
    why: str = ""
    wait: float = 0.0


def loki(portions: Sequence[Portion], now: datetime, index: str = "") -> Encoded:
    """Encode for Loki's push API.

    Loki keeps a stream for each combination of labels, and too many streams are its undoing. So only what has few values is a label: the
    service and the kind. Execution, pod, project and user have no bound, and are structured metadata of each line, which Loki 3 searches
    by without a stream for each.
    """
    streams: dict[str, list[Any]] = {}
    for portion in portions:
        found = streams.setdefault(portion.source.kind, [])
        for line in portion.lines:
            found.append([str(_nanoseconds(line, now)), line.text, _metadata(portion.source)])
    body = {
        "streams": [
            {"stream": {"service_name": SERVICE, "kind": kind}, "values": values} for kind, values in streams.items()
        ]
    }
    return Encoded("/loki/api/v1/push", _json(body))


def elasticsearch(portions: Sequence[Portion], now: datetime, index: str) -> Encoded:
    """Encode for Elasticsearch's bulk API. The id of a line follows from the line, so what is sent twice is there once; "create" is what
    data streams take."""
    lines: list[bytes] = []
    for portion in portions:
        seen: Counter[LoggedLine] = Counter()
        for line in portion.lines:
            seen[line] += 1
            lines.append(_json({"create": {"_id": _line_id(portion.source, line, seen[line])}}))
            lines.append(_json(_document(portion.source, line, now)))
    path = f"/{quote(index, safe='')}/_bulk?filter_path=errors,items.*.status,items.*.error.type"
    return Encoded(path, b"\n".join(lines) + b"\n", "application/x-ndjson")


def otlp(portions: Sequence[Portion], now: datetime, index: str = "") -> Encoded:
    """Encode for the OpenTelemetry protocol over HTTP in its JSON form, where 64-bit numbers are texts."""
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
    return Encoded("/v1/logs", _json(body))


Encode = Callable[[Sequence[Portion], datetime, str], Encoded]
ENCODERS: Mapping[str, Encode] = {"loki": loki, "elasticsearch": elasticsearch, "otlp": otlp}
NAMES = {"loki": "Loki", "elasticsearch": "Elasticsearch", "otlp": _("the OpenTelemetry collector")}


def judge(status: int, body: bytes, retry_after: str, *, lines: int) -> Verdict:
    """Return what the answer to a request with so many lines means. The three differ only in what a 200 may still say."""
    if status == _TOO_LARGE:
        return Verdict("smaller", why=_("413: the request is too large"))
    if 200 <= status < 300:
        return _partly(body, lines)
    if status in _REFUSALS:
        return Verdict("sent", lines, f"{status}: {_said(body)}" if body else str(status))
    return Verdict("again", why=_meaning(status), wait=_seconds(retry_after))


def _partly(body: bytes, lines: int) -> Verdict:
    """Read an answer of success: Elasticsearch says what became of each line, a collector how many it has rejected."""
    try:
        answer = json.loads(body or b"{}")
        if not isinstance(answer, dict):
            return Verdict("sent")
        if partial := answer.get("partialSuccess"):
            rejected = min(max(0, int(partial.get("rejectedLogRecords") or 0)), lines)
            return Verdict("sent", rejected, str(partial.get("errorMessage") or "") if rejected else "")
        if not answer.get("errors"):
            return Verdict("sent")
        results = [next(iter(item.values())) for item in answer.get("items", ())]
        # 409: it is there already, from a request whose answer did not come.
        failed = [one for one in results if int(one["status"]) >= 300 and int(one["status"]) != 409]
        whys = [str((one.get("error") or {}).get("type") or one["status"]) for one in failed]
        for one, why in zip(failed, whys, strict=True):
            # An index that is missing, blocked, full or not ours to write to is no fault of the lines.
            if (status := int(one["status"])) not in _REFUSALS and status != _TOO_LARGE:
                return Verdict("again", why=f"{_meaning(status)}; {why}")
    except (ValueError, TypeError, AttributeError, KeyError, StopIteration, RecursionError, OverflowError):
        return Verdict("sent")  # it has said that all is well, in words that we do not know
    return Verdict("sent", min(len(failed), lines), whys[0] if whys else "")


def _meaning(status: int) -> str:
    if status in (401, 403):
        return _("it refuses our credentials ({status}): see GRID_LOG_RECEIVER_AUTHORIZATION", status=status)
    if status in (404, 405):
        return _("it has no such address ({status}): see GRID_LOG_RECEIVER and GRID_LOG_RECEIVER_URL", status=status)
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


def _metadata(source: LineSource) -> dict[str, str]:
    named = {
        "execution": source.execution,
        "project": source.project,
        "user": source.user,
        "pod": source.pod,
        "container": source.container,
        "namespace": source.namespace,
    }
    return {name: value for name, value in named.items() if value}


def _document(source: LineSource, line: LoggedLine, now: datetime) -> dict[str, Any]:
    return {
        "@timestamp": f"{line.stamp}Z" if line.stamp else now.isoformat(),
        "message": line.text,
        "service": {"name": SERVICE},
        "user": {"name": source.user},
        "kubernetes": {
            "namespace": source.namespace,
            "pod": {"name": source.pod},
            "container": {"name": source.container},
        },
        "compute_grid": {"execution": source.execution, "kind": source.kind, "project": source.project},
    }


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


def _line_id(source: LineSource, line: LoggedLine, count: int) -> str:
    parts = (source.execution, source.pod, source.container, line.stamp, line.text, str(count))
    return hashlib.blake2b("\0".join(parts).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
