"""Says in words what changing a setting does at once: who loses what, or that nothing does; pure.

The caller reads what is there now and gives it as plain data; `dashboard.setting_effects` does so.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from grid.wording import listed, listed_up_to, plural

MOST_NAMED = 5
FROM_NOW_ON = "Applies to clusters launched from now on; running ones keep theirs."
PROPOSAL = "Changes what the launch form proposes; running clusters keep theirs."
SHOWN_ONLY = "Changes only what Infrastructure shows."
ANNOUNCED = "Applies to running executions too. Nothing stops at once: each stop is announced before."
NEW_FRONTS = "Applies to workspaces and apps launched from now on; running ones keep what they have."
WARM_NODES = "Applies within half a minute: placeholders come or go, and the autoscaler follows."
NEW_UPLOADS = "Applies to uploads from now on; files that are there stay."
NEW_FILES = "Applies to workspaces and jobs launched from now on; files that are kept already stay."
NEW_VOLUMES = "Applies to volumes claimed from now on; existing ones keep their size."


@dataclass(frozen=True, slots=True)
class Consequence:
    """What a change does at once; `is_loss` when something ends, is deleted or is locked."""

    text: str
    is_loss: bool = False


def time_limit(
    begun: Iterable[tuple[str, datetime]], *, seconds: int, before: int, now: datetime, noun: str = "execution"
) -> Consequence:
    """Return what a limit of `seconds`, `before` until now, does to those that it holds for: who they belong to, and when they began."""
    if seconds >= before:
        return Consequence(f"No {noun} ends now; those under the limit get the longer time.")
    owners = Counter(owner for owner, at in begun if now - at > timedelta(seconds=seconds))
    if not owners:
        return Consequence(f"No {noun} would end now.")
    return Consequence(f"{plural(owners.total(), noun)} would end now: {_by_person(owners)}.", is_loss=True)


def slots_per_user(held: Mapping[str, int], waiting: Iterable[int], *, limit: int, before: int) -> Consequence:
    """Return what a limit of slots does. `held` are the slots that each person holds, `waiting` those that each queued launch needs."""
    if limit >= before:
        return Consequence("Queued executions that fit start at once.")
    above = Counter({name: slots for name, slots in held.items() if slots > limit})
    parts = []
    if above:
        names = listed_up_to(MOST_NAMED, [f"{name} ({plural(slots, 'slot')})" for name, slots in above.most_common()])
        are = "person is" if len(above) == 1 else "people are"
        parts.append(f"{len(above):,} {are} above it: {names}. Their running executions continue; new ones wait.")
    else:
        parts.append("Nobody is above the limit.")
    if stuck := sum(slots > limit for slots in waiting):
        needs = "needs" if stuck == 1 else "need"
        parts.append(
            f"{plural(stuck, 'queued launch', 'queued launches')} {needs} more slots than that and cannot start."
        )
    if not limit:
        parts.append("Nobody can start anything.")
    return Consequence(" ".join(parts), is_loss=bool(above or stuck or not limit))


def queue_limit(waiting: int, *, limit: int) -> Consequence:
    """Return what a limit of the queue does while so many launches wait; a pair counts once."""
    queue = "The queue is empty" if not waiting else f"{plural(waiting, 'launch waits', 'launches wait')} now"
    if waiting < limit:
        return Consequence(f"{queue}; there is room for {limit - waiting:,} more.")
    stay = "; queued ones stay" if waiting else ""
    return Consequence(f"{queue}{stay}. Launches that would have to wait are refused.", is_loss=True)


def login_locks(before: Collection[str], after: Collection[str]) -> Consequence:
    """Return which locks of logins begin and end, each in words."""
    begin, end = [lock for lock in after if lock not in before], [lock for lock in before if lock not in after]
    parts = [
        f"{plural(len(locks), 'login')} would be {verb} now: {listed_up_to(MOST_NAMED, locks)}."
        for locks, verb in ((begin, "locked"), (end, "unlocked"))
        if locks
    ]
    return Consequence(" ".join(parts) or "No login is locked or unlocked now.", is_loss=bool(begin))


def retention(expired: int, *, days: int, before: int, noun: str, at_most: int) -> Consequence:
    """Return what keeping rows for `days` deletes; 0 is for ever. `expired` rows are older, counted up to one more than `at_most`."""
    if not days or 0 < before <= days:
        return Consequence("Nothing is deleted now. Earlier deletions are not undone.")
    if not expired:
        return Consequence("Nothing is old enough yet.")
    count = f"More than {at_most:,} {noun}s" if expired > at_most else plural(expired, noun)
    return Consequence(f"{count} would be deleted within the hour.", is_loss=True)


def maximum_workers(running: Iterable[tuple[str, int]], *, limit: int) -> Consequence:
    """Return what a limit of workers does to running clusters: their owners, and to how many workers each may grow."""
    owners = Counter(owner for owner, workers in running if workers > limit)
    if not owners:
        return Consequence("Applies to new and resized clusters; no running one may grow beyond it.")
    keep = "It keeps its maximum" if owners.total() == 1 else "They keep their maximum"
    return Consequence(
        f"{plural(owners.total(), 'running cluster')} may grow beyond it: {_by_person(owners)}. {keep}; it applies to new and resized ones."
    )


def followers(text: str, own: Iterable[str]) -> str:
    """Add to a consequence of a value for all frameworks which of them have a value of their own."""
    labels = sorted(own)
    if not labels:
        return text
    return f"{text} {listed(labels)} {'has its own value' if len(labels) == 1 else 'have their own values'}."


def _by_person(owners: Counter[str]) -> str:
    return listed_up_to(
        MOST_NAMED,
        [f"{count:,} of {name}" for name, count in sorted(owners.items(), key=lambda one: (-one[1], one[0]))],
    )
