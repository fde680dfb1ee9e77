"""How long a change takes from the API server to a row in the browser, beside `kubectl get pods -w` in the same run.

    python -m benchmarks.live [--sockets 50] [--pods 100] [--changes 300] [--per-second 10]

It starts a whole Compute Grid in a folder of its own, opens that many websockets of the executions page as the operator, and
changes the restart count of pods that nobody runs. Every latency is counted from the moment at which a bare watch of this
process gets the event.
"""

import argparse
import asyncio
import base64
import json
import os
import re
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import yaml
from yarl import URL

from tests.end_to_end.grid import Grid

_FIRST = 100_000  # restart counts of six digits are found in a message by themselves
_NUMBER = re.compile(r"(?<!\d)1\d{5}(?!\d)")
_NAMESPACE = "compute-grid"


@dataclass
class Timings:
    """Arrival of each change, by its number, in seconds of one monotonic clock."""

    events: dict[int, float] = field(default_factory=dict)
    kubectl: dict[int, float] = field(default_factory=dict)
    browsers: list[dict[int, float]] = field(default_factory=list)

    def delays(self, arrivals: dict[int, float]) -> list[float]:
        return [at - self.events[number] for number, at in arrivals.items() if number in self.events]


def note(arrivals: dict[int, float], text: str) -> None:
    now = time.perf_counter()
    for number in _NUMBER.findall(text):
        arrivals.setdefault(int(number), now)


def connect(kubeconfig: Path) -> tuple[str, aiohttp.ClientSession]:
    """Address of the API server and a session that may use it."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    token = next(user["user"]["token"] for user in config["users"] if user["name"].endswith("admin"))
    trusted = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    connector = aiohttp.TCPConnector(ssl=trusted, limit=0)
    return cluster["server"], aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {token}"})


async def log_in(grid: Grid) -> str:
    """The operator's session cookie."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with session.get(f"{grid.url}/login/") as answer:
            token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', await answer.text())
        assert token is not None
        form = {"username": "operator", "password": grid.password("operator"), "csrfmiddlewaretoken": token[1]}
        async with session.post(f"{grid.url}/login/", data=form, headers={"Origin": grid.url}) as answer:
            assert answer.status == 200, await answer.text()
        cookies = session.cookie_jar.filter_cookies(URL(grid.url))
        return "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items())


def create_executions(grid: Grid, count: int, *, port: int = 0) -> list[str]:
    """Rows in the grid's own database for pods that this benchmark makes."""
    os.environ.update(grid.environment())
    os.environ["DJANGO_SETTINGS_MODULE"] = "grid.settings"
    import django

    django.setup()
    from django.utils import timezone

    from grid.launch.spec import pod_columns, tier_spec
    from grid.models import Environment, Execution, HardwareTier, Project, State, User

    tier = HardwareTier.objects.get(id="small")
    made = Execution.objects.bulk_create(
        Execution(
            kind="workspace",
            title=f"benchmark {number}",
            owner=User.objects.get(username="scientist"),
            project=Project.objects.get(id="churn"),
            environment=Environment.objects.get(id="jupyterlab"),
            tier=tier,
            spec={"port": port},
            **pod_columns(tier_spec(tier)),
            state=State.DEPLOYING,
            slots_reserved_at=timezone.now(),
        )
        for number in range(count)
    )
    return [execution.id for execution in made]


def pod(execution_id: str) -> dict[str, object]:
    labels = {
        "app.kubernetes.io/managed-by": "compute-grid",
        "dominodatalab.com/execution-id": execution_id,
        "dominodatalab.com/workload-type": "workspace",
    }
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"workspace-{execution_id}", "labels": labels},
        "spec": {
            "schedulerName": "nobody",
            "containers": [{"name": "run", "image": "none", "resources": resources}],
        },
    }


def status(restarts: int) -> dict[str, object]:
    container = {"name": "run", "image": "none", "imageID": "", "ready": False, "restartCount": restarts, "state": {}}
    return {"status": {"containerStatuses": [container]}}


async def follow_events(session: aiohttp.ClientSession, server: str, arrivals: dict[int, float]) -> None:
    url = f"{server}/api/v1/namespaces/{_NAMESPACE}/pods"
    async with session.get(url, params={"watch": "1"}, timeout=aiohttp.ClientTimeout(total=None)) as answer:
        async for line in answer.content:
            note(arrivals, line.decode())


async def follow_kubectl(grid: Grid, arrivals: dict[int, float]) -> None:
    columns = "custom-columns=NAME:.metadata.name,RESTARTS:.status.containerStatuses[0].restartCount"
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).parent / "kubectl"), "get", "pods", "-n", _NAMESPACE, "-w", "-o", columns),
        env={**os.environ, "KUBECONFIG": str(grid.var / "kubeconfig")},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async for line in process.stdout:
            note(arrivals, line.decode())
    finally:
        process.kill()
        await process.wait()


async def follow_page(session: aiohttp.ClientSession, grid: Grid, cookie: str, arrivals: dict[int, float]) -> None:
    url = f"{grid.url.replace('http', 'ws', 1)}/live/executions/"
    async with session.ws_connect(url, headers={"Cookie": cookie}, origin=grid.url, max_msg_size=0) as socket:
        async for message in socket:
            note(arrivals, str(message.data))


@asynccontextmanager
async def running(*tasks: "asyncio.Task[None]") -> AsyncIterator[None]:
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def change(session: aiohttp.ClientSession, server: str, name: str, number: int) -> None:
    url = f"{server}/api/v1/namespaces/{_NAMESPACE}/pods/{name}/status"
    headers = {"Content-Type": "application/strategic-merge-patch+json"}
    async with session.patch(url, data=json.dumps(status(number)), headers=headers) as answer:
        assert answer.status == 200, await answer.text()


async def measure(grid: Grid, options: argparse.Namespace) -> Timings:
    server, api = connect(grid.var / "kubeconfig")
    ids = await asyncio.to_thread(create_executions, grid, options.pods)
    cookie = await log_in(grid)
    timings = Timings(browsers=[{} for _ in range(options.sockets)])
    async with api, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as browser:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}
        async with api.post(f"{server}/api/v1/namespaces", json=namespace) as answer:
            assert answer.status in (201, 409), await answer.text()
        url = f"{server}/api/v1/namespaces/{_NAMESPACE}/pods"
        for execution_id in ids:
            async with api.post(url, json=pod(execution_id)) as answer:
                assert answer.status == 201, await answer.text()
        pages = [asyncio.create_task(follow_page(browser, grid, cookie, one)) for one in timings.browsers]
        watches = [
            asyncio.create_task(follow_events(api, server, timings.events)),
            asyncio.create_task(follow_kubectl(grid, timings.kubectl)),
        ]
        async with running(*pages, *watches):
            await asyncio.sleep(5)  # everybody has the full state
            started = time.perf_counter()
            for number in range(options.changes):
                await asyncio.sleep(max(0.0, started + number / options.per_second - time.perf_counter()))
                await change(api, server, f"workspace-{ids[number % len(ids)]}", _FIRST + number)
            await asyncio.sleep(3)
            failed = [task.exception() for task in [*pages, *watches] if task.done()]
            assert not failed, failed
    return timings


def percentile(values: Sequence[float], share: float) -> float:
    return statistics.quantiles(values, n=1000, method="inclusive")[round(share * 1000) - 1] if values else float("nan")


def report(timings: Timings, options: argparse.Namespace) -> None:
    all_browsers = [delay for arrivals in timings.browsers for delay in timings.delays(arrivals)]
    expected = options.changes * options.sockets
    rows = {"kubectl get pods -w": timings.delays(timings.kubectl), "row in the browser": all_browsers}
    print(
        f"{options.sockets} websockets, {options.pods} rows, {options.changes} changes, {options.per_second} a second"
    )
    for name, delays in rows.items():
        shares = "  ".join(
            f"p{share * 100:g} {percentile(delays, share) * 1000:7.1f} ms" for share in (0.5, 0.95, 0.99)
        )
        print(f"{name:<22} {shares}  ({len(delays)} seen)")
    print(
        f"changes that reached a browser as a row of their own: {len(all_browsers)} of {expected}; the rest were merged"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("sockets", 50), ("pods", 100), ("changes", 300), ("per-second", 10)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compute-grid-bench-") as folder:
        grid = Grid(Path(folder) / "var")
        grid.start()
        # These pods are none of the controller's; it would clean them up.
        controller = next(process for process in grid.processes() if "controller" in process.cmdline())
        controller.suspend()
        try:
            report(asyncio.run(measure(grid, options)), options)
        finally:
            controller.resume()
            grid.interrupt()


if __name__ == "__main__":
    main()
