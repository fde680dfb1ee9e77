"""Reads the shapes of the pools' nodes from the watch caches, in small steps: a cluster may have thousands of nodes."""

from dataclasses import replace

from grid.core.workqueue import in_slices
from grid.diagnosis.nodeshapes import PoolShapes, ShapeTally
from grid.runtime.caches import DataPlaneCaches

NODES_AT_ONCE = 200  # some 2 ms of the loop


async def pool_shapes(caches: DataPlaneCaches, *, only: str | None = None) -> dict[str, PoolShapes]:
    """Return every pool that has nodes now or may get some, by name; with `only`, the nodes of that pool alone are counted, and
    of the others nothing is known but their maximum."""
    groups = caches.groups.by_pool()
    tallies = {name: ShapeTally() for name in groups}
    for pool in list(caches.nodes.values_of("pool")):
        tally = tallies.setdefault(pool, ShapeTally())
        if only is not None and pool != only:
            continue
        async for node in in_slices(caches.nodes.by("pool", pool), NODES_AT_ONCE):
            tally.count(node, caches.room.own(node.metadata.name))
    pools = {}
    for name in sorted(tallies):
        maximum, template = groups[name].maximum if name in groups else 0, caches.templates.get(name)
        pools[name] = PoolShapes(name, tallies[name].shapes(), maximum)
        if template is not None:
            pools[name] = replace(pools[name], remembered=template.shape, seen=template.seen)
    return pools
