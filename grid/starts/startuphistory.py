"""Reads how long starts took: the newest of a group, never all of them, so that a read costs the same after years. A group is a tier with
an environment, a pool, or all; each has an index by time. What is usual in a group is asked of the starts that were read once. Starts that
ended before they ran are left out: their last phase was cut off."""

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from grid.models import StartUp
from grid.tiers.rush import MeasuredTime

RECENT_PULLS = 100  # of a pool: registries and networks change
LEAST_PULLED = 20_000_000  # bytes: a smaller pull is the time of a few questions to the registry, and tells no pace
FEWEST_NODE_STARTS = FEWEST_STARTS = 5
_STARTS_LOOKED_AT = 500  # few of which waited for a new node


class RecentStart(NamedTuple):
    """The columns by which starts are read: making a model of each of 500 rows takes ten times as long as reading it."""

    execution_id: str
    ran: bool
    image: str
    total: float
    queued: float | None
    cluster_wait: float | None
    creating: float | None
    node_wait: float | None
    scheduling: float | None
    volumes: float | None
    pulling: float | None
    setup: float | None
    starting: float | None
    answering: float | None
    first_worker: float | None
    node_started: bool | None
    image_bytes: int | None


def recent_starts(
    *, tier: str = "", environment: str = "", node_pool: str = "", at_most: int = _STARTS_LOOKED_AT
) -> Sequence[RecentStart]:
    """Return the newest starts of a group that ran, newest first. "" leaves a part of the group open."""
    group = {"tier": tier, "environment": environment, "node_pool": node_pool}
    rows = StartUp.objects.filter(**{name: value for name, value in group.items() if value}).order_by("-at")
    starts = (RecentStart(*values) for values in rows.values_list(*RecentStart._fields)[:at_most])
    # Read by time and then filtered: an index for each group with the outcome as well would be as large as the table.
    return [start for start in starts if start.ran]


def usual_start(of_choice: Sequence[RecentStart], *, pull: float | None = None) -> float | None:
    """Return for how many seconds launches of a tier with an environment usually start on a node that is there, from the moment at which
    they get their slots; None when too few did lately. With a `pull`, its seconds count instead of those of their own pulls."""
    there = [(start.total - (start.queued or 0.0), start.pulling) for start in of_choice if not start.node_started]
    totals = [seconds for seconds, _ in there]
    if pull is not None:
        totals = [seconds - pulling + pull for seconds, pulling in there if pulling is not None]
    return median(totals) if len(totals) >= FEWEST_STARTS else None


def image_size(of_choice: Sequence[RecentStart], image: str) -> int | None:
    """Return the bytes of the last pull of the image for a tier with an environment; None when there was none lately."""
    return next((start.image_bytes for start in of_choice if start.image == image and start.image_bytes), None)


def usual_pace(of_pool: Sequence[RecentStart]) -> float | None:
    """Return the seconds for each byte that pulls of images usually took in a pool; None when there were too few lately."""
    pulls = [(start.pulling, size) for start in of_pool if (size := start.image_bytes or 0) >= LEAST_PULLED]
    paces = [seconds / size for seconds, size in pulls if seconds]
    return median(paces[:RECENT_PULLS]) if len(paces) >= FEWEST_STARTS else None


def usual_node_start(of_pool: Sequence[RecentStart]) -> float | None:
    """Return for how many seconds pods of a pool usually waited when a new node was started for them; None when too few did lately."""
    waits = _node_waits(of_pool)
    return median(waits) if len(waits) >= FEWEST_NODE_STARTS else None


def slow_node_start(of_pool: Sequence[RecentStart]) -> MeasuredTime:
    """Return how long pods of a pool waited when a new node was started for them, at the 95th percentile."""
    return _slow(_node_waits(of_pool))


def _node_waits(starts: Sequence[RecentStart]) -> list[float]:
    return [start.node_wait for start in starts if start.node_started and start.node_wait is not None]


def slow_pull(of_pool: Sequence[RecentStart], image: str, size: int | None) -> MeasuredTime:
    """Return the 95th percentile of the image's pulls in a pool, or what images of its `size` in bytes usually take."""
    pull = _slow(
        # Without its bytes the time was also that of others: of pulls before it, or of another image of the pod.
        [start.pulling for start in of_pool if start.image == image and start.pulling and start.image_bytes]
    )
    if pull.seconds is not None or not size or (pace := usual_pace(of_pool)) is None:
        return pull
    return MeasuredTime(size * pace, pull.count, is_estimate=True)


def _slow(seconds: list[float]) -> MeasuredTime:
    if len(seconds) < FEWEST_STARTS:
        return MeasuredTime(None, len(seconds))
    return MeasuredTime(sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1], len(seconds))
