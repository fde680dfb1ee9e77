"""Watches the sessions of all live pages of this process together, with a query each 1.5 seconds for up to 5,000 sessions."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from django.db import DatabaseError, OperationalError

from dashboard.shell.access import GROUPS, Viewer, viewer_in
from dashboard.shell.pages.slices import Breath
from grid.accounts.sessions import stored_key, valid_users
from grid.core.translation import gettext as _
from grid.database import threads as database

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS = 30.0  # how long pages stay open while the database does not answer
_ANSWER_SECONDS = 10.0  # the timeout of a reading; the database may never answer
_READ_AT_ONCE = 5_000  # SQLite takes 32,766 values in a query
Read = Callable[[Collection[str]], Awaitable[Mapping[str, Viewer]]]


def read_viewers(session_keys: Collection[str]) -> dict[str, Viewer]:
    """Return the users of these sessions by the keys in their cookies; sessions that have ended are left out."""
    keys = list(session_keys)
    viewers: dict[str, Viewer] = {}
    for start in range(0, len(keys), _READ_AT_ONCE):
        stored = {key: stored_key(key) for key in keys[start : start + _READ_AT_ONCE]}
        users = valid_users(stored.values(), tuple(GROUPS))
        viewers |= {key: viewer_in(users[at]) for key, at in stored.items() if at in users}
    return viewers


async def _read_in_thread(session_keys: Collection[str]) -> Mapping[str, Viewer]:
    return await database.background.run(read_viewers, session_keys)


@dataclass(slots=True, eq=False)
class _Question:
    """Somebody who waits for a reading with a number above `after` in which the session has ended or `holds` is not true of its user."""

    session_key: str
    holds: Callable[[Viewer], bool]
    after: int
    answer: "asyncio.Future[Viewer | None]"


class SessionWatch:
    """Reads the sessions every `seconds` while somebody asks, in one task for all who do. It wakes only those whose session has changed."""

    def __init__(
        self,
        read: Read = _read_in_thread,
        *,
        seconds: float = 1.5,
        answer_seconds: float = _ANSWER_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._seconds = seconds
        self._answer_seconds = answer_seconds
        self._monotonic = monotonic
        self._questions: set[_Question] = set()
        self._readings = 0
        self._reading: asyncio.Task[None] | None = None
        self._unanswered: asyncio.Future[Mapping[str, Viewer]] | None = None  # its thread still waits for the database

    async def viewer(self, session_key: str, holds: Callable[[Viewer], bool] = lambda viewer: False) -> Viewer | None:
        """Return the session's user at the next reading in which `holds` is not true of the user; None when the session has ended. Raise
        DatabaseError after 30 seconds without a reading."""
        # A reading that has already begun is too old: it may lack the session, or have another role.
        question = _Question(session_key, holds, self._readings, asyncio.get_running_loop().create_future())
        self._questions.add(question)
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_on(), name="watch sessions")
        try:
            return await question.answer
        finally:
            self._questions.discard(question)
            if not self._questions and self._reading is not None:
                self._reading.cancel()
                self._reading = None

    async def _read_on(self) -> None:
        """Read and answer until cancelled; end with an error for all who ask."""
        try:
            while True:
                reading, viewers = await self._next_reading()
                breath = Breath()
                for question in list(self._questions):
                    if reading > question.after and not question.answer.done():
                        self._decide(question, viewers.get(question.session_key))
                        await breath.take()
        except Exception as error:
            for question in self._questions:
                if not question.answer.done():
                    question.answer.set_exception(error)

    def _decide(self, question: _Question, viewer: Viewer | None) -> None:
        try:
            if viewer is None or not question.holds(viewer):
                question.answer.set_result(viewer)
        except Exception as error:
            question.answer.set_exception(error)

    async def _next_reading(self) -> tuple[int, Mapping[str, Viewer]]:
        """Return the reading's number, and the users by key."""
        start = self._monotonic()
        while True:
            await asyncio.sleep(self._seconds)
            try:
                async with asyncio.timeout(self._answer_seconds):
                    if self._unanswered is not None:
                        await asyncio.wait({self._unanswered})  # another reading would take another thread
                    self._readings += 1
                    reading = self._readings
                    return reading, await self._answer({question.session_key for question in self._questions})
            except (DatabaseError, TimeoutError) as error:
                if self._monotonic() - start > _PATIENCE_SECONDS:
                    raise OperationalError(_("The database does not answer.")) from error
                logger.warning("sessions cannot be read, trying again error=%s", type(error).__name__)

    async def _answer(self, session_keys: Collection[str]) -> Mapping[str, Viewer]:
        self._unanswered = asyncio.ensure_future(self._read(session_keys))
        self._unanswered.add_done_callback(self._answered)
        return await asyncio.shield(self._unanswered)

    def _answered(self, answer: "asyncio.Future[Mapping[str, Viewer]]") -> None:
        self._unanswered = None
        if not answer.cancelled():
            answer.exception()  # marks it as retrieved: the timeout was raised already, or nobody waits


session_watch = SessionWatch()
