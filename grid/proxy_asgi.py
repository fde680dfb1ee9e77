"""Composition root of the proxy process: people's programs on origins of their own, and nothing else.

It shares no event loop with pages: a busy page or a slow database costs nobody's notebook anything. It knows the grants, from the
database, and the executions' pods, from a watch cache of their namespace alone.
"""

import asyncio
import os
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "grid.settings")
django.setup()

# Imported after Django is set up: they import models.
from django.conf import settings  # noqa: E402

from dashboard.proxy.app import WorkspaceProxy  # noqa: E402
from dashboard.proxy.gate import GrantGate  # noqa: E402
from dashboard.proxy.own_cookies import OwnCookies  # noqa: E402
from grid import database, sessions  # noqa: E402
from grid.edge.limits import Limits  # noqa: E402
from grid.kube.credentials import Source  # noqa: E402
from grid.kube.http import HttpKubeApi  # noqa: E402
from grid.kube.objects import Pod  # noqa: E402
from grid.kube.resources import PODS  # noqa: E402
from grid.labels import Keys  # noqa: E402
from grid.launch import grants  # noqa: E402
from grid.launch.addresses import workspace_origins  # noqa: E402
from grid.launch.token import access_token  # noqa: E402
from grid.models import WorkspaceGrant  # noqa: E402
from grid.runtime import supervised  # noqa: E402
from grid.runtime.lifespan import Lifespan  # noqa: E402
from grid.watch.hub import Hub  # noqa: E402
from grid.watch.reflector import Feed, Reflector  # noqa: E402
from grid.watch.store import Store  # noqa: E402


class StoredGrants:
    """Implements `dashboard.proxy.gate.Grants` on the database."""

    async def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
        return await database.background.run(grants.exchange_ticket, execution_id, ticket, opener, now=now)

    async def passages(self, keys: Collection[grants.Key]) -> Mapping[grants.Key, grants.Passage]:
        return await database.background.run(grants.passages, keys)

    async def touch(self, session_keys: Collection[str]) -> None:
        await database.background.run(sessions.touch, session_keys, datetime.now(UTC))


_execution = Keys.under(settings.LABEL_PREFIX).execution
pods: Store[Pod] = Store("pods", indexes={"execution": lambda pod: pod.metadata.labels.get(_execution, "")})
gate = GrantGate(
    StoredGrants(), lambda execution_id: pods.by("execution", execution_id), namespace=settings.GRID_NAMESPACE
)
_lives: list["asyncio.Task[None]"] = []
_api: list[HttpKubeApi] = []


async def _problem() -> str:
    """Why nobody can be served now: without the database nobody is let in, without the first list no pod is known."""
    try:
        await database.background.run(WorkspaceGrant.objects.exists)
    except Exception as error:
        return f"The database does not answer as it should; has it been migrated? ({type(error).__name__})"
    freshness = pods.freshness(time.monotonic())
    return "" if freshness.synced else freshness.error or "The first list of pods has not come yet."


proxy = WorkspaceProxy(
    gate=gate,
    origins=workspace_origins(),
    dashboard_origin=settings.DASHBOARD_ORIGIN,
    token=access_token,
    problem=_problem,
)


async def start() -> None:
    """Never fails for want of a cluster or a database: both are waited for."""
    database.open_threads()
    api = HttpKubeApi(Source(settings.KUBECONFIG, settings.KUBE_CONTEXT))
    _api.append(api)
    follow = Reflector(api, Feed(PODS, Pod, settings.GRID_NAMESPACE), pods, Hub())
    for name, life in (("pods", follow.run), ("grants", gate.run)):
        _lives.append(asyncio.create_task(supervised(name, life), name=f"proxy {name}"))


async def stop() -> None:
    """In the order of their use: first who forwards, then what it asks."""
    await proxy.close()
    for task in _lives:
        task.cancel()
    await asyncio.gather(*_lives, return_exceptions=True)
    _lives.clear()
    while _api:
        await _api.pop().close()
    await database.close_threads()


_cookies = () if settings.WORKSPACE_PATHS else (OwnCookies(workspace_origins()).secret(""),)
application = Lifespan(Limits(proxy, cookies=_cookies), start=start, stop=stop)
