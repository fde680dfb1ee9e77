"""The Infrastructure page, live: pools, nodes and the autoscaler's activity, for operators, auditors and admins."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from dataclasses import replace
from datetime import datetime

from django.http import QueryDict

from dashboard.nodes.pages.node_lists import NodeList, NodeLists
from dashboard.nodes.viewmodels.activity import activity
from dashboard.nodes.viewmodels.infrastructure import InfrastructureView, node_rows
from dashboard.nodes.viewmodels.pools import totals
from dashboard.shell.access import Viewer, may_observe
from dashboard.shell.pages.lists import BEHIND_SECONDS, FIRST_PAINT_SECONDS
from dashboard.shell.pages.page import LivePage
from dashboard.shell.viewmodels.live import Fragment
from grid.configuration import UNNEEDED_SECONDS, UNNEEDED_THRESHOLD, all_values
from grid.core.translation import gettext as _
from grid.database import threads as database
from grid.kube.hub import Topic
from grid.nodes.scaledown import ScaleDownRules
from grid.runtime import Runtime

AUTOSCALER = "cluster-autoscaler"
RULES_SECONDS = 2.0  # how long a page may use old settings after a change
RULES_PATIENCE = 1.0  # seconds for which one page waits for them
_DEFAULT_RULES = ScaleDownRules(threshold_percent=UNNEEDED_THRESHOLD.default, unneeded_seconds=UNNEEDED_SECONDS.default)


async def read_rules() -> ScaleDownRules:
    values = await database.pages.run(all_values)
    return ScaleDownRules(
        threshold_percent=values[UNNEEDED_THRESHOLD.key], unneeded_seconds=values[UNNEEDED_SECONDS.key]
    )


class ScaleDownAnswers:
    """The scale-down settings in force, read at most every `RULES_SECONDS` and shared by the pages that show nodes."""

    def __init__(self, read: Callable[[], Awaitable[ScaleDownRules]] = read_rules) -> None:
        self._read = read
        self._rules: ScaleDownRules | None = None
        self._read_at = float("-inf")
        self._reading: asyncio.Task[ScaleDownRules] | None = None

    def forget(self) -> None:
        """Make the next update read the settings again."""
        self._read_at = float("-inf")

    async def rules(self) -> ScaleDownRules:
        """Return the settings. While the database hangs these are the last ones, or the defaults: the nodes are not in the database."""
        loop = asyncio.get_running_loop()
        if self._rules is not None and 0 <= loop.time() - self._read_at < RULES_SECONDS:
            return self._rules
        if self._reading is None or self._reading.get_loop() is not loop:
            self._reading = asyncio.ensure_future(self._read())
            await asyncio.wait({self._reading}, timeout=RULES_PATIENCE)
        if self._reading is not None and self._reading.done():
            reading, self._reading = self._reading, None
            self._rules, self._read_at = reading.result(), loop.time()
        return self._rules or _DEFAULT_RULES


class InfrastructurePage(LivePage[InfrastructureView, NodeList]):
    name = "infrastructure"
    refusal = _("Only operators, auditors and admins can see the cluster's nodes.")
    reads_database = False
    regions = frozenset({"pools", "nodes", "activity"})

    def __init__(self, answers: ScaleDownAnswers) -> None:
        self._answers = answers
        self._lists: NodeLists | None = None

    def view(self, query: QueryDict) -> InfrastructureView:
        return InfrastructureView.parse(query.dict())

    def allowed(self, runtime: Runtime, viewer: Viewer, view: InfrastructureView) -> bool:
        return may_observe(viewer)

    def audience(self, viewer: Viewer) -> Hashable:
        return "observers"

    async def read(self, runtime: Runtime, viewer: Viewer, view: InfrastructureView) -> NodeList:
        return await (await self.lists_in(runtime)).list_of(view)

    async def read_in_time(self, runtime: Runtime, viewer: Viewer, view: InfrastructureView) -> NodeList:
        return await (await self.lists_in(runtime)).list_of(view, within=FIRST_PAINT_SECONDS)

    def topics(self, runtime: Runtime, viewer: Viewer, view: InfrastructureView, nodes: NodeList) -> Collection[Topic]:
        status, autoscaler = runtime.config_maps.name, (runtime.events.name, "component", AUTOSCALER)
        return {nodes.topic, nodes.lists.pools_topic, status, autoscaler, runtime.usage.name}

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: InfrastructureView, nodes: NodeList, now: datetime
    ) -> Sequence[Fragment]:
        lists = nodes.lists
        progress = lists.progress_of(nodes)
        is_counted = progress is None or progress.total is not None
        page = nodes.page(view.page)
        if lists.is_behind(nodes):
            page = replace(page, items=[sums for sums in page.items if sums.node.metadata.name in lists.items])
        return [
            totals(lists.pools, is_final=is_counted),
            *(lists.cards() if is_counted else ()),
            *node_rows(nodes.window, page, view, lists.row, progress),
            *activity(runtime.events.from_component(AUTOSCALER)),
        ]

    def tick(self, runtime: Runtime, viewer: Viewer, view: InfrastructureView, nodes: NodeList) -> float:
        return BEHIND_SECONDS if nodes.lists.is_behind(nodes) else self.tick_seconds

    async def lists_in(self, runtime: Runtime) -> NodeLists:
        rules = await self._answers.rules()
        if self._lists is None or self._lists.runtime is not runtime:
            self._lists = NodeLists(runtime, rules)
        self._lists.rules = rules
        return self._lists


SCALE_DOWN = ScaleDownAnswers()
INFRASTRUCTURE = InfrastructurePage(SCALE_DOWN)
