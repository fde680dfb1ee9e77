"""Services of an API server in memory, followed and forwarded: both directions, slow, broken, gone, and after a restart."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from grid.core.errors import GridError
from grid.sandbox.client import Object
from grid.sandbox.kubelet.addresses import AddressBook
from grid.sandbox.serviceproxy import ServiceProxy
from grid.sandbox.serviceproxy.endpoints import Backend
from grid.sandbox.serviceproxy.forwarding import ForwardedConnections, Listener
from tests.sandbox.kubelet.support import FakeApi, JumpClock
from tests.sandbox.serviceproxy.support import ask, named, serving
from tests.support.waiting import eventually

SERVICE = "/api/v1/namespaces/default/services/head"
POD = "/api/v1/namespaces/default/pods/p"


class Stage:
    def __init__(self, folder: Path) -> None:
        self.api, self.clock = FakeApi(), JumpClock()
        self.addresses = AddressBook(folder / "addresses.json")
        self.addresses.open()
        self.proxy = ServiceProxy(self.api, self.addresses, clock=self.clock)

    async def service(self, *ports: Object, **spec: Any) -> None:
        spec = {"clusterIP": "10.96.3.7", "selector": {"app": "head"}, "ports": list(ports), **spec}
        await self.api.create("/api/v1/namespaces/default/services", {"metadata": {"name": "head"}, "spec": spec})

    async def pod(self, name: str, port: int, *, ready: str = "True") -> None:
        body = {
            "metadata": {"name": name, "labels": {"app": "head"}},
            "spec": {
                "containers": [
                    {"name": "run", "image": "python:3.11", "ports": [{"name": "comm", "containerPort": port}]}
                ]
            },
        }
        await self.api.create("/api/v1/namespaces/default/pods", body)
        status = {"phase": "Running", "podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": ready}]}
        await self.api.patch(f"/api/v1/namespaces/default/pods/{name}/status", {"status": status})

    async def ready(self, name: str, status: str) -> None:
        conditions = [{"type": "Ready", "status": status}]
        await self.api.patch(f"/api/v1/namespaces/default/pods/{name}/status", {"status": {"conditions": conditions}})

    @property
    def place(self) -> str:
        return self.addresses.service("10.96.3.7")

    async def answer(self, port: int = 8786) -> str:
        """What answers at the Service, "refused" when nothing does."""
        try:
            return (await ask(self.place, port)).split()[0]
        except ConnectionError:
            return "refused"

    async def answers(self, wanted: str, port: int = 8786) -> None:
        await eventually(lambda: self.answer(port), wanted, holds=lambda answer: answer == wanted)


@asynccontextmanager
async def running(proxy: ServiceProxy) -> AsyncIterator[None]:
    task = asyncio.create_task(proxy.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    stage = Stage(tmp_path)
    async with running(stage.proxy):
        yield stage
    stage.addresses.close()


async def test_service_is_served_while_a_ready_pod_exists(stage: Stage) -> None:
    async with serving(named("a")) as a:
        await stage.service({"port": 8786, "targetPort": "comm"})
        await stage.pod("p", a, ready="False")
        await eventually(lambda: stage.api.objects)
        assert await stage.answer() == "refused"
        await stage.ready("p", "True")
        await stage.answers("a")
        await stage.ready("p", "False")
        await stage.answers("refused")
        await stage.ready("p", "True")
        await stage.answers("a")
        await stage.api.delete(POD, grace_seconds=30)  # it is ready still, and about to end
        await stage.answers("refused")


async def test_a_service_that_changes_or_goes_is_followed(stage: Stage) -> None:
    async with serving(named("a")) as a, serving(named("b")) as b:
        await stage.service({"port": 8786, "targetPort": a})
        await stage.pod("p", 1)
        await stage.answers("a")
        place = stage.place
        await stage.api.patch(SERVICE, {"spec": {"ports": [{"port": 8787, "targetPort": b}]}})
        await stage.answers("b", 8787)
        assert await stage.answer(8786) == "refused"
        await stage.api.patch(SERVICE, {"spec": {"selector": {"app": "other"}}})
        await stage.answers("refused", 8787)
        await stage.api.patch(SERVICE, {"spec": {"selector": {"app": "head"}}})
        await stage.answers("b", 8787)
        await stage.api.delete(SERVICE)
        await eventually(lambda: not stage.addresses.services(), "the address is given back")
        with pytest.raises(ConnectionRefusedError):
            await ask(place, 8787)


async def test_addresses_of_existing_services_are_known_however_new(stage: Stage) -> None:
    await stage.service({"port": 8786})
    # The watch has not told yet; a pod that starts now needs the address all the same.
    assert await stage.proxy.places_of({"10.96.3.7", "10.96.3.8", "8.8.8.8"}) == {"10.96.3.7": stage.place}
    stage.api.down = True
    assert await stage.proxy.places_of(()) == {}
    with pytest.raises(GridError):
        await stage.proxy.places_of({"10.96.3.8"})
    stage.api.down = False


async def test_restart_keeps_the_address_and_frees_deleted_ones(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.addresses.service("10.96.9.9")
    async with serving(named("a")) as a:
        await stage.service({"port": 8786, "targetPort": a})
        await stage.pod("p", 1)
        async with running(stage.proxy):
            await stage.answers("a")
            await eventually(lambda: list(stage.addresses.services()) == ["10.96.3.7"], "what is gone is released")
        place = stage.place
        assert await stage.answer() == "refused"
        async with running(ServiceProxy(stage.api, stage.addresses, clock=stage.clock)):
            await stage.answers("a")
            assert stage.place == place
    stage.addresses.close()


async def test_a_port_that_somebody_has_taken_is_tried_again(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    place = stage.addresses.service("10.96.3.7")
    async with serving(named("a")) as a, serving(named("stranger"), place) as taken:
        await stage.service({"port": taken, "targetPort": a})
        await stage.pod("p", 1)
        await eventually(lambda: "cannot listen" in caplog.text, "it is told")
        assert await stage.answer(taken) == "stranger"
    await eventually(lambda: _free(place, taken), "the stranger is gone")
    async with serving(named("a")) as again:
        await stage.api.patch(SERVICE, {"spec": {"ports": [{"port": taken, "targetPort": again}]}})
        stage.clock.jump(5)
        await stage.answers("a", taken)
    assert caplog.text.count("cannot listen") == 1
    (message,) = stage.api.messages("head", "FailedToListen")
    assert (
        message == f"cannot listen on {place}:{taken}, where this machine reaches the Service: Address already in use"
    )


def _free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) != 0


PLACE = "127.48.255.200"


@pytest.fixture
async def connections() -> AsyncIterator[ForwardedConnections]:
    connections = ForwardedConnections()
    yield connections
    await connections.close()
    assert len(connections) == 0


@pytest.fixture
def deaf() -> Iterator[Backend]:
    """A port that is taken and at which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield Backend("127.0.0.1", bound.getsockname()[1])


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def listen(connections: ForwardedConnections, *backends: Backend) -> tuple[Listener, int]:
    listener = Listener(PLACE, 0, backends, connections)
    return listener, int(listener._socket.getsockname()[1])


async def until_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers only once the question is complete."""
    question = await reader.read()
    writer.write(b"<" + question + b">")
    writer.close()
    await writer.wait_closed()


async def test_a_half_that_ended_leaves_the_other_open(connections: ForwardedConnections) -> None:
    async with serving(until_the_end) as behind:
        listener, port = listen(connections, Backend("127.0.0.1", behind))
        reader, writer = await asyncio.open_connection(PLACE, port)
        writer.write(b"x" * 300_000)
        writer.write_eof()
        assert await reader.read() == b"<" + b"x" * 300_000 + b">"
        writer.close()
        await writer.wait_closed()
        await eventually(lambda: not len(connections), "the connection is forgotten")
        await listener.close()


async def test_backends_take_turns_and_see_who_calls(connections: ForwardedConnections) -> None:
    async with serving(named("a")) as a, serving(named("b")) as b:
        listener, port = listen(connections, Backend("127.0.0.1", a), Backend("127.0.0.1", b))
        answers = [await ask(PLACE, port, caller="127.64.0.9") for _ in range(4)]
        assert sorted(answers) == ["a 127.64.0.9"] * 2 + ["b 127.64.0.9"] * 2
        listener.lead_to([Backend("127.0.0.1", b)])
        assert {await ask(PLACE, port) for _ in range(2)} == {"b 127.0.0.1"}
        await listener.close()


async def test_unresponsive_backend_is_skipped(connections: ForwardedConnections, deaf: Backend) -> None:
    async with serving(named("b")) as b:
        listener, port = listen(connections, deaf, Backend("127.0.0.1", b))
        assert {await ask(PLACE, port) for _ in range(3)} == {"b 127.0.0.1"}
        await listener.close()


async def test_with_nobody_behind_it_a_connection_breaks_at_once(
    connections: ForwardedConnections, deaf: Backend
) -> None:
    listener, port = listen(connections, deaf)
    with pytest.raises(ConnectionResetError):
        await ask(PLACE, port)
    await listener.close()
    with pytest.raises(ConnectionRefusedError):
        await ask(PLACE, port)


async def test_connections_outlive_their_listener_and_nothing_outlives_the_proxy(
    connections: ForwardedConnections,
) -> None:
    before = open_files()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(10):
            writer.write(data)
        writer.close()

    async with serving(echo) as behind:
        listener, port = listen(connections, Backend("127.0.0.1", behind))
        pairs = [await asyncio.open_connection(PLACE, port) for _ in range(20)]
        await listener.close()
        for reader, writer in pairs:
            writer.write(b"still")
            assert await reader.readexactly(5) == b"still"
        assert len(connections) == 20
        await connections.close()
        for reader, writer in pairs:
            with pytest.raises(ConnectionResetError):
                await reader.read()
            writer.close()
        await eventually(lambda: not len(connections))
    await eventually(lambda: open_files() <= before, "every file is closed")
