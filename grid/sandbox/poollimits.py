"""The pools with their minimum and maximum as they are now: of the command line at first, later as somebody has set them, also after a
restart."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import msgspec

from grid.sandbox.apiserver.certificates import write_private
from grid.sandbox.pools import NodePool

logger = logging.getLogger(__name__)

MOST_NODES = 1000


class WrongLimits(Exception):
    """The limits cannot be; the message says why."""


class LimitsChanged(Exception):
    """Somebody has set other limits meanwhile."""


class NodePools(Sequence[NodePool]):
    """A live sequence; who keeps it sees the limits of now. They are stored in `file`; one that is damaged says nothing."""

    def __init__(self, pools: Sequence[NodePool], file: Path) -> None:
        self._file = file
        stored = _load(file)
        self._pools = {
            pool.name: _limited(pool, *stored.get(pool.name, (pool.minimum, pool.maximum))) for pool in pools
        }

    @overload
    def __getitem__(self, index: int) -> NodePool: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[NodePool]: ...
    def __getitem__(self, index: int | slice) -> NodePool | Sequence[NodePool]:
        return tuple(self._pools.values())[index]

    def __len__(self) -> int:
        return len(self._pools)

    def state(self) -> list[dict[str, Any]]:
        return [{"name": pool.name, "minimum": pool.minimum, "maximum": pool.maximum} for pool in self]

    def limit(self, name: str, minimum: int, maximum: int, *, was: tuple[int, int]) -> None:
        """Set and store the limits of a pool that has those of `was`. Raise KeyError, WrongLimits, LimitsChanged, or the disk's OSError."""
        pool = self._pools[name]
        if not 0 <= minimum <= maximum <= MOST_NODES or maximum == 0:
            raise WrongLimits(f"The minimum is at most the maximum, which is from 1 to {MOST_NODES:,}.")
        if (pool.minimum, pool.maximum) != was:
            raise LimitsChanged(
                f"The pool's limits were changed meanwhile: now {pool.minimum} to {pool.maximum} nodes."
            )
        pools = {**self._pools, name: _limited(pool, minimum, maximum)}
        write_private(self._file, json.dumps({each.name: [each.minimum, each.maximum] for each in pools.values()}))
        self._pools = pools
        logger.info("pool=%s has from %d to %d nodes from now on", name, minimum, maximum)


def _limited(pool: NodePool, minimum: int, maximum: int) -> NodePool:
    return replace(pool, minimum=minimum, maximum=maximum, initial=min(max(pool.initial, minimum), maximum))


def _load(file: Path) -> Mapping[str, tuple[int, int]]:
    try:
        stored = msgspec.json.decode(file.read_bytes(), type=dict[str, tuple[int, int]])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as problem:
        logger.warning("the stored limits of pools are not used: %s", problem)
        return {}
    return {name: limits for name, limits in stored.items() if 0 <= limits[0] <= limits[1] <= MOST_NODES}
