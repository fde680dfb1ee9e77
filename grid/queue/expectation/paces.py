"""How long a byte of an image took to be pulled lately, on any node."""

from grid.models import StartUp
from grid.queue.expectation.curve import Curve
from grid.starts.startuphistory import LEAST_PULLED, RECENT_PULLS

_LOOKED_AT = 1000  # of the newest starts, most of which pulled nothing


def usual_pull(size: int, pace: Curve) -> float | None:
    """Return the seconds within which half the pulls of so many bytes ended; None when too few are known."""
    return size * pace.remaining(0.5) if pace.covers(0.0) else None


def recent_pace() -> Curve:
    """Return the seconds for each byte of the latest pulls. Its cost does not grow with the history."""
    newest = StartUp.objects.order_by("-at").values_list("pulling", "image_bytes")[:_LOOKED_AT]
    paces = [(pulling / size, True) for pulling, size in newest if pulling and size and size >= LEAST_PULLED]
    return Curve(paces[:RECENT_PULLS])
