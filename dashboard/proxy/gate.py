"""Decides for each request whether it may pass, and to which pod.

A grant is read from the database on first use, again at once when its pod is gone, and together with all grants in use once a second,
in a few queries; a grant that has ended closes its open connections. So a logout, a stop and a change of members take effect within
two seconds in every proxy process, and a request needs no query. While the database is slow or down, known grants are trusted for 30
seconds; after that no request passes.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from operator import attrgetter
from typing import Protocol

from dashboard.proxy.pods import Entrance
from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.sharing.grants import Key, Passage, Use

logger = logging.getLogger(__name__)

RECHECK_SECONDS = 1.0
_TRUST_SECONDS = 30.0  # how long a grant is trusted while the database is unavailable
_REFUSAL_SECONDS = 2.0  # a refusal is not cached longer, because another process may exchange a ticket
_UNUSED_SECONDS = 10.0  # how long an unused grant is kept; an idle JupyterLab still sends a request every few seconds
_TOUCH_SECONDS = 60.0
_ANSWER_SECONDS = 10.0  # the timeout of a query; the database may never answer
_ASKED_AT_ONCE = 200
_REMEMBER_AT_MOST = 10_000
# Longer than any secret that we issue. Longer ones, which anybody may send, are not kept: 10,000 of them would fill the memory.
_LONGEST = 100


Clock = Callable[[], float]
PodsOf = Callable[[str], Sequence[Entrance]]  # by an execution's id
_is_leaving: Callable[[Entrance], bool] = attrgetter("is_leaving")


class CannotTell(GridError):
    """Raised when the database is unavailable, so that a grant cannot be checked."""


@dataclass(frozen=True, slots=True)
class Target:
    """One pod's web server, the port of its front (0 without one), and whether the program has crashed and waits for its restart."""

    address: str
    port: int
    front_port: int = 0
    has_crashed: bool = False

    @property
    def netloc(self) -> str:
        """The address that the program itself knows."""
        return self._netloc(self.port)

    @property
    def entrance(self) -> str:
        """The address to send requests to."""
        return self._netloc(self.front_port or self.port)

    def _netloc(self, port: int) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{port}"


class Grants(Protocol):
    """The database's part of the check, which runs off the event loop."""

    def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> Awaitable[str | None]: ...

    def passages(self, keys: Collection[Key]) -> Awaitable[Mapping[Key, Passage]]: ...

    def touch(self, used: Collection[Use]) -> Awaitable[None]: ...


class Ending(asyncio.Event):
    """Set when the right to an execution ends; `cuts` are called then."""

    def __init__(self) -> None:
        super().__init__()
        self.cuts: set[Callable[[], None]] = set()

    def set(self) -> None:
        super().set()
        for cut in tuple(self.cuts):
            cut()


@dataclass(slots=True)
class _Answer:
    passage: Passage | None
    confirmed_at: float
    used_at: float
    ended: Ending = field(default_factory=Ending)


class GrantGate:
    """A gate on the stored grants and the watched pods (for a cluster, its head). `run()` keeps its cached grants up to date."""

    def __init__(self, grants: Grants, pods_of: PodsOf, *, namespace: str, clock: Clock = time.monotonic) -> None:
        """Create the gate. `pods_of` finds pods by a label, which is trusted in `namespace` only: elsewhere others may write it."""
        self._grants, self._pods_of = grants, pods_of
        self._namespace, self._clock = f"{namespace}/", clock
        self._answers: dict[Key, _Answer] = {}
        self._held: Counter[Key] = Counter()
        self._waiting: dict[Key, asyncio.Future[Passage | None]] = {}
        self._asker: asyncio.Task[None] | None = None
        self._active: set[Use] = set()
        self._failing = False

    async def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
        """Return the secret for a fresh ticket, once and only to the browser that it was issued for; None otherwise. Raise CannotTell when
        the database is unavailable."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await self._grants.exchange(execution_id, ticket, opener, now=now)
        except Exception as error:
            raise self._cannot_tell(error) from error

    async def passage(self, execution_id: str, secret: str) -> Passage | None:
        """Return the passage that the secret opens, or None. Raise CannotTell when the database is unavailable."""
        if len(execution_id) > _LONGEST or len(secret) > _LONGEST:
            return None
        key, now = (execution_id, secret), self._clock()
        known = self._answers.get(key)
        if known is not None and now - known.confirmed_at < (_TRUST_SECONDS if known.passage else _REFUSAL_SECONDS):
            known.used_at = now
            passage = known.passage
            # A passage that leads to no pod any more may have ended since the database was last read.
            still_holds = passage is None or passage.has_ended or self.target(passage) is not None
            return passage if still_holds else await self._ask_again(key)
        return await self._ask_soon(key)

    async def _ask_again(self, key: Key) -> Passage | None:
        """Return the database's answer if it comes soon, else the one that is known and trusted still. Raise CannotTell without either."""
        try:
            async with asyncio.timeout(RECHECK_SECONDS):
                return await self._ask_soon(key)
        except (CannotTell, TimeoutError) as error:
            known = self._answers.get(key)
            if known is None or self._clock() - known.confirmed_at >= _TRUST_SECONDS:
                raise self._cannot_tell(error) from error
            return known.passage

    @contextmanager
    def holding(self, execution_id: str, secret: str) -> Iterator[Ending]:
        """Yield, for as long as a connection stays open, an event that is set when the right to it ends."""
        key, now = (execution_id, secret), self._clock()
        self._held[key] += 1
        answer = self._answers.get(key)
        if answer is None:  # evicted since the check: treated as ended until it is read again
            answer = self._answers[key] = _Answer(None, now, now)
            answer.ended.set()
        try:
            yield answer.ended
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]

    def used(self, passage: Passage) -> None:
        """Note that the user has just been active, so that neither the session nor the execution counts as idle."""
        self._active.add((passage.execution_id, passage.session_key))

    def target(self, passage: Passage) -> Target | None:
        """Return the address of the execution's pod, or None while no pod has an address."""
        pods = [
            pod
            for pod in self._pods_of(passage.execution_id)
            if pod.address and passage.component in ("", pod.component) and pod.key.startswith(self._namespace)
        ]
        if not pods or not passage.port:
            return None
        pod = min(pods, key=_is_leaving)  # a head that stays comes first
        return Target(pod.address, passage.port, passage.front_port if pod.has_front else 0, pod.has_crashed)

    async def run(self) -> None:
        """Check the grants in use again and again, and keep the sessions of active users from counting as idle; never return."""
        touched_at = self._clock()
        while True:
            await asyncio.sleep(RECHECK_SECONDS)
            await self.recheck()
            if self._clock() - touched_at >= _TOUCH_SECONDS:
                touched_at = self._clock()
                await self.touch_sessions()

    async def recheck(self) -> None:
        """Check the grants in use once. When the database fails, log the failure once and keep trusting them for a while."""
        now = self._clock()
        for key in [key for key, answer in self._answers.items() if now - answer.used_at > _UNUSED_SECONDS]:
            if key not in self._held:
                del self._answers[key]
        keys = [key for key, answer in self._answers.items() if answer.passage is not None]
        try:
            for start in range(0, len(keys), _ASKED_AT_ONCE):
                part = keys[start : start + _ASKED_AT_ONCE]
                passages = await self._passages(part)
                for key in part:
                    self._note(key, passages.get(key))
        except Exception as error:
            self._cannot_tell(error)
            now = self._clock()
            for key, answer in list(self._answers.items()):
                if now - answer.confirmed_at >= _TRUST_SECONDS:
                    # Deleted, not refused: the next request gets CannotTell.
                    answer.ended.set()
                    del self._answers[key]

    async def _passages(self, keys: Collection[Key]) -> Mapping[Key, Passage]:
        async with asyncio.timeout(_ANSWER_SECONDS):
            passages = await self._grants.passages(keys)
        self._failing = False
        return passages

    def _cannot_tell(self, error: Exception) -> CannotTell:
        """Return the error to raise, and log it once until the database answers again."""
        if not self._failing:
            logger.warning("grants cannot be read, trusting for a while what was known error=%.300s", error)
        self._failing = True
        return CannotTell(_("The database does not answer."))

    def _note(self, key: Key, passage: Passage | None) -> None:
        now = self._clock()
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= _REMEMBER_AT_MOST:
                self._answers = {held: self._answers[held] for held in self._held if held in self._answers}
            answer = self._answers[key] = _Answer(passage, now, now)
        answer.passage, answer.confirmed_at = passage, now
        if passage is None or passage.has_ended:
            answer.ended.set()
        elif answer.ended.is_set():
            answer.ended = Ending()  # a grant that is valid again needs a fresh event

    async def _ask_soon(self, key: Key) -> Passage | None:
        """Return the passage from the next query, which covers all keys that are waiting; requests for the same key share its result."""
        waiting = self._waiting.get(key)
        if waiting is None:
            waiting = self._waiting[key] = asyncio.get_running_loop().create_future()
        if self._asker is None or self._asker.done():
            self._asker = asyncio.create_task(self._ask_waiting(), name="grants")
        return await asyncio.shield(waiting)

    async def _ask_waiting(self) -> None:
        while self._waiting:
            asked = dict(islice(self._waiting.items(), _ASKED_AT_ONCE))
            try:
                passages = await self._passages(list(asked))
            except Exception as error:
                failure = self._cannot_tell(error)
                for key, future in asked.items():
                    del self._waiting[key]
                    if not future.done():
                        future.set_exception(failure)
                        future.exception()  # marks it as retrieved, as its waiter may have been cancelled
                continue
            for key, future in asked.items():
                del self._waiting[key]
                self._note(key, passages.get(key))
                if not future.done():
                    future.set_result(passages.get(key))

    async def touch_sessions(self) -> None:
        """Store which executions were used in which sessions since the last time; after a failure they are stored the next time."""
        active, self._active = self._active, set()
        try:
            if active:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await self._grants.touch(active)
        except Exception as error:
            self._active |= active
            logger.warning("use of executions not noted error=%s", error)
