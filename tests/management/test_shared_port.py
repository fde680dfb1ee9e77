"""Several processes on one port."""

import contextlib
import socket
from pathlib import Path

from grid.management.commands.up import DemoPrometheus, _more, _programs
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
        first.close()
        assert connects(port), "the others go on"


def test_further_proxies_are_like_the_first_and_hold_nothing_up(tmp_path: Path) -> None:
    programs = _programs(tmp_path, 8000, [], DemoPrometheus(8004, {"proxy": 8006}), is_populated=False)
    first = next(program for program in programs if program.name == "proxy")
    more = _more(programs, "proxy", "proxy", 3)
    assert _more(programs, "web server", "web", 1) == []
    assert [program.name for program in more] == ["proxy 2", "proxy 3"]
    assert len({program.log for program in (first, *more)}) == 3
    assert all("--share-port" in program.arguments for program in programs[1:3])
    for program in more:
        assert (program.arguments, program.is_optional) == (first.arguments, True)
        assert program.environment == {**first.environment, "GRID_PROXY_METRICS_PORT": "0"}
