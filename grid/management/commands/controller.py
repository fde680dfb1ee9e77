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
from collections.abc import AsyncIterator, Sequence, Set
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
from grid.database.seam import Database, Databases
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
from grid.runtime.metrics import MetricsEndpoint, WorkCollector
from grid.runtime.periodictasks import VerbosityFollower

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = (
        "Admit, create, follow and clean up executions until SIGTERM. Any number may run; one of them works at a time."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_unusable_database()
        storage = Storage(access_mode=settings.VOLUME_ACCESS_MODE, storage_class=settings.VOLUME_STORAGE_CLASS)
        shared = settings.GRID_NAMESPACE, access_token, storage, _network()
        targets = [LaunchTarget(id, *shared, front_key=front_key) for id in data_planes()]
        connection.close()  # the work runs in another thread, with a connection of its own
        asyncio.run(serve(targets))


async def serve(targets: Sequence[LaunchTarget]) -> None:
    """Run until SIGTERM or Ctrl-C; wait for a cluster or database that cannot be reached. Reconciles ask the database in one thread,
    admission in another, and what time makes due (schedules, runs, messages, builds) in a third, so that nobody's launch waits behind the
    others' work. No query outlasts the end by much."""
    task = asyncio.current_task()
    assert task is not None, "runs as a task of asyncio.run"
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    threads = [DatabaseThreads(1, f"controller {work}") for work in ("reconciles", "polls", "due work")]
    for each in threads:
        each.open()
    databases = Databases(*(each.run for each in threads))
    leading: set[str] = set()
    tracing.begin("controller")
    try:
        with contextlib.suppress(asyncio.CancelledError):
            async with _metrics(databases.due_work, leading), asyncio.TaskGroup() as tasks:
                tasks.create_task(VerbosityFollower("controller", databases.due_work).run())
                for target in targets:
                    tasks.create_task(_serve_data_plane(target, databases, leading))
    finally:
        await asyncio.gather(*(each.close() for each in threads))
        await asyncio.to_thread(tracing.end)


@contextlib.asynccontextmanager
async def _metrics(database: Database, leading: Set[str]) -> AsyncIterator[None]:
    """Serve the metrics of this process meanwhile, where a port is set. `leading` has the data planes that it leads now."""
    if not settings.CONTROLLER_METRICS_PORT:
        yield
        return
    work = WorkCollector(lambda: database(ledger.unsettled_work, leading, now=datetime.now(UTC)), lambda: bool(leading))
    endpoint = MetricsEndpoint(work, refresh=work.refresh)
    try:
        await endpoint.start(settings.METRICS_HOST, settings.CONTROLLER_METRICS_PORT)
    except OSError as error:  # executions are worth more than their numbers
        logger.error("metrics are not served, and all else works: %s", error)
    watching = asyncio.create_task(endpoint.loop_watch.run())
    try:
        yield
    finally:
        watching.cancel()
        await endpoint.stop()


async def _serve_data_plane(target: LaunchTarget, databases: Databases, leading: set[str]) -> None:
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
                controller = Controller(api, target, databases=databases, away=election.away)
                terms.append(controller)
                if (feed := feed_of(period=CONTROLLER_PERIOD_SECONDS)) is not None:
                    controller.listen_to(feed)
                await controller.run(_inputs(api, target.namespace))
            finally:
                leading.discard(target.data_plane)
                terms.clear()

        def cache_error() -> str:
            return terms[-1].cache_error() if terms else ""

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(note_failures(target.data_plane, election, cache_error, databases.due_work))
            await election.lead(work)
    finally:
        await api.close()
        logger.info("controller ended data_plane=%s", target.data_plane)


def _inputs(api: HttpKubeApi, namespace: str) -> TermInputs:
    receiver = configured()
    service, authority = ServiceReference.parse(settings.DEMAND_SERVICE), Authority(settings.SECRET_KEY)
    ask = functools.partial(ask_servers, service, authority, address=settings.DEMAND_ADDRESS)
    return TermInputs(
        usage=usage_source_of(api),
        platform=watched(namespace),
        log_receiver=LogReceiver(receiver) if receiver is not None else None,
        registration=Registration(api, service, authority, ask, is_on=settings.DEMAND_IS_SERVED),
    )


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


def _network() -> Network:
    """Return what executions may reach; never our database or the address at which pods reach the API server."""
    egress, mistakes = read_egress(settings.EGRESS, settings.STORAGE_EGRESS, settings.EGRESS_EXCEPT)
    if mistakes:  # the system checks say so first, unless somebody skipped them
        raise CommandError(" ".join(mistakes))
    hosts = (*settings.DATABASES["default"].get("HOST", "").split(","), os.environ.get("KUBERNETES_SERVICE_HOST", ""))
    ingress = settings.INGRESS_NAMESPACE if settings.INGRESS_CLASS else ""
    return Network(egress, tuple(host for host in hosts if host and not host.startswith("/")), ingress)
