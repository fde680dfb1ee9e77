"""Follows what the database remembers of each pool's nodes (`grid.tiers.pooltemplates`): each web process reads it once a minute."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from grid.database.threads import background
from grid.database.trouble import TroubleLog
from grid.diagnosis.nodetemplates import NodeTemplate
from grid.diagnosis.resources import ResourceAmounts
from grid.kube.hub import Hub, Topic
from grid.kube.objects import Node
from grid.tiers.pooltemplates import Row, read, templates_of

logger = logging.getLogger(__name__)

TOPIC: Topic = "pool templates"
PERIOD_SECONDS = 60.0

Run = Callable[..., Awaitable[Any]]


class PoolTemplates:
    """What is remembered, by pool, as a web process last read it; `version` rises with each change. `run` until cancelled."""

    def __init__(self, hub: Hub, *, monotonic: Callable[[], float]) -> None:
        self.version = 0
        self.nodes: Mapping[str, Node] = {}
        self.own: Mapping[str, ResourceAmounts] = {}
        self._hub = hub
        self._templates: Mapping[str, NodeTemplate] = {}
        self._rows: list[Row] = []
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
                self.take(templates_of(rows))
                self._rows = rows
            self._troubles.tell_if_over()
        except Exception as error:
            if not self._troubles.are_why(error):
                logger.exception("what is remembered of the pools' nodes is not read")
