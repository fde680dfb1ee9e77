"""A node's allocatable amounts: its capacity minus a reserve for the node itself. Pure."""

from collections.abc import Mapping
from decimal import Decimal

from grid.core.quantity import millicores, parse_quantity, whole

_CPU_RESERVE_MILLI = 80
_MEMORY_RESERVE = 2**30
_SMALL_NODE_SHARE = 16
_DISK_SHARE = Decimal("0.9")
_KI = 1024


def allocatable_of(capacity: Mapping[str, str]) -> dict[str, str]:
    """Return the capacity minus 80 millicores and 1 GiB (at most a sixteenth of each) and a tenth of the disk."""
    result = dict(capacity)
    if "cpu" in capacity:
        cpu = millicores(capacity["cpu"])
        result["cpu"] = f"{cpu - min(_CPU_RESERVE_MILLI, cpu // _SMALL_NODE_SHARE)}m"
    if "memory" in capacity:
        memory = whole(capacity["memory"])
        result["memory"] = f"{(memory - min(_MEMORY_RESERVE, memory // _SMALL_NODE_SHARE)) // _KI}Ki"
    if "ephemeral-storage" in capacity:
        result["ephemeral-storage"] = str(int(parse_quantity(capacity["ephemeral-storage"]) * _DISK_SHARE))
    return result
