"""The attacks of strangers on `manage.py web` as it is installed: real process, real sockets, its real limits."""

import contextlib
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.edge.process import PASSWORD, WebProcess, rest, status, web_process
from tests.edge.serving import UPGRADE
from tests.edge.test_http import TEXT, frame
from tests.support.waiting import wait_until

MIB = 2**20
ATTACKER, COLLEAGUE = "127.0.0.2", "127.0.0.3"
_WRITES_SECONDS = 4.0
FORM = "Content-Type: application/x-www-form-urlencoded"

# Migrating and starting a process take minutes beside other slow tests.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProcess]:
    with web_process(tmp_path_factory.mktemp("web")) as process:
        yield process


class Lines:
    """What the process has logged since."""

    def __init__(self, web: WebProcess) -> None:
        self._web = web
        self._before = len(web.lines())

    def __call__(self) -> list[str]:
        """Without what it says of the cluster that is not there."""
        new = self._web.lines()[self._before :]
        return [line for line in new if " grid.kube." not in line and " grid.metrics." not in line]


@pytest.fixture
def lines(web: WebProcess) -> Lines:
    return Lines(web)


def test_a_person_logs_in_and_follows_a_live_page(web: WebProcess, lines: Lines) -> None:
    answer = log_in(web)
    with opened(web, f"Cookie: grid_session={_set_cookie(answer.decode(), 'grid_session')}") as socket_of_page:
        message = socket_of_page.recv(65536)
        assert b"freshness" in message and b"session has ended" not in message, message
        socket_of_page.sendall(frame(TEXT, b"hello"))
        assert b"\x88\x02" + (1008).to_bytes(2, "big") in rest(socket_of_page)  # no page of ours sends anything
    assert not any("refused" in line for line in lines())


def log_in(web: WebProcess) -> bytes:
    page = web.get("/login/").decode()
    csrf, token = _set_cookie(page, "grid_csrf"), page.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    form = f"csrfmiddlewaretoken={token}&username=ada&password={PASSWORD}".encode()
    headers = (FORM, f"Cookie: grid_csrf={csrf}", f"Content-Length: {len(form)}", "Connection: close")
    answer = web.ask(web.head("POST", "/login/", *headers) + form)
    assert status(answer) == 302, answer
    return answer


def test_login_waits_for_database_writer_and_succeeds(web: WebProcess) -> None:
    writer = sqlite3.connect(
        web.environment["DATABASE_URL"].removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False
    )
    writer.execute("BEGIN IMMEDIATE")
    ending, began = threading.Timer(_WRITES_SECONDS, writer.rollback), time.monotonic()
    ending.start()
    try:
        log_in(web)
        assert time.monotonic() - began > _WRITES_SECONDS * 0.9, "the login wrote nothing, so it shows nothing"
    finally:
        ending.join()
        writer.close()


def _set_cookie(answer: str, name: str) -> str:
    return answer.split(f"set-cookie: {name}=", 1)[1].split(";", 1)[0]


def test_unfinished_login_uploads_leave_nothing_on_disk(web: WebProcess, lines: Lines) -> None:
    before = web.resident()
    with contextlib.ExitStack() as held:
        for number in range(4):
            connection = held.enter_context(web.connect(source=ATTACKER))
            declared = ("Content-Length: 314572800",) if number % 2 else ("Transfer-Encoding: chunked",)
            connection.sendall(web.head("POST", "/login/", FORM, *declared))
            with contextlib.suppress(OSError):
                for _ in range(16):
                    connection.sendall(b"" if number % 2 else b"100000\r\n")
                    connection.sendall(b"a" * MIB if number % 2 else b"a" * MIB + b"\r\n")
        wait_until(lambda: len(lines()) == 4, 30, "four lines of log")
        assert [path for path in web.temporary.rglob("*") if path.is_file()] == []
        assert _deleted_files(web) == []
        assert web.resident() - before < 32 * MIB
        assert status(web.get("/login/", source=COLLEAGUE)) == 200
    assert all("status=413 reason=body-too-large asked=POST /login/" in line for line in lines())


def _deleted_files(web: WebProcess) -> list[str]:
    """Open files without a name: what is spooled is one."""
    lines = []
    for path in Path(f"/proc/{web.process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            target = path.readlink()
            if "(deleted)" in str(target) and str(target).startswith(str(web.temporary)):
                lines.append(str(target))
    return lines


def test_a_thousand_abandoned_connections_keep_nobody_waiting(web: WebProcess, lines: Lines) -> None:
    with contextlib.ExitStack() as held:
        for number in range(1000):
            connection = held.enter_context(web.connect(source=ATTACKER))
            with contextlib.suppress(OSError):
                connection.sendall(
                    b"POST /login/ HT" if number % 2 else web.head("POST", "/login/", "Content-Length: 9")
                )
        started = time.monotonic()
        assert status(web.get("/login/", source=COLLEAGUE)) == 200
        assert time.monotonic() - started < 5
        assert sum("reason=too-many-connections" in line for line in lines()) == 488
        wait_until(lambda: _connections(web) == 0, 60, "the abandoned connections to be cut")
    assert status(web.get("/login/", source=ATTACKER)) == 200
    assert not any("Traceback" in line for line in lines())


def _connections(web: WebProcess) -> int:
    connections = psutil.Process(web.process.pid).net_connections("tcp")
    return sum(
        connection.status == psutil.CONN_ESTABLISHED and connection.laddr.port == web.port for connection in connections
    )


def live(web: WebProcess, *headers: str, origin: str | None = None) -> tuple[str, ...]:
    return (*UPGRADE, f"Origin: {f'http://127.0.0.1:{web.port}' if origin is None else origin}", *headers)


def opened(web: WebProcess, *headers: str) -> socket.socket:
    """A live page's websocket of somebody who is not logged in; it is accepted, so that the page can say so."""
    connection = web.connect(source=ATTACKER)
    connection.sendall(web.head("GET", "/live/home/", *live(web, *headers)))
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(1)
    assert status(received) == 101, received
    return connection


MULTIPART = "Content-Type: multipart/form-data; boundary="


def odd(path: str, *headers: str, body: bytes = b"", method: str = "") -> tuple[str, str, tuple[str, ...], bytes]:
    return method or ("POST" if body else "GET"), path, headers, body


def odd_part(headers: bytes) -> tuple[str, str, tuple[str, ...], bytes]:
    part = b"--b\r\nContent-Disposition: form-data; " + headers + b"\r\n\r\n"
    return odd("/login/", MULTIPART + "b", body=part)


_NULS = "\\000" * 9
ODD = {
    "NUL in the path": odd("/nodes/a%00b/"),
    "no UTF-8 in the path": odd("/nodes/%ff%fe/"),
    "line ends in the path": odd("/x%0d%0aSet-Cookie:%20a=b"),
    "encoded dots": odd("/static/%2e%2e/%2e%2e/manage.py"),
    "two slashes": odd("//evil.example/%2f.."),
    "no UTF-8 in the query": odd("/login/?next=%ff%00"),
    "many fields in the query": odd("/login/?" + "a&" * 3000),
    "NUL in the session cookie": odd("/", f'Cookie: grid_session="{_NULS}"'),
    "no UTF-8 in the session cookie": odd("/", "Cookie: grid_session=\xff\xfe\xff\xfe\xff\xfe\xff\xfe"),
    "huge cookie": odd("/", f"Cookie: grid_session={'a' * 30000}"),
    "odd CSRF cookie": odd("/login/", "Cookie: grid_csrf=\xff\x80", FORM, body=b"username=a"),
    "odd referer": odd("/login/", "Referer: http://[", "Origin: http://[", FORM, body=b"a=b"),
    "wrong charset": odd("/login/", f"{FORM}; charset=utf-16", body=b"\xff\xfe"),
    "many fields": odd("/login/", FORM, body=b"a&" * 3000),
    "no boundary": odd("/login/", "Content-Type: multipart/form-data", body=b"a"),
    "malformed part": odd_part(b"name=\xff"),
    "odd file": odd_part(b'name="a"; filename="../\x00\xff"\r\n\r\n!\r\n--b--'),
    "unknown method": odd("/login/", method="PROPFIND"),
    "odd htmx": odd("/login/", "HX-Request: true", "HX-Current-URL: http://[", "HX-Current-URL-URI-AutoEncoded: x"),
    "odd proxy": odd("/login/", "X-Forwarded-For: \xff, [", "X-Forwarded-Proto: \xff", "Forwarded: ["),
}


@pytest.mark.parametrize("name", ODD)
def test_malformed_requests_are_no_fault_of_ours(web: WebProcess, lines: Lines, name: str) -> None:
    method, path, headers, body = ODD[name]
    length = (f"Content-Length: {len(body)}",) if body else ()
    answer = web.ask(web.head(method, path, "Connection: close", *headers, *length) + body, source=ATTACKER)
    assert 200 <= status(answer) < 500, answer[:200]
    logged = lines()
    assert len(logged) <= 1, logged
    assert all(len(line) < 600 and "Traceback" not in line and " ERROR " not in line for line in logged), logged
