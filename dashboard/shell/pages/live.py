"""The websocket behind every live page: it sends the changes of what its browser shows. It reads only a close from the browser: the page's
view is in the URL. Rendering and sending happen in a separate task, so that a disconnect is noticed at once. It is closed within two
seconds after its session has ended, and when a browser accepts no data for `send_seconds`."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.db import DatabaseError
from django.http import QueryDict

from dashboard.shell.access import Viewer
from dashboard.shell.pages.deadline_timer import NEVER, time_limit
from dashboard.shell.pages.feed import Feed, Feeds, rendered
from dashboard.shell.pages.page import LivePage
from dashboard.shell.pages.session_watch import SessionWatch, read_viewers, session_watch
from dashboard.shell.viewmodels.live import Fragment, PageUpdate, Shown
from grid.core.errors import NotAllowed
from grid.core.translation import gettext as _
from grid.database import threads as database
from grid.observability.telemetry import SOCKETS, on_screen
from grid.runtime import Runtime, get_runtime

__all__ = ["LiveConsumer", "LivePage"]

logger = logging.getLogger(__name__)

LOGGED_OUT, FORBIDDEN, TOO_SLOW, OTHER_ROLE, UNASKED, INTERNAL_ERROR = 4401, 4403, 4408, 4409, 1008, 1011
_GOODBYES = {
    LOGGED_OUT: _("Your session has ended, so this page no longer updates."),
    FORBIDDEN: _("You no longer have access to this page, so it no longer updates."),
}
_SOCKET_ID = "live"  # the element that holds the connection, in base.html

feeds = Feeds()
# What changes beside every page, for its viewer; each room that has such a part adds it in `dashboard.composition`.
BESIDE_PAGES: list[Callable[[Runtime, Viewer], AsyncIterator[Sequence[PageUpdate]]]] = []


class SessionEnded(Exception):
    """Raised when the user has logged out, the session has expired, or the account was closed."""


class RoleChanged(Exception):
    """Raised when the user's role has changed: the browser reconnects and gets what the new role may see."""


class LiveConsumer(AsyncWebsocketConsumer):
    def __init__(
        self,
        *,
        page: LivePage[Any, Any],
        send_seconds: float = 10.0,
        watch: SessionWatch = session_watch,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._page = page
        self._send_seconds = send_seconds
        self._watch = watch
        self._task: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        session_key = self.scope["cookies"].get(settings.SESSION_COOKIE_NAME, "")
        viewer = (await database.pages.run(read_viewers, [session_key])).get(session_key)
        if viewer is None:
            await self.accept()
            await self._say_goodbye(LOGGED_OUT)
            return
        runtime = get_runtime()
        try:
            view = self._page.view(QueryDict(self.scope.get("query_string", b"")))
        except SuspiciousOperation as error:
            logger.info("connection refused page=%s error=%s", self._page.name, error)
            await self.close()
            return
        await self._page.prepare(runtime, viewer, view)
        if not self._page.allowed(runtime, viewer, view):
            # The page may come from another replica, which already knew an execution launched a moment ago.
            await runtime.executions.catch_up()
            if not self._page.allowed(runtime, viewer, view):
                await self.close()
                return
        await self.accept()
        self._task = asyncio.create_task(self._live(runtime, viewer, view, session_key), name=f"live {self._page.name}")

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Close the websocket, because our pages send no messages."""
        logger.info("browser sends what nobody asked for, closed page=%s", self._page.name)
        await self.close(UNASKED)

    async def disconnect(self, code: int) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _live(self, runtime: Runtime, viewer: Viewer, view: Any, session_key: str) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._watch_session(runtime, viewer, view, session_key))
                for updates in BESIDE_PAGES:
                    tasks.create_task(self._tell(runtime, updates(runtime, viewer)))
                with SOCKETS.track_inprogress(), feeds.joined(self._page, runtime, viewer, view) as feed:
                    await self._follow(feed, runtime, viewer, view)
        except* SessionEnded:
            await self._say_goodbye(LOGGED_OUT)
        except* NotAllowed:
            await self._say_goodbye(FORBIDDEN)
        except* RoleChanged:
            await self.close(OTHER_ROLE)
        except* TimeoutError:
            logger.info("browser takes nothing, closed page=%s user=%s", self._page.name, viewer.username)
            await self.close(TOO_SLOW)
        except* OSError:
            logger.debug("browser is gone page=%s user=%s", self._page.name, viewer.username)
        except* DatabaseError:
            logger.warning(
                "live page ended, the database does not answer page=%s user=%s", self._page.name, viewer.username
            )
            await self.close(INTERNAL_ERROR)
        except* Exception:
            logger.exception("live page failed page=%s user=%s", self._page.name, viewer.username)
            await self.close(INTERNAL_ERROR)

    async def _follow(self, feed: Feed, runtime: Runtime, viewer: Viewer, view: Any) -> None:
        """Send the full state, then for each newer state the difference to the browser's; raise NotAllowed when access has ended."""
        version, shown, loop = 0, Shown.of(()), asyncio.get_running_loop()
        async with time_limit() as limit:
            while True:
                await feed.after(version)
                had = version
                message, version, shown = await feed.message(version, shown)
                if not self._page.still_allowed(runtime, viewer, view):
                    raise NotAllowed
                if message:
                    limit.set(loop.time() + self._send_seconds)
                    await self.send(text_data=message)
                    limit.set(NEVER)
                    if had and (since := feed.changed_since(had, version)) is not None:
                        on_screen(self._page.name, time.monotonic() - since)

    async def _tell(self, runtime: Runtime, changes: AsyncIterator[Sequence[PageUpdate]]) -> None:
        """Send what changes beside the page itself: the viewer's bell, announcements, and critical alerts."""
        async for updates in changes:
            message = rendered.message(updates, now=runtime.clock())
            async with asyncio.timeout(self._send_seconds):
                await self.send(text_data=message)

    async def _watch_session(self, runtime: Runtime, admitted: Viewer, view: Any, session_key: str) -> None:
        def holds(viewer: Viewer) -> bool:
            return viewer == admitted and self._page.still_allowed(runtime, viewer, view)

        viewer = await self._watch.viewer(session_key, holds)
        if viewer is None:
            raise SessionEnded
        if not self._page.still_allowed(runtime, viewer, view):
            raise NotAllowed
        raise RoleChanged

    async def _say_goodbye(self, code: int) -> None:
        """Replace the element that holds the connection, so that the browser does not reconnect again and again, and close."""
        notice = Fragment(_SOCKET_ID, "shell/fragments/goodbye.html", _GOODBYES[code])
        message = rendered.message([PageUpdate("replace", _SOCKET_ID, (notice,))], now=get_runtime().clock())
        await self.send(text_data=message)
        await self.close(code)
