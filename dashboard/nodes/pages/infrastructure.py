"""The Infrastructure page, live: pools, nodes and the autoscaler's activity, for operators, auditors and admins."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import msgspec
from django.conf import settings
from django.http import QueryDict
from django.utils import timezone

from dashboard.nodes.viewmodels import infrastructure as viewmodel
from dashboard.nodes.viewmodels.nodes import NodeSums, node_sums
from dashboard.nodes.viewmodels.overview import CellMaps
from dashboard.nodes.viewmodels.pool_history import DEFAULT_RANGE
from dashboard.nodes.viewmodels.pools import PoolSums, in_order, pool_card, totals, warm_words
from dashboard.shell.access import Viewer, may_observe
from dashboard.shell.pages.lists import BEHIND_SECONDS, FIRST_PAINT_SECONDS, LiveList, LiveLists
from dashboard.shell.pages.page import LivePage
from dashboard.shell.pages.periodic import PeriodicRead
from dashboard.shell.viewmodels.live import Fragment
from grid.configuration import UNNEEDED_SECONDS, UNNEEDED_THRESHOLD, values_of
from grid.core.translation import gettext as _
from grid.database import threads as database
from grid.diagnosis.requests import Amounts
from grid.kube.hub import Topic
from grid.kube.objects import Node, Pod
from grid.kube.pools import NodeGroup
from grid.nodes.scaledown import ScaleDown, ScaleDownRules, scale_down
from grid.runtime import Runtime
from grid.runtime.caches import awaited_pool, warm_pool


class NodeList(LiveList[NodeSums]):
    """One view, which is the same for all users who may see nodes."""

    def __init__(self, view: viewmodel.InfrastructureView, lists: "NodeLists") -> None:
        super().__init__(viewmodel.window_of(view), viewmodel.ROWS_PER_PAGE)
        self._view = view
        self.lists = lists

    @property
    def bucket(self) -> Hashable:
        return ("pool", self._view.pool) if self._view.pool else "all"

    @property
    def changes_with_time(self) -> bool:
        """True for the filter "removable", which depends on the settings and on the size of a node's pool."""
        return self._view.state == "removable"

    @property
    def basis(self) -> Hashable:
        if not self.changes_with_time:
            return None
        sizes = tuple((name, len(pool)) for name, pool in self.lists.pools.items())
        return self.lists.runtime.config_maps.version, self.lists.rules, sizes

    def narrowed(self, item: NodeSums, now: datetime) -> NodeSums | None:
        return item if viewmodel.fits(item, self._view, self.lists.scale_down) else None


class NodeLists(LiveLists[NodeSums, NodeList]):
    """All lists of nodes of one runtime, used on its event loop only."""

    def __init__(self, runtime: Runtime, rules: ScaleDownRules) -> None:
        super().__init__(runtime.hub, runtime.nodes.name)
        self.runtime = runtime
        self.rules = rules
        self.pools_topic: Topic = (runtime.nodes.name, "sums", "")
        self.pools: dict[str, PoolSums] = {}
        self.cells = CellMaps()
        self._usage_version = -1
        # With what each was made from.
        self._rows: dict[str, tuple[NodeSums, tuple[object, ...], Fragment]] = {}
        self._cards: dict[str, tuple[tuple[object, ...], Fragment]] = {}
        self._dirty.update(dict.fromkeys(runtime.nodes.keys()))  # pools are sums of all
        runtime.nodes.subscribe(self._node_changed)
        runtime.pods.subscribe(self._pod_changed)

    async def list_of(self, view: viewmodel.InfrastructureView, *, within: float | None = None) -> NodeList:
        key = msgspec.structs.replace(view, page=1, range=DEFAULT_RANGE)
        return await self.known_or(key, lambda: NodeList(view, self), within=within)

    def groups(self) -> Mapping[str, NodeGroup]:
        return self.runtime.groups.by_pool()

    def scale_down(self, sums: NodeSums) -> ScaleDown:
        group, size = self.groups().get(sums.pool), self._size(sums.pool)
        pods = self.runtime.pods.by("node", sums.name)
        return scale_down(sums.node, pods, group=group, group_size=size, rules=self.rules)

    def row(self, sums: NodeSums) -> Fragment:
        """Return the node's row, made again when one of its values has changed. What it used lately is drawn then, but is no reason."""
        others = self.groups().get(sums.pool), self._size(sums.pool), self.rules
        known = self._rows.get(sums.name)
        # The same sums, not equal ones: a change of a pod makes new sums, and what of it keeps the node is not in them.
        if known is None or known[0] is not sums or known[1] != others:
            row = viewmodel.node_row(sums, self.scale_down(sums), self.runtime.usage.recent.of(sums.name))
            known = self._rows[sums.name] = sums, others, viewmodel.row_fragment(row)
        return known[2]

    def cards(self) -> list[Fragment]:
        groups, pending = self.groups(), self.pending()
        names = in_order(self.names(), self.pools)
        self._cards = {name: known for name, known in self._cards.items() if name in names}
        return [self._card(name, groups.get(name), pending.get(name, 0)) for name in names]

    def pending(self) -> Mapping[str, int]:
        return self.runtime.pods.counts("awaited_pool")

    def names(self) -> list[str]:
        """Return the pools with nodes, those that the autoscaler may fill, and those that pods wait for."""
        return list({**self.pools, **self.groups(), **self.pending(), **self.runtime.pods.counts("warm_pool")})

    def _card(self, name: str, group: NodeGroup | None, pending: int) -> Fragment:
        pool = self.pools.get(name) or PoolSums()
        known = self._cards.get(name)
        warm = warm_words(self.runtime.pods.by("warm_pool", name)) if name else ""
        made_from = pool.version, group, pending, warm
        if known is None or known[0] != made_from:
            known = self._cards[name] = made_from, pool_card(name, pool, group, pending, warm)
        return known[1]

    def _size(self, pool: str) -> int:
        return len(self.pools[pool]) if pool in self.pools else 0

    # --- What changed ---

    def _now(self) -> datetime:
        return self.runtime.clock()

    def _items_of(self, source: str) -> Mapping[str, NodeSums]:
        node = self.runtime.nodes.get(source)
        if node is None:
            return {}
        requested, usage = self.runtime.room.requested(source), self.runtime.usage.node(source)
        return {source: node_sums(node, requested, usage, pool_label=settings.NODE_POOL_LABEL)}

    def _measured_anew(self) -> Iterable[tuple[str, NodeSums]]:
        """Yield the names and sums of nodes whose measured usage has changed since the last call."""
        version = self.runtime.usage.version
        if self._usage_version == version:
            return
        for name in list(self.items):
            sums, usage = self.items.get(name), self.runtime.usage.node(name)
            used = None if usage is None else Amounts(usage.cpu_millicores, usage.memory_bytes)
            if sums is not None and used != sums.used:
                yield name, msgspec.structs.replace(sums, used=used)
        self._usage_version = version

    def _sources(self, asked: NodeList) -> Sequence[str]:
        match asked.bucket:
            case ("pool", str(pool)):
                return [sums.name for sums in self.pools[pool].nodes] if pool in self.pools else ()
        return super()._sources(asked)

    def _buckets_of(self, item: NodeSums) -> Iterable[Hashable]:
        return "all", ("pool", item.pool)

    def _replaced(self, key: str, old: NodeSums | None, new: NodeSums | None) -> None:
        if old is not None:
            self.pools[old.pool].take_away(old)
            if not self.pools[old.pool]:
                del self.pools[old.pool]
                self._cards.pop(old.pool, None)
        if new is not None:
            self.pools.setdefault(new.pool, PoolSums()).add(new)
        else:
            self._rows.pop(key, None)
        self.cells.replace(old, new)
        self._hub.publish(self.pools_topic)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        for node in filter(None, (old, new)):
            self.mark(node.metadata.name)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        for pod in (old, new):
            if pod is not None and pod.spec.node_name:
                self.mark(pod.spec.node_name)
        if _about_pool(old) != _about_pool(new):
            self._hub.publish(self.pools_topic)


def _about_pool(pod: Pod | None) -> Hashable:
    """Return what a pool's card says of the pod besides its node."""
    if pod is None:
        return None
    return awaited_pool(pod), warm_pool(pod), bool(pod.spec.node_name) and bool(warm_pool(pod))


AUTOSCALER = "cluster-autoscaler"
RULES_SECONDS = 10.0  # how long a page may use old settings after a change
_DEFAULT_RULES = ScaleDownRules(threshold_percent=UNNEEDED_THRESHOLD.default, unneeded_seconds=UNNEEDED_SECONDS.default)


async def read_rules() -> ScaleDownRules:
    percent, seconds = await database.pages.run(values_of, UNNEEDED_THRESHOLD, UNNEEDED_SECONDS)
    return ScaleDownRules(threshold_percent=percent, unneeded_seconds=seconds)


async def rules_in_force(rules: PeriodicRead[ScaleDownRules]) -> ScaleDownRules:
    """Return the settings. While the database hangs these are the last ones, or the defaults: the nodes are not in the database."""
    return await rules.value(RULES_SECONDS, waits=True) or _DEFAULT_RULES


class InfrastructurePage(LivePage[viewmodel.InfrastructureView, NodeList]):
    name = "infrastructure"
    refusal = _("Only operators, auditors and admins can see the cluster's nodes.")
    reads_database = False
    regions = frozenset({"pools", "nodes", "activity"})

    def __init__(self, rules: PeriodicRead[ScaleDownRules]) -> None:
        self._rules = rules
        self._lists: NodeLists | None = None

    def view(self, query: QueryDict) -> viewmodel.InfrastructureView:
        return viewmodel.InfrastructureView.parse(query.dict())

    def allowed(self, runtime: Runtime, viewer: Viewer, view: viewmodel.InfrastructureView) -> bool:
        return may_observe(viewer)

    def audience(self, viewer: Viewer) -> Hashable:
        return "observers"

    async def read(self, runtime: Runtime, viewer: Viewer, view: viewmodel.InfrastructureView) -> NodeList:
        return await (await self.lists_in(runtime)).list_of(view)

    async def read_in_time(self, runtime: Runtime, viewer: Viewer, view: viewmodel.InfrastructureView) -> NodeList:
        return await (await self.lists_in(runtime)).list_of(view, within=FIRST_PAINT_SECONDS)

    def topics(
        self, runtime: Runtime, viewer: Viewer, view: viewmodel.InfrastructureView, nodes: NodeList
    ) -> Collection[Topic]:
        status, autoscaler = runtime.config_maps.name, (runtime.events.name, "component", AUTOSCALER)
        return {nodes.topic, nodes.lists.pools_topic, status, autoscaler, runtime.usage.name}

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: viewmodel.InfrastructureView, nodes: NodeList, now: datetime
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
            *viewmodel.node_rows(nodes.window, page, view, lists.row, progress),
            *viewmodel.activity(runtime.events.from_component(AUTOSCALER)),
        ]

    def tick(self, runtime: Runtime, viewer: Viewer, view: viewmodel.InfrastructureView, nodes: NodeList) -> float:
        return BEHIND_SECONDS if nodes.lists.is_behind(nodes) else self.tick_seconds

    async def lists_in(self, runtime: Runtime) -> NodeLists:
        rules = await rules_in_force(self._rules)
        if self._lists is None or self._lists.runtime is not runtime:
            self._lists = NodeLists(runtime, rules)
        self._lists.rules = rules
        return self._lists


SCALE_DOWN = PeriodicRead(read_rules, clock=timezone.now)  # shared by the pages that show nodes
INFRASTRUCTURE = InfrastructurePage(SCALE_DOWN)
