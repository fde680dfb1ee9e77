"""Programs of several executions behind a real proxy, each on its own origin or all on one, and one visitor who may open all."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

import uvicorn
from aiohttp import web

from dashboard.proxy.app import WorkspaceProxy
from dashboard.proxy.gate import Ending, GrantGate, Target
from grid.core.origins import Origins
from grid.sharing.grants import Passage

Answer = Callable[[web.Request], web.Response]


def page(script: str = "", *, title: str = "A program") -> web.Response:
    """What a program serves; its script notes what it finds in `document.title` or in `window.found`. It has an icon of its own,
    because a browser asks for a missing one whenever it likes."""
    head = f'<!doctype html><title>{title}</title><link rel="icon" href="data:,"><h1>{title}</h1>'
    text = f"{head}<script>window.found = [];\n{script}</script>"
    return web.Response(text=text, content_type="text/html")


@dataclass
class Executions(GrantGate):
    """The visitor has the secret `s` of each. `reached` is every request that came to a program."""

    programs: dict[str, Answer]
    allows_service_workers: bool = False
    by_path: bool = False
    component: str = ""
    ended: set[str] = field(default_factory=set)
    reached: list[tuple[str, str]] = field(default_factory=list)
    target_port: int = 0

    async def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
        return None

    async def passage(self, execution_id: str, secret: str) -> Passage | None:
        if execution_id not in self.programs or secret != "s":
            return None
        if execution_id in self.ended:
            return Passage(execution_id, "stopped", "", 0, has_ended=True)
        return Passage(
            execution_id,
            "running",
            "",
            1,
            base_url=f"/w/{execution_id}/" if self.by_path else "/",
            component=self.component,
            allows_service_workers=self.allows_service_workers,
        )

    @contextlib.contextmanager
    def holding(self, execution_id: str, secret: str) -> Iterator[Ending]:
        yield Ending()

    def used(self, passage: Passage) -> None:
        pass

    def target(self, passage: Passage) -> Target | None:
        return Target("127.0.0.1", self.target_port)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        execution_id = request.path.split("/")[2] if self.by_path else request.host.partition(".")[0]
        self.reached.append((execution_id, request.path))
        if request.headers.get("Upgrade"):
            ws = web.WebSocketResponse()
            await ws.prepare(request)
            await ws.send_str("the terminal of " + execution_id)
            await ws.close()
            return ws
        return self.programs[execution_id](request)


@dataclass
class Served:
    executions: Executions
    port: int
    below: str

    def address(self, execution_id: str, path: str = "") -> str:
        if self.executions.by_path:
            return f"http://{self.below}:{self.port}/w/{execution_id}/{path}"
        return f"http://{execution_id}.{self.below}:{self.port}/{path}"

    def cookies(self) -> list[dict[str, str]]:
        """What the visitor's browser has been given for each of them: host-only, and for its path where all share a host."""
        if self.executions.by_path:
            return [
                {"name": f"grid_workspace_{id}", "value": "s", "domain": self.below, "path": f"/w/{id}/"}
                for id in self.executions.programs
            ]
        return [
            {"name": "grid_workspace", "value": "s", "url": self.address(id), "sameSite": "Lax"}
            for id in self.executions.programs
        ]


@contextlib.contextmanager
def served(executions: Executions, *, below: str = "localhost") -> Iterator[Served]:
    """Below `localhost`, where browsers find every name on this machine; the listening socket waits for the server, so nobody has to."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    async def no_problem() -> str:
        return ""

    proxy = WorkspaceProxy(
        gate=executions,
        origins=Origins(f"http://{below}:{port}", by_path=executions.by_path),
        dashboard_origin="http://grid.test",
        token=lambda id: "",
        front_key=str,
        problem=no_problem,
    )
    server = uvicorn.Server(uvicorn.Config(proxy, lifespan="off", log_level="error", ws="websockets-sansio"))

    async def serve() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", executions.answer)
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        executions.target_port = runner.addresses[0][1]
        await server.serve(sockets=[listener])
        await proxy.close()
        await runner.cleanup()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield Served(executions, port, below)
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
