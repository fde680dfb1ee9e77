"""An index of pods by owner, and the expectations of a controller until the mirror shows their effect."""

from collections.abc import Iterable
from typing import Any

from grid.core.errors import GridError, NotAllowed
from grid.sandbox.client import Clock, Object, answer_of, controller_of, is_terminating, uid_of

_GIVE_UP_SECONDS = 60.0


class Expectations:
    """Creations and deletions that the server has accepted and the mirror has not shown yet, per owner.

    While an owner has some, the mirror is behind, and counting its pods would create or delete too many. An
    expectation that the mirror never shows (created and gone between two lists) ends after a minute. A pod that came
    and went while its creation was being answered is never seen among the owner's pods, so its uid is remembered for
    as long.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._created: dict[str, dict[str, float]] = {}
        self._deleted: dict[str, dict[str, float]] = {}
        self._left: dict[str, float] = {}

    def created(self, owner: str, uid: str) -> None:
        self._created.setdefault(owner, {})[uid] = self._clock.monotonic() + _GIVE_UP_SECONDS

    def deleted(self, owner: str, uid: str) -> None:
        self._deleted.setdefault(owner, {})[uid] = self._clock.monotonic() + _GIVE_UP_SECONDS

    def left(self, uid: str) -> None:
        """Record that, in the mirror, this pod vanished or changed its owner."""
        now = self._clock.monotonic()
        self._left[uid] = now + _GIVE_UP_SECONDS
        while (oldest := next(iter(self._left))) and self._left[oldest] <= now:
            del self._left[oldest]

    def settle(self, owner: str, visible: Iterable[Object]) -> bool:
        """Remove the expectations that the mirror now shows; return True when none is left."""
        now = self._clock.monotonic()
        pods = {uid_of(pod): pod for pod in visible}
        shown = pods.keys() | self._left.keys()
        waiting = {
            uid: until for uid, until in self._created.pop(owner, {}).items() if uid not in shown and until > now
        }
        leaving = {
            uid: until
            for uid, until in self._deleted.pop(owner, {}).items()
            if uid in pods and not is_terminating(pods[uid]) and until > now
        }
        if waiting:
            self._created[owner] = waiting
        if leaving:
            self._deleted[owner] = leaving
        return not waiting and not leaving

    def forget(self, owner: str) -> None:
        self._created.pop(owner, None)
        self._deleted.pop(owner, None)


class PodsByOwner:
    """Pods by the uid of their controller, and those without one by namespace; kept up to date by the pods mirror."""

    def __init__(self) -> None:
        self._owned: dict[str, dict[str, Object]] = {}
        self._orphans: dict[str, dict[str, Object]] = {}

    def changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            shelf, key = self._shelf(old)
            pods = shelf.get(key, {})
            pods.pop(uid_of(old), None)
            if not pods:
                shelf.pop(key, None)
        if new is not None:
            shelf, key = self._shelf(new)
            shelf.setdefault(key, {})[uid_of(new)] = new

    def of(self, owner_uid: str) -> list[Object]:
        return list(self._owned.get(owner_uid, {}).values())

    def orphans(self, namespace: str) -> list[Object]:
        return list(self._orphans.get(namespace, {}).values())

    def _shelf(self, pod: dict[str, Any]) -> tuple[dict[str, dict[str, Object]], str]:
        owner = controller_of(pod)
        if owner is not None:
            return self._owned, owner["uid"]
        return self._orphans, pod["metadata"].get("namespace", "")


def namespace_is_ending(error: GridError) -> bool:
    """Return True when something was refused because its namespace is being deleted, which everybody expects."""
    details = answer_of(error).details
    causes = (details.causes if details else None) or ()
    return isinstance(error, NotAllowed) and any(cause.reason == "NamespaceTerminating" for cause in causes)
