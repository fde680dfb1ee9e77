"""Parts that descriptions of different kinds share: labels, annotations, events."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from grid.diagnosis.describe.columns import Columns
from grid.diagnosis.describe.values import age

RawObject = Mapping[str, Any]

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_LONGEST_ANNOTATION = 140


def write_labels(out: Columns, title: str, labels: Mapping[str, str] | None) -> None:
    if not labels:
        out.write(0, f"{title}:\t<none>\n")
        return
    for index, key in enumerate(sorted(labels)):
        out.write(0, f"{title + ':' if index == 0 else ''}\t{key}={labels[key]}\n")


def write_annotations(out: Columns, annotations: Mapping[str, str] | None) -> None:
    shown = {key: value for key, value in (annotations or {}).items() if key != _LAST_APPLIED}
    out.write(0, "Annotations:\t")
    if not shown:
        out.write(0, "<none>\n")
    for index, key in enumerate(sorted(shown)):
        lead = "\t" if index else ""
        value = shown[key].removesuffix("\n")
        if len(value) + len(key) + 2 <= _LONGEST_ANNOTATION and "\n" not in value:
            out.write(0, f"{lead}{key}: {value}\n")
            continue
        out.write(0, f"{lead}{key}:\n")
        for line in value.split("\n"):
            out.write(0, f"\t  {_shorten(line, _LONGEST_ANNOTATION - 2)}\n")


def write_events(out: Columns, events: Sequence[RawObject], now: datetime) -> None:
    """Write the events, oldest first by the time they were last seen."""
    if not events:
        out.write(0, "Events:\t<none>\n")
        return
    out.flush()
    out.write(0, "Events:\n")
    out.write(1, "Type\tReason\tAge\tFrom\tMessage\n")
    out.write(1, "----\t------\t----\t----\t-------\n")
    for event in sorted(events, key=lambda event: event.get("lastTimestamp") or ""):
        source = (event.get("source") or {}).get("component") or event.get("reportingComponent", "")
        part = (event.get("involvedObject") or {}).get("fieldPath")
        message = f"{part}: {event['message'].strip()}" if part else event["message"].strip()
        cells = (event.get("type", ""), event.get("reason", ""), _interval(event, now), source, message)
        out.write(1, "\t".join(cells) + "\n")


def _interval(event: RawObject, now: datetime) -> str:
    first = age(event.get("eventTime") or event.get("firstTimestamp"), now)
    series = event.get("series")
    if series:
        return f"{age(series.get('lastObservedTime'), now)} (x{series.get('count', 0)} over {first})"
    if (event.get("count") or 0) > 1:
        return f"{age(event.get('lastTimestamp'), now)} (x{event['count']} over {first})"
    return first


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + "..."
