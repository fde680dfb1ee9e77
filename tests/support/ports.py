"""Ports for servers that are processes of their own and have to be told theirs before they listen."""

import os
import socket
from itertools import chain

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
