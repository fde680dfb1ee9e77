"""What tests of one machine share: ports for servers that are processes of their own, and turns at what only one may do."""

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

# Below those that Linux gives to outgoing connections, of which one could take the port before the server has it.
_FIRST, _LAST = 20000, 32000


def free_ports(count: int = 1) -> int:
    """The first of `count` neighbouring ports that nobody uses now; other processes that run tests begin to look elsewhere."""
    begin = _FIRST + os.getpid() * 8 % (_LAST - _FIRST)
    for first in chain(range(begin, _LAST, count), range(_FIRST, begin, count)):
        try:
            for port in range(first, first + count):
                socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return first
    raise RuntimeError("No free ports on this machine.")


@contextmanager
def turn(name: str) -> Iterator[None]:
    """Wait until no other process has the turn of that name, and have it for the block. It ends with the process."""
    with (Path(tempfile.gettempdir()) / f"compute-grid-tests-{name}.lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def rays_turn() -> Iterator[None]:
    """Have Ray for oneself.

    Ray's client server takes the first port from 23000 that is free and listens there a moment later, on 127.0.0.1 and together with
    whoever else does. On one machine two clusters whose clients connect in the same moment may so answer each other's.
    """
    with turn("ray"):
        yield
