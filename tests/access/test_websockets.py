"""Every live page's websocket answers every role as the table says."""

from pathlib import Path

import pytest
from asgiref.sync import sync_to_async

from dashboard.routing import LIVE_PAGES
from grid.runtime import Runtime
from tests.access.table import PROXY, ROLES, ROWS, Row
from tests.access.world import World, build
from tests.shell.live import connection
from tests.support.cluster import FakeCluster

SOCKETS = [row for row in ROWS if row.method == "WS" and not row.route.startswith(PROXY)]


def test_every_websocket_has_a_row_and_vice_versa() -> None:
    assert set(LIVE_PAGES) == {row.route for row in SOCKETS}


@pytest.mark.django_db(transaction=True)
async def test_each_role_gets_its_answer(cluster: FakeCluster, runtime: Runtime, tmp_path: Path) -> None:
    world = await sync_to_async(build)(tmp_path)
    await sync_to_async(world.show)(cluster, runtime)
    answers = {str(row): {role: await _opened(world, role, row) for role in ROLES} for row in SOCKETS}
    assert answers == {str(row): row.answers for row in SOCKETS}


async def _opened(world: World, role: str, row: Row) -> str:
    async with connection(world.socket_path(row), cookie=world.cookies.get(role, "")) as socket:
        if socket is None:
            return "refused"
        return "login" if "Log in again" in await socket.message() else "open"
