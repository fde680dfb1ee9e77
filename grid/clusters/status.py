"""The controller's knowledge of a running cluster, kept in the `status` of its row. It is written with the row's revision, so it survives
every controller and is never written from old knowledge."""

from datetime import datetime
from typing import Any

import msgspec

from grid.core.decoding import prepared


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`head_pod` is the uid of the head that was last seen ready. `restart_taken_up` is the time of the last request for a new head that
    was taken up, and `restart_pod` the uid of the head that it was about ("" for none): each is executed once, and no clocks are
    compared."""

    head_address: str = ""
    head_pod: str = ""
    restart_taken_up: datetime | None = None
    restart_pod: str = ""


def read(stored: object) -> ClusterStatus:
    """Return the `status` of a row as a value; an empty one when nothing is known yet."""
    return msgspec.convert(stored, prepared(ClusterStatus)) if isinstance(stored, dict) else ClusterStatus()


def with_changes(stored: object, **changes: Any) -> dict[str, Any]:
    status: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(read(stored), **changes))
    return status
