"""A whole Compute Grid as its users start it: real processes, real ports, a folder of its own."""

import contextlib
import html
import http.client
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any, Protocol

import psutil

from tests.support.ports import free_ports
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]
# Pulling JupyterLab takes a minute and is the same for every test; the first one does it, for real.
IMAGES = Path(os.environ.get("GRID_TEST_IMAGES") or ROOT / "var" / "test-images")
NAMESPACE = "compute-grid"
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
_TICKET = re.compile(r'name="token" value="([\w-]+)"')
_STATE = re.compile(r'<strong class="status [^"]*" role="status">([^<]+)</strong>')
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)
_NODE = re.compile(r'<th scope="row"><a href="/nodes/([^/"]+)/">')


def claim_of(name: str) -> dict[str, Any]:
    """Return a claim as a launch makes it (`grid.executions.storage`)."""
    size = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteMany"], "resources": size}
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


START_SECONDS = 240.0  # on a machine on which others start too; two cores alone take 15


class Place(Protocol):
    """A Compute Grid that one can log in to."""

    @property
    def url(self) -> str: ...

    def folder_of(self, claim: str) -> Path:
        """Return the directory of a volume claim of the executions' namespace on this machine; it is made when it is not there."""
        ...

    def password(self, username: str) -> str: ...

    def kubectl(self, *arguments: str) -> str: ...


@dataclass
class Grid:
    """`start` returns when the address is printed; `output` is what the terminal shows."""

    var: Path
    port: int = field(default_factory=lambda: free_ports(8))
    node_idle_seconds: int = 60
    began: float | None = None  # when `make run` says that it began
    images: Path = IMAGES
    population: Sequence[str] = ()  # arguments of `manage.py up`, such as --nodes 40
    proxies: int = 1
    has_prometheus: bool = False  # started beside it where the machine has one; what few tests need
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def folder_of(self, claim: str) -> Path:
        file = self.var.with_suffix(f".{claim}.json")
        file.write_text(json.dumps(claim_of(claim)))
        with contextlib.suppress(AssertionError):  # a launch has made it
            self.kubectl("create", "-f", str(file))
        find = ("get", "pvc", claim, "-n", NAMESPACE, "-o", "jsonpath={.spec.volumeName}")
        wait_until(lambda: bool(self.kubectl(*find)), 30, f"a volume of {claim}")
        folder = self.var / "cluster" / "machine" / "volumes" / self.kubectl(*find)
        wait_until(folder.is_dir, 30, f"the directory of {claim}")
        return folder

    @property
    def terminal(self) -> Path:
        return self.var.with_suffix(".terminal")

    def environment(self) -> dict[str, str]:
        inherited = {name: text for name, text in os.environ.items() if not name.startswith(("GRID_", "DJANGO_"))}
        for name in ("KUBECONFIG", "DATABASE_URL"):
            inherited.pop(name, None)
        prometheus = {} if self.has_prometheus else {"GRID_PROMETHEUS_URL": ""}
        return {**inherited, **prometheus, "GRID_DEMO": "1", "GRID_VAR": str(self.var), "GRID_IMAGES": str(self.images)}

    def start(self, *, seconds: float = START_SECONDS) -> float:
        """Start it and give the seconds until it said that it is up."""
        started = time.monotonic()
        with self.terminal.open("wb") as terminal:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "manage.py", "up", "--without-past", "--port", str(self.port)),
                    *("--node-idle-seconds", str(self.node_idle_seconds), "--proxies", str(self.proxies)),
                    *(("--began", str(self.began)) if self.began is not None else ()),
                    *self.population,
                ],
                cwd=ROOT,
                env=self.environment(),
                stdout=terminal,
                stderr=subprocess.STDOUT,
            )
        wait_until(lambda: "Stop with Ctrl-C" in self.output or self.has_ended, seconds, f"a start:\n{self.output}")
        assert not self.has_ended, self.output
        return time.monotonic() - started

    @property
    def output(self) -> str:
        return self.terminal.read_text() if self.terminal.exists() else ""

    @property
    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def processes(self) -> list[psutil.Process]:
        """The supervisor's children and all of theirs, as they are now."""
        assert self.process is not None
        return psutil.Process(self.process.pid).children(recursive=True)

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def pull_the_plug(self) -> None:
        """Nothing of it gets to end in order, as when the machine fails."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)  # or it starts again what is killed
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.kill()

    def kill_part(self, part: str, *, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Kill one of the programs and wait until the supervisor has started it again; `meanwhile` is called at once."""
        victim = next(process for process in self.processes() if part in process.cmdline())
        victim.kill()
        meanwhile()
        wait_until(lambda: self._runs_anew(part, victim), 20, f"a new {part}")

    def _runs_anew(self, part: str, victim: psutil.Process) -> bool:
        is_running = False
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                is_running = is_running or (part in process.cmdline() and process.pid != victim.pid)
        return is_running

    def password(self, username: str) -> str:
        accounts = json.loads((self.var / "demo-users.json").read_text())
        return next(str(account["password"]) for account in accounts if account["username"] == username)

    def kubectl(self, *arguments: str) -> str:
        """What kubectl prints, against the embedded cluster."""
        kubectl = Path(sys.executable).parent / "kubectl"
        environment = {**os.environ, "KUBECONFIG": str(self.var / "kubeconfig")}
        answer = subprocess.run([kubectl, *arguments], env=environment, capture_output=True, text=True, timeout=60)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout


@contextlib.contextmanager
def ending(grid: Grid) -> Iterator[Grid]:
    """It has ended when the block has, whatever happened."""
    try:
        yield grid
    finally:
        if grid.process is not None and not grid.has_ended:
            try:
                grid.interrupt()
            except subprocess.TimeoutExpired:
                grid.kill()  # its programs end with it
                raise


class _Connection(http.client.HTTPConnection):
    """Finds every name below `localhost` on this machine, as browsers do and the system's resolver does not."""

    def connect(self) -> None:
        host = "127.0.0.1" if self.host.endswith(".localhost") else self.host
        self.sock = socket.create_connection((host, self.port), self.timeout)


class _Handler(urllib.request.HTTPHandler):
    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, request)


class Session:
    """One logged-in person."""

    def __init__(self, grid: Place, username: str) -> None:
        self._url = grid.url
        self._jar = CookieJar()
        self._opener = urllib.request.build_opener(_Handler, urllib.request.HTTPCookieProcessor(self._jar))
        self.post("/login/", {"username": username, "password": grid.password(username)}, page="/login/")

    def get(self, path: str) -> str:
        with self._open(self._url + path) as answer:
            return str(answer.read().decode())

    def post(self, path: str, fields: dict[str, str], *, page: str) -> str:
        """Send a form of `page`; gives the address that it led to. An HTTPError carries what a refusal says."""
        form = self.get(page)
        tokens = {"csrfmiddlewaretoken": _found(_TOKEN, form)}
        ticket = _TICKET.search(form)
        if ticket:
            tokens["token"] = ticket[1]
        body = urllib.parse.urlencode({**tokens, **fields}).encode()
        request = urllib.request.Request(self._url + path, body, headers={"Referer": self._url + page})
        with self._open(request) as answer:
            return str(answer.geturl())

    def configure(self, key: str, value: str) -> None:
        """Set a key of the central configuration that has its default, without the review."""
        self.post("/configuration/", {"base": "{}", "do": "save", key: value}, page="/configuration/")

    def _open(self, request: str | urllib.request.Request) -> Any:
        """A refusal's connection is closed at once, for nothing else may do it; its text stays readable."""
        try:
            return self._opener.open(request, timeout=30)
        except urllib.error.HTTPError as refusal:
            with refusal:
                text = io.BytesIO(refusal.read())
            raise urllib.error.HTTPError(refusal.url, refusal.code, refusal.reason, refusal.headers, text) from None

    def launch(self, fields: dict[str, str]) -> str:
        """The id of the new execution."""
        address = self.post("/launch/", fields, page=f"/launch/?kind={fields['kind']}")
        return address.rstrip("/").rsplit("/", 1)[1]

    def open(self, cluster_or_workspace: str) -> str:
        """Press Open; gives the address of its web page, on an origin of its own. An HTTPError carries what a refusal says."""
        page = f"/executions/{cluster_or_workspace}/"
        return self.post(f"{page}open/", {}, page=page)

    def cookie(self, name: str, host: str) -> str:
        """The value that this host has given."""
        return next(cookie.value or "" for cookie in self._jar if cookie.name == name and cookie.domain == host)

    def fetch(self, address: str) -> tuple[int, str]:
        """Status and text at a whole address, also of a refusal."""
        try:
            with self._opener.open(address, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()

    def cluster_of(self, execution_id: str) -> str:
        """The id of its cluster, from the link on its page."""
        page = self.get(f"/executions/{execution_id}/")
        ids: set[str] = set(re.findall(r'href="/executions/(\w+)/"', page)) - {execution_id}
        assert len(ids) == 1, ids
        return ids.pop()

    def state(self, execution_id: str) -> str:
        return _found(_STATE, self.get(f"/executions/{execution_id}/"))

    def wait_for(self, execution_id: str, *states: str, seconds: float) -> str:
        """Look until it is in one of the states, and fail when it has ended in another."""
        deadline = time.monotonic() + seconds
        while (state := self.state(execution_id)) not in states:
            assert state not in ("Succeeded", "Stopped", "Failed", "Error"), self.get(
                f"/executions/{execution_id}/log/"
            )
            assert time.monotonic() < deadline, f"still {state} after {seconds:.0f} s"
            time.sleep(1)
        return state

    def wait_for_line(self, execution_id: str, line: str, *, seconds: float) -> None:
        """In its log, while it runs or after."""
        deadline = time.monotonic() + seconds
        while line not in (log := self.get(f"/executions/{execution_id}/log/")):
            assert self.state(execution_id) not in ("Failed", "Error", "Stopped"), log
            assert time.monotonic() < deadline, f"waited {seconds:.0f} s in vain for “{line}” in the log:\n{log}"
            time.sleep(1)


def _found(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    assert match, f"{pattern.pattern} is not in the page:\n{text[:3000]}"
    return match[1]


def with_dask(title: str, *, least: int, most: int) -> dict[str, str]:
    """The form of a job with a cluster that keeps its size, on the smallest tiers."""
    return {
        "kind": "job",
        "project": "churn",
        "title": title,
        "environment": "dask-script",
        "tier": "small",
        "with_cluster": "on",
        "framework": "dask",
        "cluster_environment": "dask-cluster",
        "head_tier": "tiny",
        "worker_tier": "tiny",
        "workers_minimum": str(least),
        "workers_maximum": str(most),
        "target_cpu": "",
        "target_memory": "",
        "local_storage": "",
    }


def put_into_project(grid: Place, name: str, text: str) -> None:
    """As if somebody had written the file in a workspace before: into the directory that is the project's volume."""
    (grid.folder_of("project-churn") / name).write_text(text)


def words(page: str) -> str:
    """Its text in one line."""
    return " ".join(html.unescape(_TAG.sub(" ", page)).split())


def nodes(page: str) -> list[str]:
    """Names in the table of the Infrastructure page."""
    return _NODE.findall(page)
