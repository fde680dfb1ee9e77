"""What is read beside the pages, once for all: sessions, boards and values; a database that does not answer for a moment ends no page."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta

import pytest
from django.conf import settings
from django.db import OperationalError

from dashboard.shell.access import Role, Viewer
from dashboard.shell.pages import session_watch as watching
from dashboard.shell.pages.periodic import FIRST_SECONDS, Board, PeriodicRead
from dashboard.shell.pages.session_watch import SessionWatch, read_viewers
from tests.conftest import People, client_of
from tests.support.builders import MOMENT
from tests.support.virtual import loop_time, passes, virtual_time

ALICE = Viewer(1, "alice", Role.PRACTITIONER)


class Sessions:
    """What is read, and how often."""

    def __init__(self) -> None:
        self.readings: list[set[str]] = []
        self.failures = 0

    async def read(self, session_keys: Collection[str]) -> dict[str, Viewer]:
        self.readings.append(set(session_keys))
        if self.failures:
            self.failures -= 1
            raise OperationalError("database is locked")
        return {key: ALICE for key in session_keys if key.startswith("alive")}


async def test_all_who_ask_get_one_reading() -> None:
    sessions = Sessions()
    watch = SessionWatch(sessions.read, seconds=0.01)
    asked = ["alive-1", "alive-2", "alive-1", "ended"]
    assert await asyncio.gather(*map(watch.viewer, asked)) == [ALICE, ALICE, ALICE, None]
    assert sessions.readings == [{"alive-1", "alive-2", "ended"}]


async def test_newcomer_during_reading_gets_the_current_role() -> None:
    """In another tab of the same session, opened by somebody who was made an operator while a slow reading went on."""
    role, reading, answered = [Role.PRACTITIONER], asyncio.Event(), asyncio.Event()

    async def slowly(session_keys: Collection[str]) -> dict[str, Viewer]:
        viewers = {key: Viewer(1, "alice", role[0]) for key in session_keys}
        reading.set()
        await answered.wait()
        return viewers

    watch = SessionWatch(slowly, seconds=0.001)
    first = asyncio.create_task(watch.viewer("alive"))
    await reading.wait()
    role[0] = Role.OPERATOR
    second = asyncio.create_task(watch.viewer("alive"))
    await asyncio.sleep(0)
    answered.set()
    assert [await first, await second] == [Viewer(1, "alice", Role.PRACTITIONER), Viewer(1, "alice", Role.OPERATOR)]


async def test_database_that_never_answers_counts_as_failing() -> None:
    answered = asyncio.Event()

    async def never(session_keys: Collection[str]) -> dict[str, Viewer]:
        await answered.wait()
        return {}

    seconds = iter(range(0, 1000, 10))
    watch = SessionWatch(never, seconds=0.001, answer_seconds=0.01, monotonic=lambda: float(next(seconds)))
    with pytest.raises(OperationalError):
        await watch.viewer("alive")
    answered.set()
    await asyncio.sleep(0.01)


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_ended_sessions_are_missing_in_any_batch(people: People, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(watching, "_READ_AT_ONCE", at_once)
    users = [people.owner, people.teammate, people.operator, people.owner, people.admin]
    clients = [client_of(user) for user in users]
    keys = [client.cookies[settings.SESSION_COOKIE_NAME].value for client in clients]
    for number in (1, 3):
        clients[number].post("/logout/")
    viewers = read_viewers(keys)
    assert {key: viewer.username for key, viewer in viewers.items()} == {
        keys[number]: users[number].username for number in (0, 2, 4)
    }


@virtual_time
async def test_unresponsive_database_is_asked_by_a_single_reading() -> None:
    asked, answers = 0, asyncio.Event()

    async def read(keys: Collection[str]) -> Mapping[str, Viewer]:
        nonlocal asked
        asked += 1
        await answers.wait()
        return {"alice": ALICE}

    watch = SessionWatch(read, answer_seconds=2, monotonic=loop_time)
    waiting = asyncio.create_task(watch.viewer("alice"))
    await passes(20)
    assert asked == 1
    answers.set()
    assert await waiting == ALICE
    assert asked == 2, "what was read of the past is not believed"


async def test_brief_database_failure_ends_no_page() -> None:
    sessions = Sessions()
    sessions.failures = 3
    assert await SessionWatch(sessions.read, seconds=0.001).viewer("alive") == ALICE
    assert len(sessions.readings) == 4


class Source:
    def __init__(self) -> None:
        self.reads = 0
        self.seconds = 0.0
        self.is_broken = False

    async def read(self) -> int:
        self.reads += 1
        await asyncio.sleep(self.seconds)
        if self.is_broken:
            raise OSError
        return self.reads


def periodic(source: Source) -> PeriodicRead[int]:
    return PeriodicRead(source.read, clock=lambda: MOMENT + timedelta(seconds=loop_time()))


@virtual_time
async def test_periodic_value_is_reread_when_too_old() -> None:
    source = Source()
    value = periodic(source)
    assert await value.value(5) == 1
    await passes(4)
    assert await value.value(5) == 1
    await passes(2)
    await value.value(5)
    await passes(0.1)
    assert await value.value(5) == 2
    assert source.reads == 2


@virtual_time
async def test_stuck_reading_delays_nobody_and_reports_silence() -> None:
    source = Source()
    value = periodic(source)
    await value.value(5)
    source.seconds = 60
    await passes(6)
    began = MOMENT + timedelta(seconds=loop_time())
    assert await value.value(5) == 1
    assert value.silent_since is None
    await passes(4)
    assert await value.value(5) == 1
    assert value.silent_since == began
    await passes(60)
    assert value.silent_since is None
    assert source.reads == 2


@virtual_time
async def test_slow_first_reading_answers_nothing_yet() -> None:
    source = Source()
    source.seconds = 30
    value = periodic(source)
    assert await value.value(5) is None
    assert loop_time() == FIRST_SECONDS
    await passes(30)
    assert await value.value(5) == 1


@virtual_time
async def test_failed_reading_keeps_the_value_and_is_retried() -> None:
    source = Source()
    value = periodic(source)
    await value.value(5)
    source.is_broken = True
    await passes(6)
    await value.value(5)
    await passes(1)
    assert await value.value(5) == 1
    source.is_broken = False
    await passes(6)
    await value.value(5)
    await passes(1)
    assert await value.value(5) == 3


@pytest.mark.django_db(transaction=True)
async def test_pages_share_a_reading_during_database_outage() -> None:
    answers: Iterator[int | Exception] = iter([1, OperationalError("away"), 2])

    def read(now: datetime) -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    board = Board("numbers", read, 0)
    assert [await board.value(60.0) for _ in range(3)] == [1, 1, 1]
    assert [await board.value(0.0) for _ in range(2)] == [1, 2]
