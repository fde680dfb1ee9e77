"""The timestamps that Kubernetes writes before each line of a log, in one form, so that they are ordered as text."""

from datetime import UTC, datetime

_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_SECONDS, _ZONE = b"0000-00-00T00:00:00", b"00:00"  # with zeros for all digits
_DIGITS = b"0123456789"


def stamp_end(line: bytes) -> int:
    """Return where the line goes on after its timestamp; 0 for a line without one. It is read by hand, as each line of each log is."""
    return _parts(line)[2]


def stamped(line: bytes) -> tuple[str, bytes]:
    """Return the timestamp in UTC with nine digits of the second and no zone, and the rest of the line; "" for a line without one."""
    fraction, zone, end = _parts(line)
    if not end:
        return "", line
    seconds = line[:19].decode()
    if zone != b"Z":  # the node's own time zone
        try:
            moment = datetime.fromisoformat(f"{seconds}{zone.decode()}")
            seconds = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
        except (ValueError, OverflowError):
            return "", line
    return f"{seconds}.{fraction.decode().ljust(9, '0')}", line[end:]


def _parts(line: bytes) -> tuple[bytes, bytes, int]:
    """Return the digits after the second, the zone and the place after both; 0 for a line without a timestamp."""
    nothing = b"", b"", 0
    if line[:19].translate(_ZEROS) != _SECONDS:
        return nothing
    fraction, place = b"", 19
    if line[19:20] == b".":
        digits = line[20:30]
        fraction = digits[: len(digits) - len(digits.lstrip(_DIGITS))]
        if not 0 < len(fraction) < 10:
            return nothing
        place = 20 + len(fraction)
    zone = line[place : place + 1]
    if zone in (b"+", b"-"):
        zone = line[place : place + 6]
        if zone[1:].translate(_ZEROS) != _ZONE:
            return nothing
    elif zone != b"Z":
        return nothing
    place += len(zone)
    following = line[place : place + 1]
    return (fraction, zone, place + len(following)) if following in (b"", b" ") else nothing
