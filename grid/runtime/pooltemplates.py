"""Follows what the database remembers of each pool's nodes (`grid.tiers.pooltemplates`): each web process reads it once a minute."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from grid.database.periodic import PeriodicTask, RunsIn
from grid.database.threads import background
from grid.diagnosis.nodeshapes import NodeTemplate
from grid.diagnosis.resources import ResourceAmounts
from grid.kube.hub import Hub, Topic
from grid.kube.objects import Node
from grid.tiers.pooltemplates import Row, read, templates_of

TOPIC: Topic = "pool templates"
PERIOD_SECONDS = 60.0

Run = Callable[..., Awaitable[Any]]


class PoolTemplates:
    """What is remembered, by pool, as a web process last read it; `version` rises with each change."""

    def __init__(self, hub: Hub) -> None:
        self.version = 0
        self.nodes: Mapping[str, Node] = {}
        self.own: Mapping[str, ResourceAmounts] = {}
        self._hub = hub
        self._templates: Mapping[str, NodeTemplate] = {}
        self._rows: list[Row] = []

    def get(self, pool: str) -> NodeTemplate | None:
        return self._templates.get(pool)

    def take(self, templates: Mapping[str, NodeTemplate]) -> None:
        """Know these from now on, and publish the topic if that is a change."""
        if templates == self._templates:
            return
        self._templates = dict(templates)
        self.nodes = {pool: template.node for pool, template in templates.items()}
        self.own = {pool: template.own for pool, template in templates.items()}
        self.version += 1
        self._hub.publish(TOPIC)

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("pool templates", PERIOD_SECONDS, self.run_once, RunsIn.EVERY_PROCESS)

    async def run_once(self, *, run: Run = background.run) -> None:
        """Read what is stored. After a failure, what was known stays known."""
        rows = await run(read)
        if rows != self._rows:
            self.take(templates_of(rows))
            self._rows = rows
