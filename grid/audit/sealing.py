"""Seals the entries of the audit log into their chain, drops the oldest, and verifies the rest, on the database.

An entry is written in the transaction of the change that it tells of, by any web process or controller. It cannot be chained there: each
would have to wait for the one before to commit, so all launches would go one by one, or two would follow the same entry and fork the
chain. So entries are sealed afterwards, by the leading controller, a small batch in a transaction. A sealed entry has a `number`, its
place in the chain. That is not its id: on PostgreSQL an id is given out before the commit, so a lower id may appear after a higher one
was sealed. It is then sealed next, and nothing is renumbered. Until an entry is sealed nothing shows a change of it, so the page and the
command say how many are not.

Two leaders at once, or one that is killed half-way, do no harm: the row with the chain's ends is locked meanwhile, the step moves it only
from where it found it, and a number exists once; all of a batch is stored or nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import takewhile

from django.db import transaction
from django.db.models import QuerySet

from grid.audit.chain import GENESIS, ChainBroken, Link, SealedEntry, follow, hash_of
from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask
from grid.database.seam import Database
from grid.models import AuditChain, AuditEntry

logger = logging.getLogger(__name__)

PERIOD_SECONDS = 10.0
PAUSE_SECONDS = 0.1  # for other writers
BATCH = 200
VERIFIED_AT_ONCE = 2000
MOST_COUNTED = 10_000
_MOVED = _("The audit log's chain was moved by another controller. Nothing is lost, and it is tried again.")
_CHAIN = 1  # the key of the one row


@dataclass(frozen=True, slots=True)
class Verified:
    count: int
    anchor: Link
    head: Link


def unsealed_count() -> int:
    """Return how many entries are not sealed; MOST_COUNTED + 1 for more than that."""
    return _unsealed().order_by()[: MOST_COUNTED + 1].count()


def head() -> Link:
    return _ends()[1]


def seal(now: datetime, at_most: int = BATCH) -> int:
    """Seal the next entries and return their number; 0 when all are sealed."""
    unsealed = _unsealed().order_by("pk")
    if not unsealed.exists():
        return 0
    with transaction.atomic():
        chain = _locked()
        end = Link(chain.head_number, chain.head_hash)
        link, rows = end, list(unsealed[:at_most])
        for row in rows:
            row.number, row.sealed_at = link.number + 1, now
            row.hash = hash_of(link.hash, _sealed(row))
            link = Link(row.number, row.hash)
        AuditEntry.objects.bulk_update(rows, ["number", "sealed_at", "hash"])
        here = AuditChain.objects.filter(pk=_CHAIN, head_number=end.number, head_hash=end.hash)
        if not here.update(head_number=link.number, head_hash=link.hash):
            raise ChainBroken(_MOVED)
    return len(rows)


def drop_sealed(limit: datetime, at_most: int) -> int:
    """Delete the oldest entries that were written before `limit`, from the start of the chain; return their number. The last becomes the
    anchor, from where the rest is verified. What is not sealed yet, or stands behind a younger entry, goes later."""
    with transaction.atomic():
        chain = _locked()
        kept = AuditEntry.objects.filter(number__gt=chain.anchor_number).order_by("number")
        oldest = kept.values_list("number", "hash", "at")[:at_most]
        due = list(takewhile(lambda row: row[2] < limit, oldest))
        if due:
            number, hash, _ = due[-1]
            AuditEntry.objects.filter(number__in=[row[0] for row in due]).delete()
            AuditChain.objects.filter(pk=_CHAIN).update(anchor_number=number, anchor_hash=hash)
    return len(due)


def verify(expected: Iterable[Link] = ()) -> Verified:
    """Verify the chain from anchor to head, and that it has the `expected` links, which were kept elsewhere. Raise ChainBroken."""
    start, promised = _ends()
    wanted = {link.number: link.hash for link in expected}
    _compare(start, promised, wanted)
    if promised.number < start.number or AuditEntry.objects.filter(number__lte=start.number).exists():
        there = _("The anchor says that entries up to {number} were deleted by retention, and some exist.")
        raise ChainBroken(there.format(number=start.number))
    link, count = start, 0
    while batch := _next(link):
        link, entries = batch
        for entry in entries:
            link = follow(link, [entry])
            count += 1
            _compare(link, promised, wanted)
    missing = link.number + 1
    if link.number < promised.number:
        head = promised.number
        raise ChainBroken(_("Entry {number} is missing: the chain's head is at {head}.", number=missing, head=head))
    if beyond := [number for number in wanted if number > link.number]:
        sealed = _("Entry {number} is missing: {beyond} was sealed, by the link that you gave.")
        raise ChainBroken(sealed.format(number=missing, beyond=min(beyond)))
    return Verified(count, start, link)


def _compare(link: Link, promised: Link, wanted: dict[int, str]) -> None:
    if link.number == promised.number and link.hash != promised.hash:
        raise ChainBroken(_("Entry {number} is not the one that the chain's head names.", number=link.number))
    if wanted.get(link.number, link.hash) != link.hash:
        again = _("Entry {number} is not the one whose link you gave: it, or one before it, was written again.")
        raise ChainBroken(again.format(number=link.number))


def _next(link: Link) -> "tuple[Link, list[SealedEntry]] | None":
    """Return the entries after the link, and the link that they follow: the anchor, when retention has overtaken; None at the end."""
    rows = list(AuditEntry.objects.filter(number__gt=link.number).order_by("number")[:VERIFIED_AT_ONCE])
    if rows and rows[0].number == link.number + 1:
        return link, [_sealed(row) for row in rows]
    # Read after the entries, so an entry that retention deleted before it was read is behind this anchor.
    anchor = _ends()[0]
    if anchor.number > link.number:
        return anchor, [entry for entry in map(_sealed, rows) if entry.number > anchor.number]
    return (link, [_sealed(row) for row in rows]) if rows else None


def _ends() -> tuple[Link, Link]:
    chain = AuditChain.objects.filter(pk=_CHAIN).first() or AuditChain(anchor_hash=GENESIS, head_hash=GENESIS)
    return Link(chain.anchor_number, chain.anchor_hash), Link(chain.head_number, chain.head_hash)


def _unsealed() -> QuerySet[AuditEntry]:
    return AuditEntry.objects.filter(number__isnull=True)


def _locked() -> AuditChain:
    AuditChain.objects.get_or_create(pk=_CHAIN, defaults={"anchor_hash": GENESIS, "head_hash": GENESIS})
    return AuditChain.objects.select_for_update(no_key=True).get(pk=_CHAIN)


def _sealed(row: AuditEntry) -> SealedEntry:
    if row.number is None or row.sealed_at is None:
        raise ChainBroken(_("The entry with id {pk} has a number and no time of sealing.", pk=row.pk))
    return SealedEntry(**{field.name: getattr(row, field.name) for field in fields(SealedEntry)})


def periodic(database: Database, clock: Callable[[], datetime]) -> PeriodicTask:
    """Return the task that seals all entries that are not sealed yet, a batch in a transaction. The link that is logged is for keeping
    elsewhere: with it `verify_audit --link` finds that somebody wrote the whole chain anew."""

    async def run_once() -> None:
        total = 0
        while sealed := await database(seal, clock()):
            total += sealed
            await asyncio.sleep(PAUSE_SECONDS)
        if total:
            logger.info("audit log sealed entries=%d link=%s", total, await database(head))

    return PeriodicTask("audit sealing", PERIOD_SECONDS, run_once, work=lambda now: _unsealed())
