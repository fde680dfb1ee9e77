"""A pod's program as the service proxy's tests need one: it echoes, and says who it is and who asked."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handle: Handle, address: str = "127.0.0.1") -> AsyncIterator[int]:
    """Its port."""
    server = await asyncio.start_server(handle, address, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def named(name: str) -> Handle:
    """Says its name, and the address of who asked, and ends."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"{name} {writer.get_extra_info('peername')[0]}".encode())
        writer.close()
        await writer.wait_closed()

    return handle


async def ask(address: str, port: int, *, caller: str = "127.0.0.1") -> str:
    """What is answered; OSError when nobody does."""
    reader, writer = await asyncio.open_connection(address, port, local_addr=(caller, 0))
    try:
        return (await reader.read()).decode()
    finally:
        writer.close()
        await writer.wait_closed()
