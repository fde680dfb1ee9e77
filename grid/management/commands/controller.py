"""Runs executions in the cluster, as the one leader among all processes that run this command."""

import asyncio
import contextlib
import functools
import logging
import os
import random
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Sequence, Set
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from grid.clusters.registration import Registration, ask_servers
from grid.controller.controller import Controller
from grid.controller.failures import note_failures
from grid.controller.leader import LEASE, Election
from grid.controller.periodictasks import TermInputs
from grid.core.backoff import Backoff
from grid.core.egress import read_egress
from grid.core.errors import GridError, NotAllowed
from grid.database.changefeed import CONTROLLER_PERIOD_SECONDS, feed_of
from grid.database.seam import Databases
from grid.database.threads import DatabaseThreads
from grid.dataplanes import api_of, data_planes
from grid.executions import ledger
from grid.executions.apply import ensure_namespace
from grid.executions.context import LaunchTarget
from grid.executions.front import access_token, front_key
from grid.executions.policykeeper import Network
from grid.executions.storage import Storage
from grid.kube.http import HttpKubeApi
from grid.logs.logshipping.receiver import LogReceiver, configured
from grid.management.varfiles import refuse_unusable_database
from grid.metrics.external import Authority, ServiceReference
from grid.observability import tracing
from grid.platformhealth.keeper import watched
from grid.runtime import usage_source_of
from grid.runtime.loopwatch import LoopWatch
from grid.runtime.metrics import MetricsEndpoint, WorkCollector, loop_gauge
from grid.runtime.verbose import VerbosityFollower

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = (
        "Admit, create, follow and clean up executions until SIGTERM. Any number may run; one of them works at a time."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_unusable_database()
        targets = [_target(id) for id in data_planes()]
        connection.close()  # the work runs in another thread, with a connection of its own
        asyncio.run(serve(targets))


class ControllerThreads:
    """The controller's threads for the database, one for each kind of work that waits for no other."""

    def __init__(self) -> None:
        self.reconciles = DatabaseThreads(1, "controller reconciles")
        self.polls = DatabaseThreads(1, "controller polls")
        self.due_work = DatabaseThreads(1, "controller due work")

    @property
    def databases(self) -> Databases:
        return Databases(self.reconciles.run, self.polls.run, self.due_work.run)

    def open(self) -> None:
        for threads in (self.reconciles, self.polls, self.due_work):
            threads.open()

    async def close(self) -> None:
        await asyncio.gather(*(threads.close() for threads in (self.reconciles, self.polls, self.due_work)))


async def serve(targets: Sequence[LaunchTarget]) -> None:
    """Run until SIGTERM or Ctrl-C; wait for a cluster or database that cannot be reached.

    Reconciles ask the database in one thread, admission in another, and what time makes due (schedules, runs, messages, builds) in a
    third, so that nobody's launch waits behind the others' work. No query outlasts the end by much.
    """
    task = asyncio.current_task()
    assert task is not None, "runs as a task of asyncio.run"
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    threads = ControllerThreads()
    threads.open()
    leading: set[str] = set()
    tracing.begin("controller")
    try:
        with contextlib.suppress(asyncio.CancelledError):
            async with _metrics(threads.due_work, leading), asyncio.TaskGroup() as tasks:
                tasks.create_task(VerbosityFollower("controller", threads.due_work.run).run())
                for target in targets:
                    tasks.create_task(_serve_data_plane(target, threads, leading))
    finally:
        await threads.close()
        await asyncio.to_thread(tracing.end)


@contextlib.asynccontextmanager
async def _metrics(database: DatabaseThreads, leading: Set[str]) -> AsyncIterator[None]:
    """Serve the metrics of this process meanwhile, where a port is set. `leading` has the data planes that it leads now."""
    if not settings.CONTROLLER_METRICS_PORT:
        yield
        return
    loop = LoopWatch()

    def read() -> Awaitable[ledger.UnsettledWork]:
        return database.run(ledger.unsettled_work, leading, now=datetime.now(UTC))

    work = WorkCollector(read, lambda: bool(leading))
    endpoint = MetricsEndpoint(work, loop_gauge(loop.longest), refresh=work.refresh)
    try:
        await endpoint.start(settings.METRICS_HOST, settings.CONTROLLER_METRICS_PORT)
    except OSError as error:  # executions are worth more than their numbers
        logger.error("metrics are not served, and all else works: %s", error)
    watching = asyncio.create_task(loop.run())
    try:
        yield
    finally:
        watching.cancel()
        await endpoint.stop()


async def _serve_data_plane(target: LaunchTarget, threads: ControllerThreads, leading: set[str]) -> None:
    """Lead the data plane whenever nobody else does, as its own lease tells, and be in `leading` meanwhile."""
    api = api_of(target.data_plane)
    # The host's name tells an operator which process leads; the rest makes two processes of one host differ.
    identity = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
    election = Election(api, name=LEASE, namespace=target.namespace, identity=identity)
    logger.info("controller started data_plane=%s namespace=%s", target.data_plane, target.namespace)
    try:
        await _make_ready(api, target.namespace)
        terms: list[Controller] = []

        async def work() -> None:
            leading.add(target.data_plane)
            try:
                terms.append(Controller(api, target, databases=threads.databases, away=election.away))
                await _lead(terms[-1], api, target.namespace)
            finally:
                leading.discard(target.data_plane)
                terms.clear()

        def cache_error() -> str:
            return terms[-1].cache_error() if terms else ""

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(note_failures(target.data_plane, election, cache_error, threads.due_work.run))
            await election.lead(work)
    finally:
        await api.close()
        logger.info("controller ended data_plane=%s", target.data_plane)


async def _lead(controller: Controller, api: HttpKubeApi, namespace: str) -> None:
    receiver, feed = configured(), feed_of(period=CONTROLLER_PERIOD_SECONDS)
    if feed is not None:
        controller.listen_to(feed)
    inputs = TermInputs(
        usage=usage_source_of(api),
        platform=watched(namespace),
        log_receiver=LogReceiver(receiver) if receiver is not None else None,
        registration=_registration(api),
    )
    await controller.run(inputs)


def _registration(api: HttpKubeApi) -> Registration:
    service, authority = ServiceReference.parse(settings.DEMAND_SERVICE), Authority(settings.SECRET_KEY)
    ask = functools.partial(ask_servers, service, authority, address=settings.DEMAND_ADDRESS)
    return Registration(api, service, authority, ask, is_on=settings.DEMAND_IS_SERVED)


async def _make_ready(api: HttpKubeApi, namespace: str) -> None:
    """Create the namespace, which the lease and the executions need; wait for the cluster while it does not answer."""
    backoff = Backoff(rng=random.Random())
    while True:
        try:
            await ensure_namespace(api, namespace)
        except NotAllowed as error:
            logger.warning("namespace cannot be looked at, taking it to exist namespace=%s reason=%s", namespace, error)
        except GridError as error:
            logger.warning("waiting for the cluster reason=%s", error)
            await asyncio.sleep(backoff.next())
            continue
        return


def _target(data_plane: str) -> LaunchTarget:
    return LaunchTarget(data_plane, settings.GRID_NAMESPACE, access_token, _storage(), _network(), front_key=front_key)


def _network() -> Network:
    """Return what executions may reach; never our database or the address at which pods reach the API server."""
    egress, mistakes = read_egress(settings.EGRESS, settings.STORAGE_EGRESS, settings.EGRESS_EXCEPT)
    if mistakes:  # the system checks say so first, unless somebody skipped them
        raise CommandError(" ".join(mistakes))
    hosts = (*settings.DATABASES["default"].get("HOST", "").split(","), os.environ.get("KUBERNETES_SERVICE_HOST", ""))
    ingress = settings.INGRESS_NAMESPACE if settings.INGRESS_CLASS else ""
    return Network(egress, tuple(host for host in hosts if host and not host.startswith("/")), ingress)


def _storage() -> Storage:
    """Return the storage of projects' volumes."""
    return Storage(access_mode=settings.VOLUME_ACCESS_MODE, storage_class=settings.VOLUME_STORAGE_CLASS)
