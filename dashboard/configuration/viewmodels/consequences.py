"""Says in words what changing a setting does at once: who loses what, or that nothing does; pure.

The caller reads what is there now and gives it as plain data; `dashboard.configuration.setting_effects` does so.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import listed, listed_up_to, plural

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Consequence:
    """What a change does at once; `is_loss` when something ends, is deleted or is locked."""

    text: str
    is_loss: bool = False


def time_limit(
    begun: Iterable[tuple[str, datetime]], *, seconds: int, before: int, now: datetime, of_sessions: bool = False
) -> Consequence:
    """Return what a limit of `seconds`, `before` until now, does to those that it holds for, executions or sessions: who they belong to,
    and when they began."""
    if seconds >= before:
        return Consequence(
            _("No session ends now; those under the limit get the longer time.")
            if of_sessions
            else _("No execution ends now; those under the limit get the longer time.")
        )
    owners = Counter(owner for owner, at in begun if now - at > timedelta(seconds=seconds))
    if not owners:
        return Consequence(_("No session would end now.") if of_sessions else _("No execution would end now."))
    total, names = owners.total(), _by_person(owners)
    text = (
        ngettext(
            "{count:,} session would end now: {owners}.",
            "{count:,} sessions would end now: {owners}.",
            total,
            owners=names,
        )
        if of_sessions
        else ngettext(
            "{count:,} execution would end now: {owners}.",
            "{count:,} executions would end now: {owners}.",
            total,
            owners=names,
        )
    )
    return Consequence(text, is_loss=True)


def slots_per_user(held: Mapping[str, int], waiting: Iterable[int], *, limit: int, before: int) -> Consequence:
    """Return what a limit of slots does. `held` are the slots that each person holds, `waiting` those that each queued launch needs."""
    if limit >= before:
        return Consequence(_("Queued executions that fit start at once."))
    above = Counter({name: slots for name, slots in held.items() if slots > limit})
    names = [f"{name} ({plural(slots, 'slot', 'slots')})" for name, slots in above.most_common()]
    parts = [
        ngettext(
            "{count:,} person is above it: {names}. Their running executions continue; new ones wait.",
            "{count:,} people are above it: {names}. Their running executions continue; new ones wait.",
            len(above),
            names=listed_up_to(MOST_NAMED, names),
        )
        if above
        else _("Nobody is above the limit.")
    ]
    if stuck := sum(slots > limit for slots in waiting):
        parts.append(
            ngettext(
                "{count:,} queued launch needs more slots than that and cannot start.",
                "{count:,} queued launches need more slots than that and cannot start.",
                stuck,
            )
        )
    if not limit:
        parts.append(_("Nobody can start anything."))
    return Consequence(" ".join(parts), is_loss=bool(above or stuck or not limit))


def queue_limit(waiting: int, *, limit: int) -> Consequence:
    """Return what a limit of the queue does while so many launches wait; a pair counts once."""
    queue, text = _("The queue is empty"), _("{queue}. Launches that would have to wait are refused.")
    if waiting:
        queue = ngettext("{count:,} launch waits now", "{count:,} launches wait now", waiting)
        text = _("{queue}; queued ones stay. Launches that would have to wait are refused.")
    if waiting < limit:
        return Consequence(_("{queue}; there is room for {limit:,} more.", queue=queue, limit=limit - waiting))
    return Consequence(text.format(queue=queue), is_loss=True)


def login_locks(before: Collection[str], after: Collection[str]) -> Consequence:
    """Return which locks of logins begin and end, each in words."""
    begin, end = [lock for lock in after if lock not in before], [lock for lock in before if lock not in after]
    parts = []
    if begin:
        parts.append(
            ngettext(
                "{count:,} login would be locked now: {names}.",
                "{count:,} logins would be locked now: {names}.",
                len(begin),
                names=listed_up_to(MOST_NAMED, begin),
            )
        )
    if end:
        parts.append(
            ngettext(
                "{count:,} login would be unlocked now: {names}.",
                "{count:,} logins would be unlocked now: {names}.",
                len(end),
                names=listed_up_to(MOST_NAMED, end),
            )
        )
    return Consequence(" ".join(parts) or _("No login is locked or unlocked now."), is_loss=bool(begin))


def retention(expired: int, *, days: int, before: int, counted: Callable[[int], str], at_most: int) -> Consequence:
    """Return what keeping rows for `days` deletes; 0 is for ever. `expired` rows are older, counted up to one more than `at_most`;
    `counted` says a number of them."""
    if not days or 0 < before <= days:
        return Consequence(_("Nothing is deleted now. Earlier deletions are not undone."))
    if not expired:
        return Consequence(_("Nothing is old enough yet."))
    count = _("More than {rows}", rows=counted(at_most)) if expired > at_most else counted(expired)
    return Consequence(_("{rows} would be deleted within the hour.", rows=count), is_loss=True)


def maximum_workers(running: Iterable[tuple[str, int]], *, limit: int) -> Consequence:
    """Return what a limit of workers does to running clusters: their owners, and to how many workers each may grow."""
    owners = Counter(owner for owner, workers in running if workers > limit)
    if not owners:
        return Consequence(_("Applies to new and resized clusters; no running one may grow beyond it."))
    return Consequence(
        ngettext(
            "{count:,} running cluster may grow beyond it: {owners}. It keeps its maximum; it applies to new and resized ones.",
            "{count:,} running clusters may grow beyond it: {owners}. They keep their maximum; it applies to new and resized ones.",
            owners.total(),
            owners=_by_person(owners),
        )
    )


def followers(text: str, own: Iterable[str]) -> str:
    """Add to a consequence of a value for all frameworks which of them have a value of their own."""
    labels = sorted(own)
    if not labels:
        return text
    own = ngettext("{names} has its own value.", "{names} have their own values.", len(labels), names=listed(labels))
    return f"{text} {own}"


def _by_person(owners: Counter[str]) -> str:
    ordered = sorted(owners.items(), key=lambda owner: (-owner[1], owner[0]))
    return listed_up_to(MOST_NAMED, [_("{count:,} of {name}", count=count, name=name) for name, count in ordered])
