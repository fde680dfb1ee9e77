"""Decides for each request whether it may pass, and where to.

The database is asked once for each grant, again at once about one whose pod is gone, and about all that are in use once a second,
in a few queries; what has changed cuts what is open. So a logout, a stop and a change of members work within two seconds in every
proxy process, and a request costs the database nothing. A database that answers late or not at all changes nothing for half a
minute; after that nobody passes.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Protocol

from grid.errors import GridError
from grid.kube.objects import Pod
from grid.labels import APP_COMPONENT
from grid.launch.grants import Key, Passage

logger = logging.getLogger(__name__)

RECHECK_SECONDS = 1.0
_TRUST_SECONDS = 30.0  # how long an answer holds while the database does not give a newer one
_REFUSAL_SECONDS = 2.0  # a refusal is asked about again, because a ticket may have been exchanged in another process
_UNUSED_SECONDS = 10.0  # a page of JupyterLab is a hundred requests at once, and then one every few seconds
_TOUCH_SECONDS = 60.0
_ANSWER_SECONDS = 10.0  # a database that has not answered by then counts as one that fails: it may never
_ASKED_AT_ONCE = 200
_REMEMBER_AT_MOST = 10_000
# Longer than any that we give; what anybody may send is not kept, or ten thousand of them would fill the memory.
_LONGEST = 100


class CannotTell(GridError):
    """The database does not say whether somebody may pass."""


@dataclass(frozen=True, slots=True)
class Target:
    """The web server of one pod."""

    address: str
    port: int

    @property
    def netloc(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"


class Gate(Protocol):
    """What the proxy asks before it forwards anything."""

    async def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
        """The secret that a fresh ticket gives, once, to the browser that it was made for."""
        ...

    async def passage(self, execution_id: str, secret: str) -> Passage | None:
        """The passage that a secret opens, or None. Raises CannotTell."""
        ...

    def holding(self, execution_id: str, secret: str) -> AbstractContextManager[asyncio.Event]:
        """While something stays open: an event that is set when the right to it has ended."""
        ...

    def used(self, passage: Passage) -> None:
        """Its person has just done something, so the session is not idle."""
        ...

    def target(self, passage: Passage) -> Target | None:
        """Where the execution's pod listens, or None while there is no pod with an address."""
        ...


class Grants(Protocol):
    """What the database knows, asked off the event loop."""

    def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> Awaitable[str | None]: ...

    def passages(self, keys: Collection[Key]) -> Awaitable[Mapping[Key, Passage]]: ...

    def touch(self, session_keys: Collection[str]) -> Awaitable[None]: ...


@dataclass(slots=True)
class _Answer:
    passage: Passage | None
    confirmed_at: float
    used_at: float
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class GrantGate:
    """Asks the grants and the pods; of a cluster's pods the head answers. `run()` keeps the answers true."""

    def __init__(
        self,
        grants: Grants,
        pods_of: Callable[[str], Sequence[Pod]],
        *,
        namespace: str,
        clock: Callable[[], float] = time.monotonic,
        answer_seconds: float = _ANSWER_SECONDS,
    ) -> None:
        """`pods_of` finds pods by a label, which is believed in `namespace` only: elsewhere others may write it."""
        self._grants = grants
        self._pods_of = pods_of
        self._namespace = namespace
        self._clock = clock
        self._answer_seconds = answer_seconds
        self._answers: dict[Key, _Answer] = {}
        self._held: Counter[Key] = Counter()
        self._waiting: dict[Key, asyncio.Future[Passage | None]] = {}
        self._asker: asyncio.Task[None] | None = None
        self._active: set[str] = set()
        self._failing = False

    async def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
        try:
            async with asyncio.timeout(self._answer_seconds):
                return await self._grants.exchange(execution_id, ticket, opener, now=now)
        except Exception as error:
            raise self._cannot_tell(error) from error

    async def passage(self, execution_id: str, secret: str) -> Passage | None:
        if len(execution_id) > _LONGEST or len(secret) > _LONGEST:
            return None
        key, now = (execution_id, secret), self._clock()
        known = self._answers.get(key)
        if known is not None and now - known.confirmed_at < (_TRUST_SECONDS if known.passage else _REFUSAL_SECONDS):
            known.used_at = now
            return known.passage if self._still_holds(known.passage) else await self._ask_again(key, known.passage)
        return await self._ask_soon(key)

    def _still_holds(self, passage: Passage | None) -> bool:
        """What leads nowhere may have ended within the last second: its pod goes before anybody asks the database again."""
        return passage is None or passage.has_ended or self.target(passage) is not None

    async def _ask_again(self, key: Key, known: Passage | None) -> Passage | None:
        try:
            return await self._ask_soon(key)
        except CannotTell:
            return known

    @contextmanager
    def holding(self, execution_id: str, secret: str) -> Iterator[asyncio.Event]:
        key, now = (execution_id, secret), self._clock()
        self._held[key] += 1
        answer = self._answers.get(key)
        if answer is None:  # forgotten since it was asked for: it has ended until somebody says otherwise
            answer = self._answers[key] = _Answer(None, now, now)
            answer.ended.set()
        try:
            yield answer.ended
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]

    def used(self, passage: Passage) -> None:
        self._active.add(passage.session_key)

    def target(self, passage: Passage) -> Target | None:
        found = self._pods_of(passage.execution_id)
        pods = [
            pod for pod in found if pod.metadata.namespace == self._namespace and _reachable(pod, passage.component)
        ]
        pods.sort(key=lambda pod: pod.metadata.deletion_timestamp is not None)  # of two heads the one that stays
        return Target(pods[0].status.pod_ip, passage.port) if pods and passage.port else None

    async def run(self) -> None:
        """For ever: ask again about all that is in use, and keep the sessions of people who work from counting as idle."""
        touched_at = self._clock()
        while True:
            await asyncio.sleep(RECHECK_SECONDS)
            await self.recheck()
            if self._clock() - touched_at >= _TOUCH_SECONDS:
                touched_at = self._clock()
                await self.touch_sessions()

    async def recheck(self) -> None:
        """One such round; a database that fails is said once, and leaves the answers as they are for a while."""
        now = self._clock()
        for key in [key for key, answer in self._answers.items() if now - answer.used_at > _UNUSED_SECONDS]:
            if key not in self._held:
                del self._answers[key]
        keys = [key for key, answer in self._answers.items() if answer.passage is not None]
        try:
            for start in range(0, len(keys), _ASKED_AT_ONCE):
                part = keys[start : start + _ASKED_AT_ONCE]
                found = await self._passages(part)
                for key in part:
                    self._note(key, found.get(key))
                self._failing = False
        except Exception as error:
            self._cannot_tell(error)
            self._distrust_old()

    async def _passages(self, keys: Collection[Key]) -> Mapping[Key, Passage]:
        async with asyncio.timeout(self._answer_seconds):
            return await self._grants.passages(keys)

    def _cannot_tell(self, error: Exception) -> CannotTell:
        """Said once in the log until the database answers again."""
        if not self._failing:
            logger.warning("grants cannot be read, trusting for a while what was known error=%.300s", error)
        self._failing = True
        return CannotTell("The database does not answer.")

    def _distrust_old(self) -> None:
        now = self._clock()
        for key, answer in list(self._answers.items()):
            if now - answer.confirmed_at >= _TRUST_SECONDS:
                # Not a refusal: who asks next is told that nobody can tell.
                answer.ended.set()
                del self._answers[key]

    def _note(self, key: Key, passage: Passage | None) -> None:
        now = self._clock()
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= _REMEMBER_AT_MOST:
                self._forget_unheld()
            answer = self._answers[key] = _Answer(passage, now, now)
        answer.passage, answer.confirmed_at = passage, now
        if passage is None or passage.has_ended:
            answer.ended.set()
        elif answer.ended.is_set():
            answer.ended = asyncio.Event()  # who was cut off and was let in again holds a new one

    def _forget_unheld(self) -> None:
        self._answers = {key: answer for key, answer in self._answers.items() if key in self._held}

    async def _ask_soon(self, key: Key) -> Passage | None:
        """With all others that ask now, in one go; whoever asks the same waits for the same answer."""
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
                found = await self._passages(list(asked))
            except Exception as error:
                failure = self._cannot_tell(error)
                for key, future in asked.items():
                    del self._waiting[key]
                    if not future.done():
                        future.set_exception(failure)
                        future.exception()  # whoever waited may have left
                continue
            for key, future in asked.items():
                del self._waiting[key]
                self._note(key, found.get(key))
                if not future.done():
                    future.set_result(found.get(key))

    async def touch_sessions(self) -> None:
        """Write down who has worked since the last time."""
        active, self._active = self._active, set()
        try:
            if active:
                async with asyncio.timeout(self._answer_seconds):
                    await self._grants.touch(active)
        except Exception as error:
            self._active |= active
            logger.warning("sessions not noted as active error=%s", error)


def _reachable(pod: Pod, component: str) -> bool:
    is_it = not component or pod.metadata.labels.get(APP_COMPONENT) == component
    return is_it and bool(pod.status.pod_ip) and pod.status.phase == "Running"
