"""Connections through a Service's port: both directions, half-closed, slow, broken, and none left behind."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from grid.sandbox.serviceproxy.endpoints import Backend
from grid.sandbox.serviceproxy.forwarding import ForwardedConnections, Listener
from tests.sandbox.serviceproxy.support import ask, named, serving
from tests.support.waiting import eventually

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
