"""The Infrastructure page, live: pools, nodes and the autoscaler's activity, for operators, auditors and admins."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from datetime import datetime

from django.http import QueryDict

from dashboard.access import Viewer, may_observe
from dashboard.pages.cluster import ClusterReader
from dashboard.pages.page import LivePage
from dashboard.viewmodels.infrastructure import InfrastructureView, activity, node_rows, pool_cards, totals
from dashboard.viewmodels.live import Fragment
from dashboard.viewmodels.nodes import NodeSums
from grid import database
from grid.centralconfig import UNNEEDED_SECONDS, UNNEEDED_THRESHOLD, all_values
from grid.diagnosis.scaledown import ScaleDown, ScaleDownRules, scale_down
from grid.runtime import Runtime

AUTOSCALER = "cluster-autoscaler"
RULES_SECONDS = 2.0  # how long a page may show times by settings that have just been changed


async def read_rules() -> ScaleDownRules:
    values = await database.pages.run(all_values)
    return ScaleDownRules(
        threshold_percent=values[UNNEEDED_THRESHOLD.key], unneeded_seconds=values[UNNEEDED_SECONDS.key]
    )


class ScaleDownAnswers:
    """Answers for a cluster's nodes, with the settings now in force; shared by the pages that show nodes."""

    def __init__(self, read: Callable[[], Awaitable[ScaleDownRules]] = read_rules) -> None:
        self._read = read
        self._rules: ScaleDownRules | None = None
        self._read_at = float("-inf")

    def forget(self) -> None:
        """Ask for the settings again at the next look."""
        self._read_at = float("-inf")

    async def rules(self) -> ScaleDownRules:
        now = asyncio.get_running_loop().time()
        if self._rules is None or not 0 <= now - self._read_at < RULES_SECONDS:
            self._rules, self._read_at = await self._read(), now
        return self._rules


def scale_down_of(
    reader: ClusterReader, sums: Sequence[NodeSums], rules: ScaleDownRules
) -> Callable[[NodeSums], ScaleDown]:
    """A function from a node to its answer, worked out only for nodes that somebody asks about."""
    groups = reader.groups()
    sizes: dict[str, int] = {}
    for one in sums:
        sizes[one.pool] = sizes.get(one.pool, 0) + 1

    def answer(one: NodeSums) -> ScaleDown:
        pods = reader.pods_on(one.node.metadata.name)
        return scale_down(one.node, pods, group=groups.get(one.pool), group_size=sizes[one.pool], rules=rules)

    return answer


class InfrastructurePage(LivePage[InfrastructureView]):
    name = "infrastructure"
    topics = frozenset({"nodes", "pods", "events", "config_maps", "usage"})
    refusal = "The cluster's nodes are for operators, auditors and admins."
    regions = frozenset({"pools", "nodes", "activity"})

    def __init__(self, answers: ScaleDownAnswers) -> None:
        self._answers = answers
        self._reader: ClusterReader | None = None

    def view(self, query: QueryDict) -> InfrastructureView:
        return InfrastructureView.parse(query.dict())

    def allowed(self, runtime: Runtime, viewer: Viewer, view: InfrastructureView) -> bool:
        return may_observe(viewer)

    def audience(self, viewer: Viewer) -> Hashable:
        return "observers"

    async def fragments(
        self, runtime: Runtime, viewer: Viewer, view: InfrastructureView, now: datetime
    ) -> Sequence[Fragment]:
        rules = await self._answers.rules()
        reader = self._reader
        if reader is None or reader.runtime is not runtime:
            reader = self._reader = ClusterReader(runtime)
        sums = reader.sums()
        return [
            totals(sums),
            *pool_cards(sums, reader.groups(), reader.pending()),
            *node_rows(sums, view, scale_down_of(reader, sums, rules)),
            *activity(runtime.events.from_component(AUTOSCALER)),
        ]


SCALE_DOWN = ScaleDownAnswers()
INFRASTRUCTURE = InfrastructurePage(SCALE_DOWN)
