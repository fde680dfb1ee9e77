"""What the proxy's process keeps: resident memory once it knows the pods of a full cluster, and the CPU time that reading them took.

    python -m benchmarks.proxymemory [--pods 50000] [--bytes 15800]

It starts `manage.py proxy` in a folder of its own, before a server that lists so many running pods of executions, each of that many bytes,
as Kubernetes does since 1.32, and watches on without a change. The memory is read when the proxy is ready, and again 20 s later.
"""

import argparse
import asyncio
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import aiohttp
import psutil
from aiohttp import web

from benchmarks.stage import MANAGE, NAMESPACE
from tests.support.ports import free_ports

_LONGEST_SECONDS = 600
_AT_ONCE = 200  # pods written at a time


def pod_text(size: int) -> str:
    """As JSON in one line of so many bytes, with `@N@` where pods differ."""
    labels = {
        "app.kubernetes.io/managed-by": "compute-grid",
        "app.kubernetes.io/name": "workspace",
        "app.kubernetes.io/component": "run",
        "dominodatalab.com/execution-id": "@N@",
        "dominodatalab.com/workload-type": "workspace",
        "dominodatalab.com/hardware-tier-id": "small",
        "dominodatalab.com/project-id": "churn",
        "dominodatalab.com/starting-user-username": "scientist",
    }
    ready = {"ready": True, "restartCount": 0, "image": "jupyterlab:4", "imageID": "sha256:" + "0" * 64}
    whole = {
        "metadata": {
            "name": "workspace-@N@",
            "namespace": NAMESPACE,
            "uid": "00000000-0000-4000-8000-00@N@",
            "resourceVersion": "1@N@",
            "labels": labels,
        },
        "spec": {
            "containers": [{"name": "run", "image": "jupyterlab:4", "args": [""]}],
            "initContainers": [{"name": name, "restartPolicy": "Always"} for name in ("executor", "nginx")],
        },
        "status": {
            "phase": "Running",
            "podIP": "10.@N@",
            "containerStatuses": [{"name": "run", **ready}],
            "initContainerStatuses": [{"name": name, **ready} for name in ("executor", "nginx")],
        },
    }
    text = json.dumps({"type": "ADDED", "object": whole})
    return text.replace('"args": [""]', f'"args": ["{"x" * (size - len(text))}"]') + "\n"


def api_of(pods: int, size: int) -> web.Application:
    text = pod_text(size)

    async def watch(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if "sendInitialEvents" in request.query:
            for start in range(0, pods, _AT_ONCE):
                numbers = range(start, min(start + _AT_ONCE, pods))
                await response.write("".join(text.replace("@N@", f"{n:010}") for n in numbers).encode())
            marks = {"resourceVersion": f"2{0:010}", "annotations": {"k8s.io/initial-events-end": "true"}}
            await response.write(json.dumps({"type": "BOOKMARK", "object": {"metadata": marks}}).encode() + b"\n")
        await asyncio.sleep(_LONGEST_SECONDS)
        return response

    application = web.Application()
    application.router.add_get(f"/api/v1/namespaces/{NAMESPACE}/pods", watch)
    return application


async def measure(folder: Path, options: argparse.Namespace) -> None:
    runner = web.AppRunner(api_of(options.pods, options.bytes), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = free_ports()
    configuration = {
        "clusters": [{"name": "full", "cluster": {"server": f"http://127.0.0.1:{runner.addresses[0][1]}"}}],
        "users": [{"name": "full", "user": {"token": "none"}}],
        "contexts": [{"name": "full", "context": {"cluster": "full", "user": "full"}}],
        "current-context": "full",
    }
    (folder / "kubeconfig").write_text(json.dumps(configuration))
    environment = {"KUBECONFIG": str(folder / "kubeconfig"), "GRID_DEMO": "1", "GRID_VAR": str(folder)}
    environment = {**os.environ, **environment, "GRID_WORKSPACE_ORIGIN": f"http://localhost:{port}"}
    await asyncio.to_thread(subprocess.run, [*MANAGE, "migrate", "-v0"], env=environment, check=True)
    began = time.monotonic()
    program = await asyncio.to_thread(subprocess.Popen, [*MANAGE, "proxy", "--port", str(port)], env=environment)
    process = psutil.Process(program.pid)
    try:
        await _ready(f"http://127.0.0.1:{port}/__grid__/readyz")
        _say(f"ready after {time.monotonic() - began:.1f} s", process)
        await asyncio.sleep(20)
        _say("20 s later", process)
    finally:
        program.terminate()
        await asyncio.to_thread(program.wait)
        await runner.cleanup()


async def _ready(url: str) -> None:
    async with asyncio.timeout(_LONGEST_SECONDS), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.2)


def _say(when: str, process: psutil.Process) -> None:
    processes = [process, *process.children(recursive=True)]
    resident = sum(each.memory_info().rss for each in processes) / 2**20
    seconds = sum(sum(each.cpu_times()[:2]) for each in processes)
    print(f"{when}: {resident:.0f} MiB resident in {len(processes)} processes, {seconds:.1f} s of CPU", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=50_000, help="default: %(default)s")
    parser.add_argument("--bytes", type=int, default=15_800, help="of a pod; default: %(default)s")
    options = parser.parse_args()
    print(f"{options.pods:,} pods of {options.bytes:,} bytes, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="compute-grid-bench-") as name:
        asyncio.run(measure(Path(name), options))


if __name__ == "__main__":
    main()
