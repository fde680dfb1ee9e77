"""The websocket URLs of all live pages."""

from collections.abc import Awaitable, Callable
from typing import Any

from django.urls import path, re_path

from dashboard import composition as composition
from dashboard.alerts.page import ALERTS
from dashboard.executions.pages.execution import EXECUTION
from dashboard.executions.pages.executions import EXECUTIONS
from dashboard.home.page import HOME
from dashboard.jobs.pages.job import JOB, JOBS_LIST
from dashboard.nodes.pages.infrastructure import INFRASTRUCTURE
from dashboard.nodes.pages.node import NODE, POD
from dashboard.nodes.pages.overview import OVERVIEW
from dashboard.notifications.page import NOTIFICATIONS
from dashboard.platformhealth.page import PLATFORM_HEALTH
from dashboard.queue.pages.queue import QUEUE
from dashboard.shell.pages.live import LiveConsumer, LivePage

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
