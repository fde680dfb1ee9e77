"""Composition root of the proxy process: people's programs on origins of their own, and nothing else.

It shares no event loop with pages, so a busy page or a slow database does not slow notebooks. It reads grants from the database, and the
executions' pods from a watch cache of their namespace.
"""

import asyncio
import logging
import os
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import partial

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "grid.settings")
django.setup()

# Imported after Django is set up: they import models.
from django.conf import settings  # noqa: E402

from dashboard.proxy.app import ALIVE_PATH, READY_PATH, WorkspaceProxy  # noqa: E402
from dashboard.proxy.gate import GrantGate  # noqa: E402
from dashboard.proxy.headers import OwnCookies  # noqa: E402
from dashboard.proxy.measured import MeasuredProxy  # noqa: E402
from dashboard.proxy.pods import Entrance, Entrances  # noqa: E402
from grid.core.translation import gettext as _  # noqa: E402
from grid.database import threads as database  # noqa: E402
from grid.dataplanes import api_of, data_planes  # noqa: E402
from grid.edge.limits import RequestLimits  # noqa: E402
from grid.edge.wrappers import Lifespan, RequestIds  # noqa: E402
from grid.executions.front import access_token, front_key, workspace_origins  # noqa: E402
from grid.kube.http import HttpKubeApi  # noqa: E402
from grid.kube.hub import Hub  # noqa: E402
from grid.kube.reflector import ListWatch, Reflector  # noqa: E402
from grid.kube.resources import PODS  # noqa: E402
from grid.kube.store import Store  # noqa: E402
from grid.models import WorkspaceGrant  # noqa: E402
from grid.observability import tracing  # noqa: E402
from grid.runtime import started  # noqa: E402
from grid.runtime.caches import Life  # noqa: E402
from grid.runtime.garbage import set_aside  # noqa: E402
from grid.runtime.metrics import CacheCollector, MetricsEndpoint  # noqa: E402
from grid.runtime.periodictasks import VerbosityFollower  # noqa: E402
from grid.sharing import grants  # noqa: E402

logger = logging.getLogger(__name__)


class StoredGrants:
    """Implements `dashboard.proxy.gate.Grants` on the database."""

    async def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
        return await database.background.run(grants.exchange_ticket, execution_id, ticket, opener, now=now)

    async def passages(self, keys: Collection[grants.Key]) -> Mapping[grants.Key, grants.Passage]:
        return await database.background.run(grants.passages, keys)

    async def touch(self, used: Collection[grants.Use]) -> None:
        await database.background.run(grants.touch, used, datetime.now(UTC))


_stores: list[Store[Entrance]] = []  # one for each data plane, as `_apis`
_entrances = Entrances()
_apis: list[HttpKubeApi] = []
_lives: list["asyncio.Task[None]"] = []
_endpoints: list[MetricsEndpoint] = []  # none where no port is set
gate = GrantGate(StoredGrants(), _entrances.of, namespace=settings.GRID_NAMESPACE)


async def _problem() -> str:
    """Return why nobody can be served now, or "": without the database nobody is admitted, without the first list no pod is known."""
    try:
        await database.background.run(WorkspaceGrant.objects.exists)
    except Exception as error:
        name = type(error).__name__
        return _("The database does not answer as it should; has it been migrated? ({error})", error=name)
    each = [pods.freshness(time.monotonic()) for pods in _stores]
    unread = [pods.error or _("The first list of pods has not come yet.") for pods in each if not pods.synced]
    return unread[0] if unread else ""


proxy = WorkspaceProxy(
    gate=gate,
    origins=workspace_origins(),
    dashboard_origin=settings.DASHBOARD_ORIGIN,
    token=access_token,
    front_key=front_key,
    problem=_problem,
)


async def start() -> None:
    """Start without waiting for a cluster or database that does not answer. Raise UnsupportedDataPlanes."""
    tracing.begin("proxy")
    database.open_threads()
    more_logs = VerbosityFollower("proxy", database.background.run)
    lives: dict[str, Life] = {"grants": gate.run, "verbose logs": more_logs.run}
    lives["garbage"] = partial(set_aside, lambda: all(pods.freshness(time.monotonic()).synced for pods in _stores))
    for id in await database.background.run(data_planes):
        api = api_of(id)
        pods = Store[Entrance]("pods")
        pods.subscribe(_entrances.take)
        _apis.append(api)
        _stores.append(pods)
        lives[f"pods of {id}"] = Reflector(api, ListWatch(PODS, Entrance, settings.GRID_NAMESPACE), pods, Hub()).run
    if settings.PROXY_METRICS_PORT:
        await _serve_metrics(lives)
    _lives.extend(started(lives))


async def _serve_metrics(lives: dict[str, Life]) -> None:
    endpoint = MetricsEndpoint(
        CacheCollector(lambda: {pods.name: pods.freshness(time.monotonic()) for pods in _stores})
    )
    try:
        await endpoint.start(settings.METRICS_HOST, settings.PROXY_METRICS_PORT)
    except OSError as error:  # people's programs are worth more than their numbers
        logger.error("metrics are not served, and all else works: %s", error)
    lives["loop"] = endpoint.loop_watch.run
    _endpoints.append(endpoint)


async def stop() -> None:
    """Close the proxy before the runtime it depends on."""
    await proxy.close()
    while _endpoints:
        await _endpoints.pop().stop()
    for task in _lives:
        task.cancel()
    await asyncio.gather(*_lives, return_exceptions=True)
    _lives.clear()
    while _stores:
        for pod in _stores.pop().values():
            _entrances.take(pod, None)
    while _apis:
        await _apis.pop().close()
    await database.close_threads()
    await asyncio.to_thread(tracing.end)


_cookies = () if settings.WORKSPACE_PATHS else (OwnCookies(workspace_origins()).secret(""),)
_measured = MeasuredProxy(RequestLimits(proxy, cookies=_cookies), apart=(ALIVE_PATH, READY_PATH))
application = Lifespan(RequestIds(_measured, tells=False), start=start, stop=stop)
