"""The websocket URLs of all live pages."""

from collections.abc import Awaitable, Callable
from typing import Any

from django.urls import path, re_path

from dashboard.pages.alerts import ALERTS
from dashboard.pages.execution import EXECUTION
from dashboard.pages.executions import EXECUTIONS
from dashboard.pages.home import HOME
from dashboard.pages.infrastructure import INFRASTRUCTURE
from dashboard.pages.job import JOB
from dashboard.pages.jobs import JOBS_LIST
from dashboard.pages.live import LiveConsumer, LivePage
from dashboard.pages.node import NODE
from dashboard.pages.notifications import NOTIFICATIONS
from dashboard.pages.overview import OVERVIEW
from dashboard.pages.platform_health import PLATFORM_HEALTH
from dashboard.pages.pod import POD
from dashboard.pages.queue import QUEUE

# One line for each page; the page's view passes the same object to `live_page`.
_PAGES: tuple[LivePage[Any, Any], ...] = (
    ALERTS,
    EXECUTION,
    EXECUTIONS,
    HOME,
    INFRASTRUCTURE,
    JOB,
    JOBS_LIST,
    NODE,
    NOTIFICATIONS,
    OVERVIEW,
    PLATFORM_HEALTH,
    POD,
    QUEUE,
)
LIVE_PAGES: dict[str, LivePage[Any, Any]] = {page.name: page for page in _PAGES}


async def _nothing_here(
    scope: dict[str, Any], receive: object, send: Callable[[dict[str, Any]], Awaitable[None]]
) -> None:
    """Close a websocket to an unknown URL, so that it is not logged as an error."""
    await send({"type": "websocket.close", "code": 4404})


def _route(page: LivePage[Any, Any]) -> Any:
    application: Any = LiveConsumer.as_asgi(page=page)  # Django's types know views only
    return path(f"live/{page.name}/", application)


_refusal: Any = _nothing_here
websocket_urlpatterns: list[Any] = [*map(_route, LIVE_PAGES.values()), re_path("", _refusal)]
