"""Node pools as sums over their nodes, updated incrementally, so that the cost of a change does not depend on the pool's size."""

from collections import Counter
from collections.abc import Iterable, Mapping

from dashboard.nodes.viewmodels.nodes import NodeSums, Share, shares
from dashboard.shell.viewmodels.live import Fragment, ViewModel, element_id
from dashboard.shell.viewmodels.states import Severity
from dashboard.shell.viewmodels.window import OrderedWindow
from grid.core.labels import WARM_UNTIL
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import listed, plural
from grid.diagnosis.requests import Amounts
from grid.kube.objects import Pod
from grid.kube.pools import NodeGroup

TILES_PER_POOL = 40
_LONGEST_ERROR = 200


class Tile(ViewModel, frozen=True, gc=False):
    """One node as a small square, filled by its requested share in tenths; `name` is "" for a node that may be added."""

    name: str
    severity: Severity
    tenths: int
    title: str


class PoolCard(ViewModel, frozen=True, gc=False):
    name: str
    is_platform: bool
    sizes: str
    has_limits: bool
    coming: str
    failed: str
    pending: str
    warm: str
    shares: tuple[Share, ...]
    has_metrics: bool
    tiles: tuple[Tile, ...]
    more: int


class PoolSums:
    """The sums over a pool's nodes. `version` grows with each change; `used` is the sum over the nodes with metrics."""

    def __init__(self) -> None:
        self.version = 0
        self.platform = self.ready = self.measured = 0
        self.requested = self.allocatable = self.used = Amounts()
        self.nodes: OrderedWindow[NodeSums] = OrderedWindow(sort_key=lambda sums: sums.by_age)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def is_platform(self) -> bool:
        """True when it has nodes, and all of them are platform nodes."""
        return 0 < len(self) == self.platform

    def add(self, sums: NodeSums) -> None:
        self.nodes.put(sums.name, sums)
        self._count(sums, 1)

    def take_away(self, sums: NodeSums) -> None:
        self.nodes.put(sums.name, None)
        self._count(sums, -1)

    def _count(self, sums: NodeSums, sign: int) -> None:
        self.version += 1
        self.platform += sign * sums.is_platform
        self.ready += sign * (sums.status.severity in ("ok", "neutral"))
        self.requested += sums.requested.times(sign)
        self.allocatable += sums.allocatable.times(sign)
        if sums.used is not None:
            self.measured += sign
            self.used += sums.used.times(sign)


def totals(pools: Mapping[str, PoolSums], *, is_final: bool = True) -> Fragment:
    sentence = _("The nodes are still being counted.")
    if is_final:
        platform = sum(pool.platform for pool in pools.values())
        nodes = plural(sum(map(len, pools.values())) - platform, "compute node", "compute nodes")
        others = plural(platform, "platform node", "platform nodes")
        sentence = _("{compute_nodes} and {platform_nodes}", compute_nodes=nodes, platform_nodes=others)
    return Fragment("totals", "nodes/fragments/totals.html", sentence)


def in_order(names: Iterable[str], pools: Mapping[str, PoolSums]) -> list[str]:
    """Return the names of pools for executions first, then of platform pools, then "" for the nodes without a pool."""
    return sorted(names, key=lambda name: (not name, name in pools and pools[name].is_platform, name))


def pool_card(name: str, pool: PoolSums, group: NodeGroup | None, pending: int, warm: str = "") -> Fragment:
    """Return a pool's card for the region "pools"; `pending` counts the pods that wait for one of its nodes, `warm` tells of its
    placeholders. The pool may be empty."""
    coming = max(0, group.target - len(pool)) if group else 0
    tiles = [_tile(sums) for sums in pool.nodes.page(1, TILES_PER_POOL).items]
    free = min((group.maximum if group else 0) - len(pool), TILES_PER_POOL - len(tiles))
    tiles += [
        Tile("", "wait" if place < coming else "neutral", 0, _("on its way") if place < coming else _("may still come"))
        for place in range(free)
    ]
    card = PoolCard(
        name=name,
        is_platform=pool.is_platform,
        has_limits=group is not None and name != "",
        sizes=_sizes(len(pool), pool.ready, group),
        coming=_("{nodes} on the way", nodes=plural(coming, "node", "nodes")) if coming else "",
        failed=_failed(group),
        pending=_("{pods} waiting for a node", pods=plural(pending, "pod", "pods")) if pending else "",
        warm=warm,
        shares=shares(pool.requested, pool.allocatable, pool.used if pool.measured else None) if pool else (),
        has_metrics=bool(pool.measured),
        tiles=tuple(tiles),
        more=max(0, len(pool) - TILES_PER_POOL),
    )
    return Fragment(element_id("pool", name), "nodes/fragments/pool_card.html", card, region="pools")


def warm_words(placeholders: Iterable[Pod]) -> str:
    """Return how many places a pool's placeholders keep warm, until when, and how many still wait for a node: "2 warm places until 18:00
    (UTC), 1 waits for a node"; "" without any."""
    by_end, waiting = Counter[str](), 0
    for pod in placeholders:
        by_end[pod.metadata.annotations.get(WARM_UNTIL, "")] += 1
        waiting += not pod.spec.node_name
    ends = [
        ngettext("{count:,} warm place until {end}", "{count:,} warm places until {end}", count, end=end)
        if end
        else plural(count, "warm place", "warm places")
        for end, count in sorted(by_end.items())
    ]
    places = listed(ends) if ends else ""
    if not waiting:
        return places
    return ngettext(
        "{places}, {count:,} waits for a node", "{places}, {count:,} wait for a node", waiting, places=places
    )


def _failed(group: NodeGroup | None) -> str:
    if group is None or not group.is_backed_off:
        return ""
    if error := " ".join(group.error.split())[:_LONGEST_ERROR]:
        return _("The cloud could not deliver a node; it is asked again after a while: {error}", error=error)
    return _("The cloud could not deliver a node; it is asked again after a while.")


def _sizes(count: int, ready: int, group: NodeGroup | None) -> str:
    text = plural(count, "node", "nodes")
    if ready < count:
        text = _("{nodes}, {ready} ready", nodes=text, ready=ready)
    if group is None:
        return _("{nodes}; fixed size", nodes=text)
    return _("{nodes}; {minimum} to {maximum} allowed", nodes=text, minimum=group.minimum, maximum=group.maximum)


def _tile(sums: NodeSums) -> Tile:
    share = sums.requested_percent
    title = _("{node}: {state}, {share} % requested", node=sums.name, state=sums.status.word, share=share)
    return Tile(sums.name, sums.status.severity, -(-share // 10), title)
