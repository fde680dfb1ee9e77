"""Runs database work in a bounded number of threads, so that a slow query delays nobody else.

By default, Django runs work outside of a request in one thread of the process, one after the other. Each request has a thread and a
connection of its own, however many there are. A process that serves people opens the thread pools below instead: one kind of work never
waits for another. Where they are not open (commands, tests), work runs where Django would run it.

PostgreSQL cancels what takes longer in them than STATEMENT_SECONDS, and when they are closed, what is still under way is cancelled after a
moment: no query holds a thread, or a process that has to end, for ever.

A thread keeps its connection for CONN_MAX_AGE. That bounds the connections of a process by its threads, on both databases, and needs
no pool of connections beside the pool of threads.
"""

import asyncio
import select
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, IntegrityError, InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from grid.database.computing import with_permit
from grid.observability import telemetry

P = ParamSpec("P")
T = TypeVar("T")
Application = Callable[[Any, Any, Any], Awaitable[None]]

# A thread that computes keeps Python's lock for so long while the event loop waits for it, and the loop gives it up at each 16 kB that it
# decrypts. With Python's own 5 ms, while a thread reads all executions, 256 kB of a first list keep the loop for a tenth of a second.
SWITCH_SECONDS = 0.0002
_COUNTED = "counted_by_compute_grid"  # of an error, that it is among the metrics
_COMPUTING = 6  # threads of one pool, see grid.database.computing
CLOSING_SECONDS = 2.0  # between two times that what is under way is cancelled, and before the first


def _connected(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run the work; before and after it, close a connection that is old or has failed, as Django does around a request."""
    _give_back()
    try:
        return work(*args, **kwargs)
    except (InterfaceError, OperationalError) as error:
        if not hasattr(error, _COUNTED):  # no statement failed, so there was no connection
            telemetry.database_failed()
            setattr(error, _COUNTED, True)
        raise
    finally:
        _give_back()


def measure_statements(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Time what is asked over the connection from now on; a receiver of `connection_created`, which comes again at each reconnection."""
    if _timed not in connection.execute_wrappers:
        # The first, because Django's context manager of a wrapper takes the last away when it is left.
        connection.execute_wrappers.insert(0, _timed)


def _timed(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    began = time.perf_counter()
    try:
        return execute(sql, params, many, context)
    except DatabaseError as error:
        if not isinstance(error, IntegrityError):
            telemetry.database_failed()
            setattr(error, _COUNTED, True)
        raise
    finally:
        telemetry.database_statements(context["connection"].vendor).observe(time.perf_counter() - began)


def _give_back() -> None:
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:  # a caller in this thread would lose its transaction
            connection.close_if_unusable_or_obsolete()
            if connection.vendor == "postgresql" and connection.connection is not None:
                connection.health_check_done = _is_silent(connection.connection)  # type: ignore[attr-defined]


def _is_silent(driver: Any) -> bool:
    """Return whether the server has sent nothing since its last answer. One that has closed the connection has: so Django need not try it,
    which takes a round trip and a transaction of each turn."""
    if driver.closed:
        return False
    poll = select.poll()
    poll.register(driver.fileno(), select.POLLIN)
    return not poll.poll(0)


@contextmanager
def planned_for_values() -> Iterator[None]:
    """Have PostgreSQL plan every statement of the block for the values that it is asked with. Otherwise one that is prepared gets a plan
    for all values, and none is right for a text that is everywhere and one that is nowhere."""
    own = connections[DEFAULT_DB_ALIAS]
    if own.vendor != "postgresql":
        yield
        return
    with atomic():
        with own.cursor() as cursor:
            cursor.execute("SET LOCAL plan_cache_mode = force_custom_plan")
        yield


def _cancel(connection: BaseDatabaseWrapper) -> None:
    """Cancel what another thread has the database do over its connection, if anything."""
    driver = connection.connection
    if driver is None:
        return
    with suppress(DatabaseError), connection.wrap_database_errors:  # it may be closed by now
        if connection.vendor == "postgresql":
            driver.cancel_safe(timeout=CLOSING_SECONDS)
        else:
            driver.interrupt()


class _Executor(ThreadPoolExecutor):
    """A thread pool whose threads have database connections, which are closed when the threads have ended."""

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=f"database {name}", initializer=self._begin)
        self._permits = threading.Semaphore(_COMPUTING)
        self._connections: set[BaseDatabaseWrapper] = set()
        self._under_way: set[Future[Any]] = set()

    def _begin(self) -> None:
        own = connections[DEFAULT_DB_ALIAS]
        if own.vendor == "postgresql":
            options = own.settings_dict["OPTIONS"]
            # A limit for statements that DATABASE_URL names comes after ours, and so goes before it.
            limit = f"-c statement_timeout={settings.STATEMENT_SECONDS * 1000:.0f} {options.get('options', '')}".strip()
            own.settings_dict = {**own.settings_dict, "OPTIONS": {**options, "options": limit}}
        self._connections.add(own)

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future = super().submit(with_permit, self._permits, partial(_connected, work, *args, **kwargs))
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return future

    def close(self) -> None:
        """Forget what waits, give what is under way a moment, and cancel its queries until it has ended."""
        self.shutdown(wait=False, cancel_futures=True)
        while wait(self._under_way.copy(), timeout=CLOSING_SECONDS).not_done:
            for connection in self._connections:
                _cancel(connection)
        self.shutdown()
        while self._connections:
            connection = self._connections.pop()
            connection.inc_thread_sharing()  # its thread has ended, and only that one may close it otherwise
            connection.close()


class DatabaseThreads:
    """At most `number` threads for one kind of work, started on demand."""

    def __init__(self, number: int, name: str) -> None:
        self.number, self._name = number, name
        self.executor: _Executor | None = None  # set while the threads are open

    def open(self) -> None:
        self.executor = self.executor or _Executor(self.number, self._name)

    async def close(self) -> None:
        """End the threads and close their connections; later work runs where Django would run it."""
        executor, self.executor = self.executor, None
        if executor is not None:
            await asyncio.to_thread(executor.close)

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if self.executor is None:
            return await sync_to_async(_connected)(work, *args, **kwargs)
        return await sync_to_async(work, thread_sensitive=False, executor=self.executor)(*args, **kwargs)


requests = DatabaseThreads(24, "requests")  # more than may hash a password at once, see grid.core.hashing
pages = DatabaseThreads(4, "pages")  # the reads of live pages
background = DatabaseThreads(4, "background")  # sessions, grants, caches: few, short, and every request waits for them
_ALL = (requests, pages, background)


def open_threads() -> None:
    sys.setswitchinterval(SWITCH_SECONDS)
    for threads in _ALL:
        threads.open()


async def close_threads() -> None:
    await asyncio.gather(*(threads.close() for threads in _ALL))


class RequestThreads:
    """An ASGI wrapper that runs the synchronous work of HTTP requests in `requests`, or in a thread of its own for paths `apart`.

    Django runs all work of a request in one thread, and asgiref asks for one, because of what a thread keeps. Here each piece of work, a
    middleware or a view, runs in any free thread, so that a request holds no thread while its client sends or reads. That is safe because a
    thread keeps only connections, no transaction outlives a piece of work, and everything else follows the context.

    It needs middleware that is asynchronous throughout: a synchronous one would hold its thread for all that follows it.
    """

    def __init__(self, application: Application, *, apart: Collection[str] = ()) -> None:
        self._application, self._apart = application, apart

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        executor = requests.executor
        if executor is None or scope["path"] in self._apart:
            await self._application(scope, receive, send)
            return
        async with ThreadSensitiveContext(executor=executor):
            await self._application(scope, receive, send)
