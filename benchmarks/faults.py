"""What pages say while a real Kubernetes API server is in trouble, after how many seconds, and how long until it is healed.

    REAL_KUBECONFIG=... REAL_API_DOWN="kill -9 ..." REAL_API_UP=... python -m benchmarks.faults [FAULT ...]

Web and controller run with the rights of deploy/access.yaml and reach the server through a front that delays, refuses and cuts. Each fault
lasts 30 seconds. For each, a line of a Markdown table: the first sentence that Platform health says other than before, the seconds until
then, and from the fault's end until the lights are as before. With `launches`, a job is launched while each answer takes 0, 1, 2 and 4 s,
and the seconds until its pod exists are told. With SNAPSHOT_RESTORE, a command that puts back what SNAPSHOT_SAVE has kept, a restored
store is a fault too.
"""

import asyncio
import base64
import json
import logging
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from tests.end_to_end.grid import Session, words
from tests.end_to_end.real import ACCESS, API_DOWN, API_UP, RealGrid, cluster_of
from tests.support.waiting import wait_until

LASTS = 30.0
_BEFORE_SECONDS = 6.0  # in which the lights are to be quiet
_SERVICE = re.compile(r'<tr>\s*<th scope="row">(.*?)</th>\s*<td data-label.*?>(.*?)</td>', re.DOTALL)
_NUMBER = re.compile(r"\d+")
_HEADLINE = re.compile(r'id="lights-title".*?<p>(.*?)</p>', re.DOTALL)
_HOP = {"host", "connection", "transfer-encoding", "content-length", "keep-alive"}


class Front:
    """A server of HTTP before the API server, in a thread of its own; `delay` seconds before each answer, `refusal` in place of it."""

    def __init__(self, kubeconfig: Path) -> None:
        view = ["config", "view", "--raw", "--minify", "--flatten", "-o", "json"]
        known = json.loads(subprocess.check_output(["kubectl", "--kubeconfig", str(kubeconfig), *view]))
        cluster = known["clusters"][0]["cluster"]
        self.server = cluster["server"]
        with socket.create_server(("127.0.0.1", 0)) as free:  # above the range of which the grid takes its ports
            self.port = free.getsockname()[1]
        self.delay = 0.0
        self.refusal: tuple[int, dict[str, str]] | None = None
        certificates = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._ssl = ssl.create_default_context(cadata=certificates)
        self._loop, self._open = asyncio.new_event_loop(), set[asyncio.Task[Any]]()
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        """End every answer that is under way, watches too."""
        for task in list(self._open):
            self._loop.call_soon_threadsafe(task.cancel)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(lambda loop, context: None)  # cut connections are meant
        app = web.Application(client_max_size=0)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None)
        self._loop.run_until_complete(runner.setup())
        self._session = aiohttp.ClientSession(loop=self._loop, auto_decompress=False)
        self._loop.run_until_complete(web.TCPSite(runner, "127.0.0.1", self.port).start())
        self._loop.run_forever()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            return await self._passed(request)
        finally:
            self._open.discard(task)

    async def _passed(self, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(self.delay)
        if self.refusal is not None:
            code, headers = self.refusal
            status = {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "code": code,
                "message": "too many requests",
            }
            return web.json_response(status, status=code, headers=headers)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
        try:
            async with self._session.request(
                request.method,
                self.server + request.raw_path,
                headers=headers,
                data=await request.read(),
                ssl=self._ssl,
                timeout=timeout,
            ) as upstream:
                kept = {name: value for name, value in upstream.headers.items() if name.lower() not in _HOP}
                answer = web.StreamResponse(status=upstream.status, headers=kept)
                await answer.prepare(request)
                async for part in upstream.content.iter_any():
                    await answer.write(part)
                return answer
        except aiohttp.ClientError:
            if request.transport is not None:
                request.transport.abort()  # as a server that is gone
            raise


class FrontedGrid(RealGrid):
    """A Compute Grid that reaches the API server through the front."""

    front: Front

    def write_kubeconfig(self, account: str) -> Path:
        path = super().write_kubeconfig(account)
        content = json.loads(path.read_text())
        content["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self.front.port}"}
        path.write_text(json.dumps(content))
        return path


@dataclass(frozen=True)
class Fault:
    """How trouble begins and ends."""

    begins: Callable[[FrontedGrid], None]
    ends: Callable[[FrontedGrid], None]


def _shell(command: str) -> None:
    subprocess.run(command, shell=True, check=True, timeout=120, stdout=subprocess.DEVNULL)


def _refuses(grid: FrontedGrid) -> None:
    grid.front.refusal = 429, {"Retry-After": "5"}


def _rights(grid: FrontedGrid, *, there: bool) -> None:
    change = ("apply",) if there else ("delete", "--ignore-not-found")
    rights = grid.folder / "rights.json"
    if not rights.exists():
        manifests = [each for each in yaml.safe_load_all(ACCESS.read_text()) if each["kind"].endswith("Binding")]
        rights.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": manifests}))
    grid.kubectl(*change, "-f", str(rights))


FAULTS = {
    "killed": Fault(lambda grid: _shell(API_DOWN), lambda grid: _shell(API_UP)),
    "cut": Fault(lambda grid: grid.front.cut(), lambda grid: None),
    "slow: 2 s an answer": Fault(
        lambda grid: setattr(grid.front, "delay", 2.0), lambda grid: setattr(grid.front, "delay", 0.0)
    ),
    "throttled: 429": Fault(_refuses, lambda grid: setattr(grid.front, "refusal", None)),
    "rights gone": Fault(lambda grid: _rights(grid, there=False), lambda grid: _rights(grid, there=True)),
    "restored from an older snapshot": Fault(lambda grid: _shell(os.environ["SNAPSHOT_RESTORE"]), lambda grid: None),
}


def lights(operator: Session) -> dict[str, str]:
    """Return what Platform health says of each service, and its headline."""
    page = operator.get("/platform-health/")
    headline = _HEADLINE.search(page)
    return {words(name): words(sentence) for name, sentence in _SERVICE.findall(page)} | {
        "headline": words(headline[1]) if headline else ""
    }


def measure(name: str, grid: FrontedGrid, operator: Session) -> str:
    """Cause a fault, and return its line of the table."""
    fault, before = FAULTS[name], quiet(operator)
    begun, sentences, seen = time.monotonic(), dict[str, str](), 0.0
    fault.begins(grid)
    while time.monotonic() - begun < LASTS:
        for service, sentence in lights(operator).items():
            is_other = _NUMBER.sub("", sentence) != _NUMBER.sub("", before.get(service, ""))
            if service != "headline" and is_other and service not in sentences:
                sentences[service], seen = sentence, seen or time.monotonic() - begun
        time.sleep(0.5)
    during = lights(operator)
    fault.ends(grid)
    ended = time.monotonic()
    wait_until(lambda: lights(operator)["headline"] == before["headline"], 180, f"lights as before: {during}")
    healed = time.monotonic() - ended
    text = " ".join(f"*{service}*: {sentence}" for service, sentence in sentences.items()) or "nothing: no page is late"
    return f"| {name} | {text} | {seen:.1f} | {healed:.1f} |"


def quiet(operator: Session) -> dict[str, str]:
    """Return the lights when they have been the same for a while."""
    known, since = lights(operator), time.monotonic()
    while time.monotonic() - since < _BEFORE_SECONDS:
        time.sleep(1)
        if (now := lights(operator))["headline"] != known["headline"]:
            known, since = now, time.monotonic()
    return known


def launches(grid: FrontedGrid, scientist: Session) -> Iterator[str]:
    """Launch while each answer takes so long; yield the seconds until the pod exists."""
    for delay in (0.0, 1.0, 2.0, 4.0):
        grid.front.delay = delay
        time.sleep(20)
        before, begun = set(grid.pods()), time.monotonic()
        fields = {
            "kind": "job",
            "project": "churn",
            "title": f"delay {delay:.0f}",
            "environment": "dask-script",
            "tier": "worker",
        }
        scientist.launch(fields)
        wait_until(lambda known=before: set(grid.pods()) - known, 120, "a pod")  # type: ignore[misc]
        yield f"| {delay:.0f} s | {time.monotonic() - begun:.1f} s |"
    grid.front.delay = 0.0


@contextmanager
def fronted(folder: Path) -> Iterator[FrontedGrid]:
    with cluster_of(FrontedGrid, folder) as grid:
        grid.front = Front(grid.admin)
        grid.prepare()
        grid.start_nodes()
        grid.start_controller()
        grid.start_web()
        yield grid


def main(names: list[str]) -> None:
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # cut connections are meant
    with tempfile.TemporaryDirectory() as folder, fronted(Path(folder)) as grid:
        operator, scientist = Session(grid, "operator"), Session(grid, "scientist")
        if not names or "launches" in names:
            print("| an answer takes | from the form to the pod |\n|---|---|")
            for line in launches(grid, scientist):
                print(line, flush=True)
        print("| fault | what Platform health says | after s | healed after s |\n|---|---|---|---|")
        for name in names or FAULTS:
            if name in FAULTS and ("SNAPSHOT_RESTORE" in os.environ or "snapshot" not in name):
                print(measure(name, grid, operator), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
