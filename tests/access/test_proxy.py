"""The proxy lets through whom the table says, whatever secrets people still hold."""

from collections.abc import AsyncIterator, Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator

from dashboard.proxy.app import ALIVE_PATH, READY_PATH, WorkspaceProxy
from dashboard.proxy.gate import GrantGate, Target
from dashboard.proxy.headers import OwnCookies
from grid.core import origins
from grid.core.origins import Origins
from grid.executions.ingress import AUTH_PATH, auth_key
from grid.models import Execution, PortShare, User
from grid.runtime import Runtime
from grid.sharing import grants
from grid.sharing.grants import Key, Passage, digest, exchange_ticket, issue_ticket, new_opener
from tests.access.table import PROXY, ROLES, ROWS, Row
from tests.access.world import NO_SUCH, World, build
from tests.shell.live import cookie_of
from tests.support.cluster import FakeCluster

ORIGINS = Origins("http://workspaces.test:8001")
COOKIE = OwnCookies(ORIGINS).secret("")
ASKED = [row for row in ROWS if row.route.startswith(PROXY)]


class StoredGrants:
    """On the test's own connection."""

    async def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
        return await sync_to_async(exchange_ticket)(execution_id, ticket, opener, now=now)

    async def passages(self, keys: Collection[Key]) -> Mapping[Key, Passage]:
        return await sync_to_async(grants.passages)(keys)

    async def touch(self, used: Collection[grants.Use]) -> None:
        pass


class OneProgram(GrantGate):
    """Every execution's pod is the same program."""

    def __init__(self, program: Target) -> None:
        super().__init__(StoredGrants(), lambda _: [], namespace="")
        self._program = program

    def target(self, passage: Passage) -> Target | None:
        return self._program


@pytest.fixture
async def proxy() -> AsyncIterator[WorkspaceProxy]:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return web.Response(text="the program")
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.receive()
        return socket

    async def no_problem() -> str:
        return ""

    program = web.Application()
    program.router.add_route("*", "/{tail:.*}", answer)
    runner = web.AppRunner(program, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    gate = OneProgram(Target("127.0.0.1", port, front_port=port))
    built = WorkspaceProxy(
        gate=gate, origins=ORIGINS, dashboard_origin="http://grid.test", token=str, front_key=str, problem=no_problem
    )
    yield built
    await built.close()
    await runner.cleanup()


def test_each_address_of_the_proxys_own_has_a_row() -> None:
    below_executions = {f"/{path}" for name, path in vars(origins).items() if name.endswith("_PATH")}
    assert below_executions
    assert below_executions | {ALIVE_PATH, READY_PATH, AUTH_PATH} <= {row.route.removeprefix(PROXY) for row in ASKED}


@pytest.mark.django_db(transaction=True)
async def test_each_role_gets_its_answer_of_the_proxy(
    proxy: WorkspaceProxy, cluster: FakeCluster, runtime: Runtime, tmp_path: Path
) -> None:
    world = await sync_to_async(build)(tmp_path)
    await sync_to_async(world.show)(cluster, runtime)
    answers = {str(row): {role: await answer_to(row, role, proxy, world) for role in ROLES} for row in ASKED}
    assert answers == {str(row): row.answers for row in ASKED}


async def answer_to(row: Row, role: str, proxy: WorkspaceProxy, world: World) -> str:
    execution = world.executions.get(row.target) or world.ports.get(row.target)
    id = execution.pk if execution else NO_SUCH if row.target else ""
    origin = ORIGINS.origin(id) if id else ORIGINS.base
    headers = {"host": origin.removeprefix("http://"), "origin": origin}
    if role != "nobody":
        secret = await sync_to_async(secret_of)(world.people[role], execution) if execution else "made-up"
        headers["cookie"] = f"{COOKIE}={secret}"
    path = row.route.removeprefix(PROXY)
    if path == AUTH_PATH:  # as an ingress asks about the execution, which passes on a visitor's headers
        path += f"/{id}/{auth_key(id, id)}"
    return await asked(proxy, row.method, path, headers)


def secret_of(user: User, execution: Execution | PortShare) -> str:
    opener, now = new_opener(), datetime.now(UTC)
    ticket = issue_ticket(execution, user=user, session_key=cookie_of(user), opener_digest=digest(opener), now=now)
    return exchange_ticket(execution.pk, ticket, opener, now=now) or ""


async def asked(proxy: WorkspaceProxy, method: str, path: str, headers: Mapping[str, str]) -> str:
    is_socket = method == "WS"
    scope = {
        "type": "websocket" if is_socket else "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "subprotocols": [],
    }
    untyped: Any = ApplicationCommunicator
    browser = untyped(proxy, scope)
    await browser.send_input({"type": "websocket.connect"} if is_socket else {"type": "http.request", "body": b""})
    answer = await browser.receive_output(timeout=10)
    if answer["type"] == "websocket.accept":
        await browser.send_input({"type": "websocket.disconnect", "code": 1000})
    await browser.wait(timeout=10)
    if is_socket:
        return "open" if answer["type"] == "websocket.accept" else "refused"
    return str(answer["status"])
