"""Git servers of the tests on loopback: git's own http-backend behind TLS, and OpenSSH's sshd, both as the user of the tests."""

import base64
import getpass
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.http_server import certificate
from tests.support.ports import free_ports

USERNAME, TOKEN = "robot", "tok3n-of-the-tests"
SSHD = shutil.which("sshd") or shutil.which("/usr/sbin/sshd")


def bare(path: Path, **files: str) -> Path:
    """Make a repository; with files, a commit of them on main."""
    git("init", "-q", "--bare", "--initial-branch=main", str(path))
    git("-C", str(path), "config", "http.receivepack", "true")
    if files:
        commit(path, **files)
    return path


def commit(repository: Path, *, branch: str = "main", author: str = "x@example.org", **files: str) -> str:
    """Commit files to a branch, as somebody else does; return the commit."""
    work = repository.with_name(f"{repository.name}-{time.monotonic_ns()}")
    git("clone", "-q", str(repository), str(work))
    name = git("-C", str(work), "branch", "-r", "--list", f"origin/{branch}").strip()
    git("-C", str(work), "checkout", "-q", "-B", branch, *([name] if name else []))
    for file, text in files.items():
        place = work / file.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    git("-C", str(work), "add", "-A")
    git("-C", str(work), "-c", "user.name=x", "-c", f"user.email={author}", "commit", "-q", "-m", "theirs")
    git("-C", str(work), "push", "-q", "origin", branch)
    done = git("-C", str(work), "rev-parse", "HEAD").strip()
    shutil.rmtree(work)
    return done


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


@dataclass
class HttpsServer:
    root: Path
    port: int
    authority: Path
    asked: list[str] = field(default_factory=list)  # the lines and headers that every request came with

    def url(self, name: str) -> str:
        return f"https://localhost:{self.port}/{name}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: HttpsServer

    def _serve(self) -> None:
        self.served.asked.append(f"{self.requestline}\n{self.headers}")
        path, _, query = self.path.partition("?")
        if path.startswith("/moved/"):
            return self._answer(302, {"Location": self.served.url("there")}, b"")
        body = self._body()
        user, password = self._credentials()
        if (user, password) != (USERNAME, TOKEN):
            return self._answer(401, {"WWW-Authenticate": 'Basic realm="tests"'}, f"no entry with {password}".encode())
        done = subprocess.run(
            ["git", "http-backend"], input=body, capture_output=True, env=self._environment(path, query), check=False
        )
        head, _, rest = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        return self._answer(int(headers.pop("Status", "200").split()[0]), headers, rest)

    do_GET = do_POST = _serve  # noqa: N815 (its names are http.server's)

    def _environment(self, path: str, query: str) -> dict[str, str]:
        return {
            "GIT_PROJECT_ROOT": str(self.served.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH": "/usr/bin:/bin",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": USERNAME,
        }

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _credentials(self) -> tuple[str, str]:
        kind, _, encoded = self.headers.get("Authorization", "").partition(" ")
        user, _, password = base64.b64decode(encoded).decode().partition(":") if kind == "Basic" else ("", "", "")
        return user, password

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        return None


class _Server(ThreadingHTTPServer):
    def handle_error(self, *args: Any) -> None:
        return None  # of clients that do not believe the certificate


@contextmanager
def https_server(folder: Path) -> Iterator[HttpsServer]:
    made = certificate(folder)
    root = folder / "https"
    root.mkdir()
    served = HttpsServer(root, 0, folder / "certificate.pem")
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"served": served}))
    served.port = server.server_address[1]
    server.socket = made.server.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class SshServer:
    root: Path
    port: int
    key: str  # the private one that it accepts
    host_key: str

    def url(self, name: str) -> str:
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{self.root / name}"

    @property
    def known_hosts(self) -> str:
        return f"[127.0.0.1]:{self.port} {self.host_key}\n"


def make_key(path: Path) -> str:
    """Make a key; return the private half."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f", str(path)], check=True)
    return path.read_text()


@contextmanager
def ssh_server(folder: Path) -> Iterator[SshServer]:
    root = folder / "ssh"
    root.mkdir()
    make_key(folder / "host")
    key = make_key(folder / "client")
    shutil.copy(folder / "client.pub", folder / "authorized")
    port = free_ports()
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder / 'host'}\nAuthorizedKeysFile {folder / 'authorized'}\n"
        "StrictModes no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\n"
        "PermitRootLogin prohibit-password\nAllowTcpForwarding no\n"
    )
    if getpass.getuser() == "root":  # sshd then wants its folder, which a service would have made
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    command = [str(SSHD), "-D", "-e", "-f", str(folder / "sshd_config")]
    with (folder / "sshd.log").open("w") as log:
        process = subprocess.Popen(command, stderr=log)
    try:
        _wait_for(port, process, folder / "sshd.log")
        yield SshServer(root, port, key, " ".join((folder / "host.pub").read_text().split()[:2]))
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        else:
            return
