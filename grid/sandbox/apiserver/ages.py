"""Durations as `kubectl` prints them: two units at most, the finer one only while it matters."""

from datetime import datetime, timedelta

from grid.sandbox.apiserver.kinds import Object


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def age(obj: Object, now: datetime) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def since(text: str | None, now: datetime) -> str:
    return human_duration(now - parse_time(text)) if text else "<unknown>"


def human_duration(duration: timedelta) -> str:
    """Return a duration like 2s, 90s, 3m5s, 12m, 5h2m, 9h, 3d4h, 25d or 2y14d."""
    seconds = int(duration.total_seconds())
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    years = days // 365
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(more: int, more_unit: str, less: int, less_unit: str) -> str:
    return f"{more}{more_unit}{less}{less_unit}" if less else f"{more}{more_unit}"
