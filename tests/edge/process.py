"""`manage.py web` as an attacker meets it: a process of its own with its real settings, no cluster behind it, its log in a file.

One person has an account: ada, an admin.
"""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support import migrated
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
_START_SECONDS = 200.0
PASSWORD = "of-the-tests-only"


@dataclass
class WebProcess:
    """`temporary` is the folder where it would put temporary files; `port` is the dashboard's; `environment` has its settings."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path
    temporary: Path
    environment: Mapping[str, str]

    def lines(self) -> list[str]:
        return self.log.read_text(errors="replace").splitlines()

    def resident(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def connect(self, *, source: str = "127.0.0.1") -> socket.socket:
        """A connection from any of the loopback's addresses."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=20, source_address=(source, 0))

    def ask(self, sent: bytes, *, source: str = "127.0.0.1") -> bytes:
        """What is answered until the server closes; sent as it is."""
        with self.connect(source=source) as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(sent)
            return rest(connection)

    def get(self, path: str, *, source: str = "127.0.0.1") -> bytes:
        return self.ask(request("GET", path, "Connection: close", host=f"127.0.0.1:{self.port}"), source=source)

    def head(self, method: str, path: str, *headers: str) -> bytes:
        return request(method, path, *headers, host=f"127.0.0.1:{self.port}")


def request(method: str, path: str, *headers: str, host: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]).encode("latin-1")


def rest(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    received = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(65536):
            received += data
    return bytes(received)


def status(answer: bytes) -> int:
    """0 when there is none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


@contextlib.contextmanager
def web_process(folder: Path, **environment: str) -> Iterator[WebProcess]:
    temporary = folder / "temporary"
    temporary.mkdir()
    port = free_ports()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GRID_", "DJANGO_"))}
    environment = {
        **inherited,
        "GRID_VAR": str(folder / "var"),
        "GRID_SECRET_KEY": "tests-only",
        "GRID_DASHBOARD_ORIGIN": f"http://127.0.0.1:{port}",
        "DATABASE_URL": f"sqlite:///{folder / 'grid.sqlite3'}",
        "KUBECONFIG": str(_kubeconfig(folder)),
        "TMPDIR": str(temporary),
        "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
        **environment,
    }
    manage = [sys.executable, "manage.py"]
    if not migrated.put(folder / "grid.sqlite3"):
        subprocess.run([*manage, "migrate", "--verbosity", "0"], cwd=ROOT, env=environment, check=True)
    superuser = ["createsuperuser", "--noinput", "--username", "ada", "--email", "", "--verbosity", "0"]
    subprocess.run([*manage, *superuser], cwd=ROOT, env=environment, check=True)
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*manage, "web", "--port", str(port)], cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    web = WebProcess(port, process, log, temporary, environment)
    try:
        wait_until(lambda: _answers(web), _START_SECONDS, "the web process to answer")
        yield web
    finally:
        process.terminate()
        process.wait(20)


def _answers(web: WebProcess) -> bool:
    assert web.process.poll() is None, web.log.read_text()
    with contextlib.suppress(OSError):
        return status(web.get("/healthz")) == 200
    return False


def _kubeconfig(folder: Path) -> Path:
    """Of a cluster that does not answer: nothing listens at the port of `discard`."""
    path = folder / "kubeconfig"
    path.write_text(
        """
apiVersion: v1
kind: Config
current-context: none
contexts: [{name: none, context: {cluster: none, user: none}}]
clusters: [{name: none, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: none, user: {}}]
"""
    )
    return path
