"""The timestamps that Kubernetes writes before each line of a log, in one form, so that they are ordered as text."""

import re
from datetime import UTC, datetime

STAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)(?: |$)")


def stamped(line: bytes) -> tuple[str, bytes]:
    """Return the timestamp in UTC with nine digits of the second and no zone, and the rest of the line; "" for a line without one."""
    found = STAMP.match(line)
    if found is None:
        return "", line
    seconds, fraction = found[1].decode(), (found[2] or b"").decode().ljust(9, "0")
    if found[3] != b"Z":  # the node's own time zone
        try:
            moment = datetime.fromisoformat(f"{seconds}{found[3].decode()}")
            seconds = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
        except (ValueError, OverflowError):
            return "", line
    return f"{seconds}.{fraction}", line[found.end() :]
