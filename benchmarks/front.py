"""What nginx in front of a workspace costs: requests a second beside our proxy, memory, and the time that it adds to a start.

    python -m benchmarks.front [--seconds 10] [--starts 30]

The program is an nginx with a small and a large file. `wrk` asks for them with 16 connections: straight, through the front alone, through
our proxy alone, through both, and through an nginx as an ingress that sends requests straight to the front and asks our proxy who may pass.
It needs nginx and wrk, Debian's packages.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psutil

from benchmarks.database import set_up
from benchmarks.marks import percentile
from grid.executions.front import ADDRESS, TOKEN_HEADER, AuthProxySpec, IngressSpec, configuration, key_file, token
from tests.support.ports import free_ports

_FILES = {"small": 1024, "large": 8 * 2**20}
_KEY = "key-of-abc"  # as `visiting` has it
_PROGRAM = """
user root; worker_processes 1; daemon off; pid nginx.pid; error_log stderr;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path body; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


@contextmanager
def nginx(folder: Path, text: str, port: int) -> Iterator[psutil.Process]:
    """Run nginx with that configuration; yield it when it listens."""
    folder.mkdir(exist_ok=True)
    (folder / "nginx.conf").write_text(text)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"], stdout=log, stderr=log
        )
    try:
        while not any(connection.laddr.port == port for connection in psutil.Process(process.pid).net_connections()):
            assert process.poll() is None, (folder / "log").read_text()
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def front_text(folder: Path, program: int, port: int, ingress: IngressSpec | None = None) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "key.conf").write_text(key_file("abc", _KEY))
    spec = AuthProxySpec(image="", port=port, cores="", memory="", body_mebibytes=4096, ingress=ingress)
    upstream = (f"127.0.0.1:{program} max_fails=0",)
    return configuration(spec, upstream=upstream, is_any_answer_ready=True).replace(ADDRESS, "127.0.0.1")


async def load(base: str, file: str, headers: Mapping[str, str], seconds: int) -> str:
    """Return what wrk says: requests and bytes a second."""
    given = [part for name, value in headers.items() for part in ("-H", f"{name}: {value}")]
    command = ["wrk", "-t1", "-c16", f"-d{seconds}s", *given, f"{base}/{file}"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    lines = [line.strip() for line in output.decode().splitlines()]
    figures = [line for line in lines if line.startswith(("Requests/sec", "Transfer/sec", "Non-2xx"))]
    return "  ".join(" ".join(line.split()) for line in figures) + f"  ({next(x for x in lines if 'requests in' in x)})"


def memory(process: psutil.Process) -> str:
    """Return the proportional memory of the process and its children."""
    everyone = [process, *process.children(recursive=True)]
    return f"{sum(process.memory_full_info().pss for process in everyone) / 2**20:.1f} MiB"


@asynccontextmanager
async def proxy_to(port: int, front: int = 0) -> AsyncIterator[str]:
    from dashboard.proxy.gate import Target
    from tests.proxy.support import OpenToOneSecret, visiting

    target = Target("127.0.0.1", port, front)
    async with visiting(OpenToOneSecret(address=target)) as session:
        yield str(session._base_url).rstrip("/")


@contextmanager
def ingress_to(folder: Path, port: int, proxy: str, front: int) -> Iterator[str]:
    """Run nginx as an ingress does by the Ingress of an execution, whose front listens on the port `front`; yield its URL."""
    from grid.executions.ingress import objects
    from tests.executions.test_manifests import spec
    from tests.proxy.test_ingress import INGRESS, ingress_configuration

    of_front = AuthProxySpec(image="", port=front, cores="", memory="", body_mebibytes=4096, ingress=INGRESS)
    made = objects(spec(id="abc", front=of_front), namespace="n", front_key=_KEY)
    with nginx(folder, ingress_configuration(made, port, proxy.removeprefix("http://"), front), port):
        yield f"http://127.0.0.1:{port}"


async def measure(folder: Path, seconds: int) -> None:
    from tests.proxy.support import COOKIE, HOST
    from tests.proxy.test_ingress import INGRESS

    program = free_ports(4)
    front, straight, ingress = program + 1, program + 2, program + 3
    root = folder / "root"
    root.mkdir()
    for name, size in _FILES.items():
        (root / name).write_bytes(b"x" * size)
    guarded = front_text(folder / "front", program, front)
    behind_ingress = front_text(folder / "straight", program, straight, INGRESS)
    browser = {**HOST, **COOKIE}
    with (
        nginx(folder / "program", _PROGRAM.format(port=program, root=root), program),
        nginx(folder / "front", guarded, front) as in_front,
        nginx(folder / "straight", behind_ingress, straight),
    ):
        print(f"memory of nginx at rest: {memory(in_front)}")
        signed = {TOKEN_HEADER: token("abc", _KEY, int(time.time()) + 3600)}
        for name in _FILES:
            print(f"{name} file of {_FILES[name]} bytes, 16 connections, {seconds} s each")
            print("  straight            ", await load(f"http://127.0.0.1:{program}", name, {}, seconds), flush=True)
            print("  through nginx       ", await load(f"http://127.0.0.1:{front}", name, signed, seconds), flush=True)
            async with proxy_to(program) as base:
                print("  through the proxy   ", await load(base, name, browser, seconds), flush=True)
            async with proxy_to(program, front) as base:
                print("  through both        ", await load(base, name, browser, seconds), flush=True)
            async with proxy_to(program, straight) as base:
                with ingress_to(folder / "ingress", ingress, base, straight) as url:
                    print("  through an ingress  ", await load(url, name, browser, seconds), flush=True)
        print(
            f"memory of nginx after it: {memory(in_front)}; of this process, with the proxy: {memory(psutil.Process())}"
        )


def measure_starts(folder: Path, count: int) -> None:
    """Time from the start of nginx until it listens."""
    port, took = free_ports(2), []
    text = front_text(folder / "starts", port + 1, port)
    for _ in range(count):
        began = time.perf_counter()
        with nginx(folder / "starts", text, port):
            took.append(time.perf_counter() - began)
    shares = {f"p{share * 100:g}": round(percentile(took, share) * 1000, 1) for share in (0.5, 0.95)}
    print(f"from start to listening, {count} times, milliseconds: {json.dumps(shares)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("seconds", 10), ("starts", 30)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin"
    if not (shutil.which("nginx") and shutil.which("wrk")):
        parser.error("nginx and wrk are needed; they are Debian's packages of these names")
    with tempfile.TemporaryDirectory(prefix="compute-grid-bench-") as name:
        set_up(name)
        measure_starts(Path(name), options.starts)
        asyncio.run(measure(Path(name), options.seconds))


if __name__ == "__main__":
    main()
