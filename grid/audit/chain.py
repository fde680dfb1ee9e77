"""The chain of the audit log: each entry has a hash of what it says and of the hash before it; pure.

Whoever changes, removes, inserts or swaps entries would have to compute anew every hash that follows. That is possible for who may write
to the database; it is found by comparing with a hash that was kept elsewhere, such as in the controller's log.

What is hashed is read back from the database first, because a database may store numbers and objects otherwise than they were written.
The account behind the name is not hashed: it is set to nothing when the account is deleted.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from grid.core.translation import gettext as _

GENESIS = "0" * 64  # stands before the first entry
_CHANGED = _(
    "Entry {number} is not as it was sealed, or the hash before it is not: id {id}, {at:%Y-%m-%d %H:%M:%S} UTC, {actor_name!r} {action} "
    "{object_type} {object_id!r}."
)


@dataclass(frozen=True, slots=True)
class Link:
    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> "Link | None":
        """Parse the text that `str` wrote; None when it is none."""
        number, _, hash = text.strip().partition(":")
        is_hash = len(hash) == len(GENESIS) and set(hash) <= set("0123456789abcdef")
        is_number = number.isascii() and number.isdigit() and len(number) < 19
        return cls(int(number), hash) if is_hash and is_number else None


START = Link(0, GENESIS)


@dataclass(frozen=True, slots=True)
class SealedEntry:
    """An entry as it is sealed; `hash` is what was stored for it, "" before."""

    number: int
    id: int
    at: datetime
    sealed_at: datetime
    actor_name: str
    action: str
    object_type: str
    object_id: str
    object_name: str
    changes: Mapping[str, Any]
    hash: str = ""


class ChainBroken(Exception):
    """The chain does not hold; the message names the first entry that is missing or wrong."""


def hash_of(previous: str, entry: SealedEntry) -> str:
    """Return the SHA-256 of the entry and the hash before it, over JSON with sorted keys, no spaces, and ASCII only."""
    content = asdict(entry) | {"previous": previous, "at": _moment(entry.at), "sealed_at": _moment(entry.sealed_at)}
    del content["hash"]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def follow(link: Link, entries: Iterable[SealedEntry]) -> Link:
    """Return the last link of the entries that follow `link`, in the order of their numbers. Raise ChainBroken at the first fault."""
    for entry in entries:
        if entry.number != link.number + 1:
            gap = {"number": link.number + 1, "before": link.number, "after": entry.number}
            raise ChainBroken(_("Entry {number} is missing: after {before} comes {after}.", **gap))
        if entry.hash != hash_of(link.hash, entry):
            raise ChainBroken(_CHANGED.format(**asdict(entry)))
        link = Link(entry.number, entry.hash)
    return link


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
