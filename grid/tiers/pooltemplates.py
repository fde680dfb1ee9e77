"""What the nodes of each pool looked like, in the database, because a pool that is scaled to zero has none to look at.

The web process that takes the minute's sample of the pools writes it; web processes and the controller read it. Two that write at once
write the same, and the later one wins.
"""

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from grid.diagnosis.nodeshapes import NodeTemplate, as_stored, from_stored
from grid.models import PoolTemplate

logger = logging.getLogger(__name__)

SEEN_AGAIN = timedelta(hours=1)  # after which a template that has not changed is written again
KEPT = timedelta(days=365)  # since a node was last seen; a pool may be used once a year

Row = tuple[str, Any, Any, datetime]  # the pool, its node, the node's own pods, when it was seen


def remember(templates: Mapping[str, NodeTemplate], now: datetime) -> None:
    """Write the templates that are new, differ or were last seen an hour ago, and delete those of pools that were not seen for a year."""
    stored = {pool: (node, own, seen_at) for pool, node, own, seen_at in read()}
    due = []
    for pool, template in sorted(templates.items()):  # in one order: two that write at once never wait for each other
        node, own = as_stored(template)
        before = stored.get(pool)
        if before is None or before[:2] != (node, own) or template.seen_at - before[2] >= SEEN_AGAIN:
            due.append(PoolTemplate(pool=pool, node=node, own=own, seen_at=template.seen_at))
    PoolTemplate.objects.bulk_create(
        due, update_conflicts=True, unique_fields=["pool"], update_fields=["node", "own", "seen_at"]
    )
    if any(now - seen_at > KEPT for _, _, seen_at in stored.values()):
        PoolTemplate.objects.filter(seen_at__lt=now - KEPT).delete()


def read() -> list[Row]:
    return list(PoolTemplate.objects.values_list("pool", "node", "own", "seen_at"))


def templates_of(rows: Iterable[Row]) -> dict[str, NodeTemplate]:
    """Return the templates; what another version has stored in another form is left out."""
    templates = {}
    for pool, node, own, seen_at in rows:
        try:
            templates[pool] = from_stored(node, own, seen_at)
        except ValueError as error:
            logger.warning("what is remembered of a pool's nodes cannot be read pool=%r error=%s", pool, error)
    return templates


def remembered() -> dict[str, NodeTemplate]:
    return templates_of(read())
