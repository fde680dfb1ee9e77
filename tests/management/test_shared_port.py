"""Several proxies on one port."""

import contextlib
import os
import socket
from pathlib import Path

import pytest
from django.core.management.base import CommandError

from grid.management.commands.up import DemoPrometheus, _more_proxies, _programs
from grid.management.commands.web import listen
from tests.support.ports import free_ports


def connects(port: int) -> bool:
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def test_proxies_share_a_port_as_soon_as_each_serves() -> None:
    port = free_ports()
    with listen("127.0.0.1", port, is_shared=True) as first, listen("127.0.0.1", port, is_shared=True) as second:
        assert not connects(port), "a proxy that is still starting keeps nobody waiting"
        first.listen()
        second.listen()
        with pytest.raises(CommandError, match="in use by another program"):
            listen("127.0.0.1", port)
        for listener in (first, second):
            listener.settimeout(5)
        taken = set[socket.socket]()
        while len(taken) < 2:
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                for listener in (first, second):
                    listener.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        listener.accept()[0].close()
                        taken.add(listener)
        first.close()
        assert connects(port), "the others go on"


def test_further_proxies_are_like_the_first_and_hold_nothing_up(tmp_path: Path) -> None:
    prometheus = DemoPrometheus(8004, {"proxy": 8006})
    programs = _programs(tmp_path, 8000, [], prometheus, is_populated=False)
    first = next(program for program in programs if program.name == "proxy")
    more = _more_proxies(programs, 3)
    assert _more_proxies(programs, 1) == []
    assert [program.name for program in more] == ["proxy 2", "proxy 3"]
    assert len({os.fspath(program.log) for program in (first, *more)}) == 3
    for program in more:
        assert (program.arguments, program.is_optional) == (first.arguments, True)
        assert (first.environment["GRID_PROXY_METRICS_PORT"], program.environment["GRID_PROXY_METRICS_PORT"]) == (
            "8006",
            "0",
        )
    assert "--share-port" in first.arguments
