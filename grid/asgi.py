"""Composition root of the web process: HTTP by Django, websockets by the dashboard's live pages.

A websocket is accepted from the dashboard's own origin only, port included: user code answers on other ports of the machine, and
cookies do not know ports.
"""

import asyncio
import os
import warnings

import django
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.core.signals import request_started
from django.db import close_old_connections, reset_queries

from grid.core.regexes import Expression

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "grid.settings")
# Static files are read in a thread and are small; Django warns of each such response under ASGI all the same.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
django.setup(set_prefix=False)
from dashboard.shell.middleware import on_loop  # noqa: E402

# Only here: Django's own checks look for Django's names in the settings.
named, settings.MIDDLEWARE = settings.MIDDLEWARE, list(map(on_loop, settings.MIDDLEWARE))
django_application = ASGIHandler()
settings.MIDDLEWARE = named
# They look after the connections of the thread that they run in, as `grid.database.threads` does around each piece of work. Here they would
# take a request's first turn in a thread for nothing.
for look_after in (close_old_connections, reset_queries):
    request_started.disconnect(look_after)

# Imported after Django is set up: they import models.
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.sessions import CookieMiddleware  # noqa: E402

from dashboard.executions.pages.executions import EXECUTIONS  # noqa: E402
from dashboard.routing import websocket_urlpatterns  # noqa: E402
from dashboard.shell.fragments import preload  # noqa: E402
from grid.accounts import sessions  # noqa: E402
from grid.database import threads as database  # noqa: E402
from grid.edge import textwork  # noqa: E402
from grid.edge.limits import Bodies, RequestLimits  # noqa: E402
from grid.edge.refusals import Application  # noqa: E402
from grid.edge.wrappers import Lifespan, LoopbackOnly, OwnHosts, RequestIds, SlowRefusals  # noqa: E402
from grid.observability import tracing  # noqa: E402
from grid.runtime import start_runtime, stop_runtime  # noqa: E402

PASSWORD_PATHS = ("/login/", "/account/password/")
# The probes need no database: a process whose requests all wait for it is alive, and a restart would make that worse.
PROBES = ("/healthz", "/freshz")
django_threads = database.RequestThreads(django_application, apart=PROBES)

dashboard: Application = RequestLimits(
    OwnHosts(
        ProtocolTypeRouter(
            {
                "http": SlowRefusals(django_threads, paths=PASSWORD_PATHS),
                "websocket": CookieMiddleware(URLRouter(websocket_urlpatterns)),
            }
        ),
        allowed=settings.ALLOWED_HOSTS,
        origin=settings.DASHBOARD_ORIGIN,
    ),
    cookies=(settings.SESSION_COOKIE_NAME,),
    # These forms are small; a session cookie, which anybody can send, is no reason to accept more.
    bodies=Bodies(
        paths={path: Bodies().anonymous for path in ("/login/", "/logout/", "/theme/", "/admin/login/")},
        posts={"/alerts/received/": Bodies().others},
        uploads=Expression(r"/projects/[^/]+/files/upload/"),
        upload=settings.FILE_UPLOAD_MAX_MEMORY_SIZE,
    ),
    holds=sessions.holds,
)


async def start() -> None:
    tracing.begin("web")
    database.open_threads()
    textwork.workers.open()
    await start_runtime({"warm lists": EXECUTIONS.keep_warm})


async def stop() -> None:
    await stop_runtime()
    textwork.workers.close()
    await database.close_threads()
    await asyncio.to_thread(tracing.end)


if settings.DEBUG:
    dashboard = LoopbackOnly(dashboard)
preload()
application = Lifespan(RequestIds(dashboard), start=start, stop=stop)
