"""The page of a node pool's minimum and maximum: where they are set, and what others would do; pure."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from dashboard.shell.viewmodels.live import ViewModel
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import listed_up_to, money, plural
from grid.diagnosis.nodeshapes import PoolShapes
from grid.kube.pools import NodeGroup
from grid.tiers.tierdoctor import TierRequest, pack

MOST_NODES = 1000
_NAMED = 3


class PricedTier(ViewModel, frozen=True, gc=False):
    name: str
    request: TierRequest
    cost_per_hour: Decimal


class Limits(ViewModel, frozen=True, gc=False):
    minimum: int
    maximum: int

    def __str__(self) -> str:
        return f"{self.minimum}-{self.maximum}"


def parse_limits(minimum: str, maximum: str) -> tuple[Limits | None, str]:
    numbers = [text.strip() for text in (minimum, maximum)]
    if not all(text.isascii() and text.isdigit() and len(text) < 6 for text in numbers):
        return None, _("Minimum and maximum are whole numbers of nodes.")
    limits = Limits(*map(int, numbers))
    if not limits.minimum <= limits.maximum or not 1 <= limits.maximum <= MOST_NODES:
        return None, _("The minimum is at most the maximum, which is from 1 to {most_nodes:,}.", most_nodes=MOST_NODES)
    return limits, ""


def preview(
    group: NodeGroup, limits: Limits, shapes: PoolShapes, tiers: Sequence[PricedTier], waiting: int
) -> Iterator[str]:
    """Yield what other limits would do; `waiting` pods wait for a node of the pool now."""
    price = _node_price(shapes, tiers)
    if limits.minimum > group.minimum:
        kept = ngettext(
            "At least {count:,} node is kept, also while nothing runs there.",
            "At least {count:,} nodes are kept, also while nothing runs there.",
            limits.minimum,
        )
        if made := max(0, limits.minimum - group.target):
            started = ngettext(
                "{count:,} node is started at once{price}.",
                "{count:,} nodes are started at once{price}.",
                made,
                price=_for(price, made),
            )
            kept = f"{started} {kept}"
        yield kept
    if limits.minimum < group.minimum:
        yield _("Nodes that nothing needs are removed by the autoscaler after its delay, down to the new minimum.")
    if limits.maximum > group.maximum:
        more = limits.maximum - group.maximum
        yield ngettext(
            "Up to {count:,} more node may be started when pods ask for them{price}.",
            "Up to {count:,} more nodes may be started when pods ask for them{price}.",
            more,
            price=_for(price, more),
        )
    if limits.maximum < group.maximum:
        yield from _lower_maximum(group, limits, _places(shapes, tiers), waiting)


def _lower_maximum(group: NodeGroup, limits: Limits, places: Mapping[str, int], waiting: int) -> Iterator[str]:
    fewer = group.maximum - limits.maximum
    room = [_("{count:,} of {tier}", count=fewer * count, tier=name) for name, count in places.items()]
    yield _("At its largest the pool has {nodes} less.", nodes=plural(fewer, "node", "nodes"))
    if room:
        yield _("That is less room for executions: {tiers}, each counted alone.", tiers=listed_up_to(_NAMED, room))
    if group.target > limits.maximum:
        yield _(
            "The pool has {nodes} now. None is removed for this, and nothing that runs is affected; "
            "no node is started until there are fewer than {maximum:,}.",
            nodes=plural(group.target, "node", "nodes"),
            maximum=limits.maximum,
        )
    if waiting and group.target >= limits.maximum:
        yield ngettext(
            "{count:,} pod that waits for a node of the pool now must wait until others end.",
            "{count:,} pods that wait for a node of the pool now must wait until others end.",
            waiting,
        )


def _places(shapes: PoolShapes, tiers: Sequence[PricedTier]) -> Mapping[str, int]:
    """Return how many executions of each tier an empty node of the most frequent shape takes; nothing while no shape is known."""
    shape = shapes.shapes[0] if shapes.shapes else shapes.remembered
    if shape is None:
        return {}
    return {tier.name: count for tier in tiers if (count := pack(tier.request, shape).takes)}


def _node_price(shapes: PoolShapes, tiers: Sequence[PricedTier]) -> tuple[Decimal, str]:
    """Return what a full node costs an hour by its dearest tier, and that tier's name; the price of the machine itself is not known."""
    places = _places(shapes, tiers)
    prices = [(places[tier.name] * tier.cost_per_hour, tier.name) for tier in tiers if tier.name in places]
    return max(prices, default=(Decimal(0), ""))


def _for(price: tuple[Decimal, str], nodes: int) -> str:
    amount, tier = price
    return (
        _(": {amount} an hour by the price of the tier {tier}", amount=money(amount * nodes), tier=tier)
        if amount and nodes
        else ""
    )
