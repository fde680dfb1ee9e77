"""Fixtures shared by all tests; the people of every page test, their clients, and the text of the pages that they get."""

import contextlib
import gc
import importlib
import os
import re
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.test import AsyncClient, Client
from hypothesis import HealthCheck, Phase, settings
from pytest_django import DjangoDbBlocker
from xdist.scheduler import LoadFileScheduling

from grid.diagnosis import logfindings
from grid.models import Execution, User
from tests.support import emptying, loggingin, migrated
from tests.support.leftovers import no_task_is_left, nothing_is_left
from tests.support.prometheus import MISSING, PROGRAM, RealPrometheus

# A busy machine is no fault of the code. Each run draws other cases, few of them: `make test-slow` draws many of all.
settings.register_profile("few", max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("many", settings.get_profile("few"), max_examples=200)
settings.load_profile("few")
# For a mutant it is enough that some example fails; the same ones each time, so that its fate is no matter of luck.
settings.register_profile(
    "mutants", settings.get_profile("few"), max_examples=100, phases=[Phase.explicit, Phase.generate], derandomize=True
)

emptying.use()
loggingin.use()

# Those of a real control plane come one after the other, for each breaks the cluster and wants it for itself.
REAL = "tests/(end_to_end|sandbox)/test_real_"
# Each has a program of its own that its tests share: a browser with a server (two, for one would still be busy when all other tests have
# ended), an embedded cluster, a real control plane.
SHARING = ("tests/browser/test_([a-k]|la)", "tests/browser/", "tests/contract/", REAL)
# Much of the last two is waiting, which goes well beside browsers.
LONGEST = (*SHARING[:3], "tests/access/test_table.py", "tests/end_to_end/test_idle_workspace.py", REAL)


class SharingScheduler(LoadFileScheduling):  # type: ignore[misc]
    """Gives the tests of a file to one worker, and those of files that share a program too, so that it starts once."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((shared for shared in SHARING if re.match(shared, file)), file)

    def _assign_work_unit(self, node: Any) -> None:
        """The longest first, or they would go on alone when all others have ended; else it goes by the number of tests."""
        for scope in LONGEST:
            if scope in self.workqueue:
                self.workqueue.move_to_end(scope, last=False)
                break
        super()._assign_work_unit(node)

    def _reschedule(self, node: Any) -> None:
        """One test in reserve is enough: with two, minutes of work lie with one worker while the others have ended."""
        if not self.workqueue or self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharingScheduler | None:
    return SharingScheduler(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On PostgreSQL only the tests that use the database are run: the others have been, on SQLite."""
    if connection.vendor != "postgresql":
        if os.environ.get("TEST_DATABASE_URL"):
            raise pytest.UsageError("TEST_DATABASE_URL names a database, and these settings do not use it.")
        return
    uses = [item for item in items if _uses_database(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(uses)])
    items[:] = uses


def _uses_database(item: pytest.Item) -> bool:
    fixtures = getattr(item, "fixturenames", ())
    return item.get_closest_marker("django_db") is not None or "db" in fixtures or "transactional_db" in fixtures


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Ten thousand tests are made and none is thrown away: a fifth of the time would go into looking for garbage."""
    gc.disable()
    try:
        _import_from_own_place(session.config)
        return (yield)
    finally:
        gc.enable()


def _import_from_own_place(config: pytest.Config) -> None:
    """Each worker begins elsewhere and goes round, so that it finds compiled what others began with; else each compiles everything."""
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    if not worker or config.args != config.getini("testpaths"):
        return
    tests = Path(__file__).parent
    modules = sorted(tests.rglob("test_*.py"))
    first = len(modules) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for module in modules[first:] + modules[:first]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # collecting says what is wrong with it
            importlib.import_module(".".join(module.relative_to(tests.parent).with_suffix("").parts))


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """PostgreSQL drops no database that a thread is still connected to; the server goes with all of them anyway."""
    return connection.vendor == "postgresql"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    if connection.vendor == "sqlite":
        migrated.share()


@pytest.fixture(scope="session")
def real_prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPrometheus]:
    """One that runs to the end of the session, told by each test what to scrape; it needs Debian's package."""
    if not PROGRAM:
        pytest.skip(MISSING)
    prometheus = RealPrometheus(tmp_path_factory.mktemp("prometheus"))
    yield prometheus
    prometheus.stop()


@pytest.fixture(scope="module")
def module_transaction(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Keeps what fixtures of a module write until its last test has ended: for what many tests read and takes long to write.

    Each of those tests has `db` as well, which undoes its own changes; none may have transactions of its own.
    """
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def built_in_knowledge() -> Iterator[None]:
    """What a test puts in force of the knowledge base is the process's; the next one begins with the built-in entries."""
    yield
    logfindings.use()


@dataclass(frozen=True)
class People:
    """The owner, a member of the owner's project, somebody unrelated, and the two roles that see everything."""

    owner: User
    teammate: User
    stranger: User
    operator: User
    admin: User


@pytest.fixture
def people(db: None) -> People:
    return make_people()


def make_people() -> People:
    def make(name: str) -> User:
        return User.objects.create_user(username=name, password=f"{name}-password")

    operator = make("olga-operator")
    operator.groups.add(Group.objects.get_or_create(name="operators")[0])
    return People(
        owner=make("alice"),
        teammate=make("bob"),
        stranger=make("charlie"),
        operator=operator,
        admin=User.objects.create_superuser(username="ada-admin", password="ada-admin-password"),
    )


def client_of(user: User, **options: Any) -> Client:
    """Logged in."""
    client = Client(**options)
    client.force_login(user)
    return client


def page_at(user: User, path: str, **query: str) -> str:
    answer = client_of(user).get(path, query or None)
    assert answer.status_code == 200, path
    return str(answer.content.decode())


def execution_page(user: User, execution: Execution, rest: str = "") -> str:
    return page_at(user, f"/executions/{execution.pk}/{rest}")


def downloaded(user: User, path: str) -> tuple[Any, bytes]:
    """Return the answer and its whole body, as a browser that takes gzip gets it; the body may come in pieces."""
    client = AsyncClient()
    client.force_login(user)

    async def whole() -> tuple[Any, bytes]:
        answer: Any = await client.get(path, headers={"accept-encoding": "gzip"})
        pieces = [piece async for piece in answer.streaming_content] if answer.streaming else [answer.content]
        body = b"".join(pieces)
        # Browsers take the first of several compressed files.
        return answer, zlib.decompressobj(31).decompress(body) if answer.get("Content-Encoding") == "gzip" else body

    return async_to_sync(whole)()


@pytest.fixture(autouse=True)
def leaves_nothing() -> Iterator[None]:
    """First of all that a test sets up, so that it looks when all else is gone."""
    with nothing_is_left():
        yield


@pytest.fixture(autouse=True)
def leaves_no_task(leaves_nothing: None, request: pytest.FixtureRequest) -> None:
    if pytest_asyncio.is_async_test(request.node):
        request.getfixturevalue("_tasks_end")


@pytest.fixture
async def _tasks_end() -> AsyncIterator[None]:
    yield
    await no_task_is_left()
