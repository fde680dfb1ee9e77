"""What the controller must remember of a cluster beyond its frozen spec, kept beside it in the row's JSON.

It is written with the row's revision like everything else, so it survives every controller and is never written from old knowledge.
"""

from typing import Any

import msgspec

_KEY = "memory"
_WISH = "restart_head_at"  # written by who asks for a new head; see `grid.launch.changes`


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """`head_pod` is the uid of the head that was last seen ready. `restart_wish` is the wish that was taken up last, and
    `restart_pod` the uid of the head that it was about ("" when there was none): so a wish is granted once, whatever the clocks."""

    head_address: str = ""
    head_pod: str = ""
    restart_wish: str = ""
    restart_pod: str = ""


def read(stored: object) -> Memory:
    """Of the row's `spec`; empty when nothing was remembered yet."""
    return msgspec.convert(stored.get(_KEY, {}), Memory) if isinstance(stored, dict) else Memory()


def remembering(stored: object, **changes: str) -> dict[str, Any]:
    """The JSON for the row's `spec` with these changes to what is remembered."""
    before = stored if isinstance(stored, dict) else {}
    return {**before, _KEY: msgspec.to_builtins(msgspec.structs.replace(read(stored), **changes))}


def restart_wish(stored: object) -> str:
    """The latest wish for a new head, as it was written; "" for none."""
    return str(stored.get(_WISH) or "") if isinstance(stored, dict) else ""
