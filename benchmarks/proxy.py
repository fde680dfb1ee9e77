"""What the proxy costs: a kernel's echo beside a direct connection, alone and while everything else is busy; and files beside nginx.

    python -m benchmarks.proxy [--echoes 300] [--pages 50] [--seconds 10] [--proxies 1]

It starts a whole Compute Grid in a folder of its own, launches JupyterLab, and runs a line in a kernel again and again, by turns
over the proxy and straight to the pod: first alone, then with that many live pages open while pods change, and a query of five
seconds that holds the database's write lock. Then `wrk` asks for a small and a large file of one nginx, straight, through another
nginx and through our proxies, the small one over 1, 4, 16 and 64 connections, and it says how much processor time a request takes of our
proxies. nginx and wrk are Debian's packages; without them that part is left out. With `--echoes 0` the kernel is.
"""

import argparse
import asyncio
import base64
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time
import urllib.error
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import psutil

from benchmarks.marks import connect, percentile, running
from benchmarks.wholegrid import change, create_executions, follow_page, log_in, pod
from tests.end_to_end.grid import Grid, Session
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

_NAMESPACE = "compute-grid"
_FILES = {"small": 1024, "large": 8 * 2**20}
_CONNECTIONS = {"small": (1, 4, 16, 64), "large": (16,)}
_ANSWERED = re.compile(r"(\d+) requests in")
_SAID = re.compile(r"^\s*(50%|99%|Requests/sec:|Transfer/sec:|Non-2xx[^:]*:)\s+(\S+)", re.MULTILINE)
_NGINX = """
user root; worker_processes 1; daemon off; pid nginx.pid; error_log stderr;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  upstream program {{ server {address}:{port}; keepalive 64; }}
  server {{ listen {address}:{port}; root {root}; }}
  server {{
    listen 127.0.0.1:{front};
    location / {{ proxy_pass http://program; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }}
  }}
}}
"""


@dataclass
class Way:
    """To one program: where, and with which headers."""

    base: str
    headers: Mapping[str, str] = field(default_factory=dict)


def way_through_proxy(grid: Grid, person: Session, execution_id: str) -> Way:
    """As the person's browser has it after Open."""
    person.open(execution_id)
    host = f"{execution_id}.localhost:{grid.port + 1}"
    secret = person.cookie("grid_workspace", f"{execution_id}.localhost")
    headers = {"Host": host, "Cookie": f"grid_workspace={secret}", "Origin": f"http://{host}"}
    return Way(f"http://127.0.0.1:{grid.port + 1}", headers)


def way_to_pod(grid: Grid, execution_id: str) -> Way:
    name = f"workspace-{execution_id}"
    address = grid.kubectl("get", "pod", name, "-n", _NAMESPACE, "-o", "jsonpath={.status.podIP}")
    token = base64.b64decode(
        grid.kubectl("get", "secret", name, "-n", _NAMESPACE, "-o", "jsonpath={.data.token}")
    ).decode()
    return Way(f"http://{address}:8888", {"Authorization": f"token {token}"})


def line(text: str, session_id: str) -> tuple[str, str]:
    """A request of Jupyter's messaging protocol to run a line, and its id."""
    header = {
        "msg_id": uuid.uuid4().hex,
        "msg_type": "execute_request",
        "username": "",
        "session": session_id,
        "version": "5.3",
    }
    content = {"code": text, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
    whole = {
        "header": header,
        "parent_header": {},
        "metadata": {},
        "content": content,
        "channel": "shell",
        "buffers": [],
    }
    return json.dumps(whole), header["msg_id"]


async def echo(socket: aiohttp.ClientWebSocketResponse) -> float:
    """Seconds from a line to its result; what is printed would wait for the kernel to flush it."""
    text, asked = line("42", "benchmark")
    started = time.perf_counter()
    await socket.send_str(text)
    while True:
        reply = json.loads((await socket.receive(timeout=30)).data)
        if reply["msg_type"] == "execute_result" and reply["parent_header"].get("msg_id") == asked:
            return time.perf_counter() - started


async def echoes(ways: Mapping[str, Way], count: int) -> dict[str, list[float]]:
    """By turns, in one kernel."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        direct = ways["straight to the pod"]
        async with http.post(f"{direct.base}/api/kernels", json={}, headers=direct.headers) as answer:
            kernel = (await answer.json())["id"]
        sockets = {
            name: await http.ws_connect(f"{way.base}/api/kernels/{kernel}/channels", headers=way.headers)
            for name, way in ways.items()
        }
        for number in range(count + 10):
            for name, socket in sockets.items():
                took = await echo(socket)
                if number >= 10:  # the first ones wait for the kernel
                    times[name].append(took)
                await asyncio.sleep(0.01)
        for socket in sockets.values():
            await socket.close()
    return times


@contextmanager
def slow_query(database: Path) -> Iterator[None]:
    """One of about five seconds after the other, each with the write lock."""
    ending = threading.Event()

    def ask() -> None:
        with sqlite3.connect(database, isolation_level=None, timeout=30) as connection:
            while not ending.is_set():
                connection.execute("BEGIN IMMEDIATE")
                until = time.monotonic() + 5
                while time.monotonic() < until and not ending.is_set():
                    counted = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100000) SELECT count(*) FROM c"
                    connection.execute(counted).fetchone()
                connection.execute("ROLLBACK")
        connection.close()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


async def busy_echoes(grid: Grid, ways: Mapping[str, Way], options: argparse.Namespace) -> dict[str, list[float]]:
    """With live pages, of pods that change ten times a second."""
    server, api = connect(grid.var / "kubeconfig")
    ids = await asyncio.to_thread(create_executions, grid, 100)
    cookie = await log_in(grid)
    async with api, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as browser:
        for execution_id in ids:
            async with api.post(f"{server}/api/v1/namespaces/{_NAMESPACE}/pods", json=pod(execution_id)) as answer:
                assert answer.status == 201, await answer.text()
        pages = [asyncio.create_task(follow_page(browser, grid, cookie)) for _ in range(options.pages)]

        async def changing() -> None:
            number = 0
            while True:
                number += 1
                await change(api, server, f"workspace-{ids[number % len(ids)]}", 100_000 + number)
                await asyncio.sleep(0.1)

        async with running(*pages, asyncio.create_task(changing())):
            await asyncio.sleep(5)
            with slow_query(grid.var / "grid.sqlite3"):
                return await echoes(ways, options.echoes)


@contextmanager
def serving_files(address: str, port: int) -> Iterator[str]:
    """nginx there, and another in front of it at the next port, whose address it gives."""
    with tempfile.TemporaryDirectory() as name:
        folder, front = Path(name), port + 1
        (folder / "root").mkdir()
        (folder / "root" / "index.html").write_text("A program.")
        for file, size in _FILES.items():
            (folder / "root" / file).write_bytes(b"x" * size)
        configuration = _NGINX.format(address=address, port=port, front=front, root=folder / "root")
        (folder / "nginx.conf").write_text(configuration)
        program = subprocess.Popen(["nginx", "-p", name, "-c", str(folder / "nginx.conf")])
        try:
            yield f"http://127.0.0.1:{front}"
        finally:
            program.terminate()
            program.wait()


async def make_reachable(grid: Grid, execution_id: str, address: str) -> None:
    """A pod of that execution which seems to run there."""
    server, api = connect(grid.var / "kubeconfig")
    url = f"{server}/api/v1/namespaces/{_NAMESPACE}/pods"
    status = {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}}
    headers = {"Content-Type": "application/merge-patch+json"}
    async with api:
        async with api.post(url, json=pod(execution_id)) as answer:
            assert answer.status == 201, await answer.text()
        target = f"{url}/workspace-{execution_id}/status"
        async with api.patch(target, data=json.dumps(status), headers=headers) as answer:
            assert answer.status == 200, await answer.text()


def load(way: Way, path: str, connections: int, seconds: int, servers: Sequence[psutil.Process]) -> str:
    """What wrk says: the latency of the middle and of one in a hundred, requests and bytes a second, and how many were refused; and the
    servers' processor time for each request, which other load on the machine changes less."""
    headers = [part for name, value in way.headers.items() for part in ("-H", f"{name}: {value}")]
    command = ["wrk", "--latency", "-t1", f"-c{connections}", f"-d{seconds}s", *headers, f"{way.base}/{path}"]
    began = processor_seconds(servers)
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    speeds = "  ".join(f"{name} {value:>8}" for name, value in _SAID.findall(answer))
    each = (processor_seconds(servers) - began) / int(_ANSWERED.findall(answer)[0])
    return f"{speeds}  CPU {each * 1e6:.0f} us each" if servers else speeds


def processor_seconds(processes: Sequence[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(each.user + each.system for each in times)


def proxies_of(grid: Grid) -> list[psutil.Process]:
    return [process for process in grid.processes() if "proxy" in process.cmdline()]


def report(title: str, times: Mapping[str, list[float]]) -> None:
    print(title, flush=True)
    for name, delays in times.items():
        shares = "  ".join(
            f"p{share * 100:g} {percentile(delays, share) * 1000:7.1f} ms" for share in (0.5, 0.95, 0.99)
        )
        print(f"  {name:<20} {shares}  ({len(delays)} echoes)")


def measure(grid: Grid, options: argparse.Namespace) -> None:
    person = Session(grid, "scientist")
    controller = next(process for process in grid.processes() if "controller" in process.cmdline())
    ways = kernel_ways(grid, person) if options.echoes else {}
    if ways:
        report("A kernel's echo, alone:", asyncio.run(echoes(ways, options.echoes)))
    # The other pods are none of the controller's; it would clean them up.
    controller.suspend()
    try:
        if ways:
            title = f"With {options.pages} live pages and the slow query:"
            report(title, asyncio.run(busy_echoes(grid, ways, options)))
        measure_files(grid, person, options)
    finally:
        controller.resume()


def kernel_ways(grid: Grid, person: Session) -> dict[str, Way]:
    fields = {"kind": "workspace", "project": "churn", "environment": "jupyterlab", "tier": "small", "title": "Echo"}
    execution_id = person.launch(fields)
    person.wait_for(execution_id, "Running", seconds=600)
    return {
        "straight to the pod": way_to_pod(grid, execution_id),
        "through the proxy": way_through_proxy(grid, person, execution_id),
    }


def measure_files(grid: Grid, person: Session, options: argparse.Namespace) -> None:
    if not (shutil.which("nginx") and shutil.which("wrk")):
        print("Left out: files beside nginx, because nginx or wrk is not installed.")
        return
    address, port = "127.0.0.1", free_ports(2)
    execution_id = create_executions(grid, 1, port=port)[0]  # sets Django up
    from grid.models import Execution, State

    Execution.objects.filter(pk=execution_id).update(state=State.RUNNING)
    with serving_files(address, port) as front:
        asyncio.run(make_reachable(grid, execution_id, address))
        wait_until(lambda: _opens(person, execution_id), 20, "the program's page")
        ways = {
            "straight": Way(f"http://{address}:{port}"),
            "through nginx": Way(front),
            "through the proxy": way_through_proxy(grid, person, execution_id),
        }
        proxies = proxies_of(grid)
        for name, size in _FILES.items():
            for connections in _CONNECTIONS[name]:
                print(f"{size} bytes, {connections} connections, {options.seconds} s, load {os.getloadavg()[0]:.1f}:")
                for way_name, way in ways.items():
                    servers = proxies if way_name == "through the proxy" else ()
                    print(f"  {way_name:<20} {load(way, name, connections, options.seconds, servers)}", flush=True)
        memory = ", ".join(f"{process.memory_info().rss / 2**20:.0f}" for process in proxies)
        print(f"Memory of {len(proxies)} proxies: {memory} MiB")


def _opens(person: Session, execution_id: str) -> bool:
    """As soon as both processes know of it."""
    try:
        person.open(execution_id)
    except urllib.error.HTTPError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("echoes", 300), ("pages", 50), ("seconds", 10), ("proxies", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compute-grid-bench-") as folder:
        grid = Grid(Path(folder) / "var", proxies=options.proxies)
        grid.start()
        try:
            measure(grid, options)
        finally:
            grid.interrupt()


if __name__ == "__main__":
    main()
