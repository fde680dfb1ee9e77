"""Remembers what the nodes of each pool looked like, in the database, because a pool that is scaled to zero has none to look at.

The web process that takes the minute's sample of the pools writes them; each web process reads them once a minute. Two that write at once
write the same, and the later one wins.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from grid.database import background
from grid.databasetrouble import TroubleLog
from grid.diagnosis.nodetemplates import NodeTemplate, as_stored, from_stored
from grid.diagnosis.resources import ResourceAmounts
from grid.kube.objects import Node
from grid.models import PoolTemplate
from grid.watch.hub import Hub, Topic

logger = logging.getLogger(__name__)

TOPIC: Topic = "pool templates"
PERIOD_SECONDS = 60.0
SEEN_AGAIN = timedelta(hours=1)  # after which a template that has not changed is written again
KEPT = timedelta(days=365)  # since a node was last seen; a pool may be used once a year

_Row = tuple[str, Any, Any, datetime]
Run = Callable[..., Awaitable[Any]]


def remember(templates: Mapping[str, NodeTemplate], now: datetime) -> None:
    """Write the templates that are new, differ or were last seen an hour ago, and delete those of pools that were not seen for a year."""
    stored = {pool: (node, own, seen_at) for pool, node, own, seen_at in read()}
    due = []
    for pool, template in sorted(
        templates.items()
    ):  # in one order, so that two that write at once never wait for each other
        node, own = as_stored(template)
        before = stored.get(pool)
        if before is None or before[:2] != (node, own) or template.seen_at - before[2] >= SEEN_AGAIN:
            due.append(PoolTemplate(pool=pool, node=node, own=own, seen_at=template.seen_at))
    PoolTemplate.objects.bulk_create(
        due, update_conflicts=True, unique_fields=["pool"], update_fields=["node", "own", "seen_at"]
    )
    if any(now - seen_at > KEPT for _, _, seen_at in stored.values()):
        PoolTemplate.objects.filter(seen_at__lt=now - KEPT).delete()


def read() -> list[_Row]:
    """Return what is stored of each pool."""
    return list(PoolTemplate.objects.values_list("pool", "node", "own", "seen_at"))


class PoolTemplates:
    """What is remembered, by pool, as a web process last read it; `version` rises with each change. `run` until cancelled."""

    def __init__(self, hub: Hub, *, monotonic: Callable[[], float]) -> None:
        self.version = 0
        self.nodes: Mapping[str, Node] = {}
        self.own: Mapping[str, ResourceAmounts] = {}
        self._hub = hub
        self._templates: Mapping[str, NodeTemplate] = {}
        self._rows: list[_Row] = []
        self._troubles = TroubleLog(monotonic)

    def get(self, pool: str) -> NodeTemplate | None:
        return self._templates.get(pool)

    def take(self, templates: Mapping[str, NodeTemplate]) -> None:
        """Know these from now on, and publish the topic if that is a change."""
        if templates == self._templates:
            return
        self._templates = dict(templates)
        self.nodes = {pool: one.node for pool, one in templates.items()}
        self.own = {pool: one.own for pool, one in templates.items()}
        self.version += 1
        self._hub.publish(TOPIC)

    async def run(
        self, *, run: Run = background.run, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        while True:
            await self.once(run=run)
            await sleep(PERIOD_SECONDS)

    async def once(self, *, run: Run = background.run) -> None:
        """Read what is stored. A failure is logged; what was known stays known."""
        try:
            rows = await run(read)
            if rows != self._rows:
                self.take(_templates(rows))
                self._rows = rows
            self._troubles.tell_if_over()
        except Exception as error:
            if not self._troubles.are_why(error):
                logger.exception("what is remembered of the pools' nodes is not read")


def _templates(rows: list[_Row]) -> dict[str, NodeTemplate]:
    """Return the templates; what another version has stored in another form is left out."""
    found = {}
    for pool, node, own, seen_at in rows:
        try:
            found[pool] = from_stored(node, own, seen_at)
        except ValueError as error:
            logger.warning("what is remembered of a pool's nodes cannot be read pool=%r error=%s", pool, error)
    return found
