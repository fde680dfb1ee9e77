"""The Infrastructure page's rows and cards from plain sums, as the page makes them when nothing has changed yet."""

from collections.abc import Callable, Iterable, Mapping

from dashboard.nodes.viewmodels.infrastructure import (
    ROWS_PER_PAGE,
    InfrastructureView,
    fits,
    node_row,
    node_rows,
    row_fragment,
    window_of,
)
from dashboard.nodes.viewmodels.nodes import NodeSums
from dashboard.nodes.viewmodels.pools import PoolSums, in_order, pool_card
from dashboard.shell.viewmodels.live import Fragment
from grid.kube.pools import NodeGroup
from grid.nodes.scaledown import ScaleDown


def rows_of_nodes(
    sums: Iterable[NodeSums], view: InfrastructureView, scale_down_of: Callable[[NodeSums], ScaleDown]
) -> list[Fragment]:
    window = window_of(view)
    for node in sums:
        window.put(node.name, node if fits(node, view, scale_down_of) else None)
    page = window.page(view.page, ROWS_PER_PAGE)
    return node_rows(window, page, view, lambda node: row_fragment(node_row(node, scale_down_of(node))))


def pools_of(sums: Iterable[NodeSums]) -> dict[str, PoolSums]:
    pools: dict[str, PoolSums] = {}
    for node in sums:
        pools.setdefault(node.pool, PoolSums()).add(node)
    return pools


def cards_of(sums: Iterable[NodeSums], groups: Mapping[str, NodeGroup], pending: Mapping[str, int]) -> list[Fragment]:
    pools = pools_of(sums)
    names = in_order({**pools, **groups, **pending}, pools)
    return [pool_card(name, pools.get(name) or PoolSums(), groups.get(name), pending.get(name, 0)) for name in names]
