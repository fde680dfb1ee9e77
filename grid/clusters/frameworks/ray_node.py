"""Starts, probes and drains one node of a Ray cluster, around `ray` itself in its container.

Its text is handed to `python -I -c` in a container, so it imports nothing of the product, nor Ray: a probe has no seconds to spare. It
takes all it needs to know from its arguments and POD_IP.
"""

import contextlib
import fcntl
import http.client
import itertools
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

AGENT_PORT_FILE = "dashboard_agent_listen_port_"
# The ports of a node's agents: any free ones, as several nodes may share a machine; between those of Ray's client server and Linux'
# ephemeral ports, so that none is taken before the agents are up.
_AGENTS = ("dashboard-agent-listen", "dashboard-agent-grpc", "runtime-env-agent", "metrics-export")
_AGENT_PORTS = range(24000, 32768)
_TURN_SECONDS = 60.0
_TURN_POLL_SECONDS = 0.2
_RAYLET_LIVES = "/api/local_raylet_healthz"
_PROBE_SECONDS = 4
_POLL_SECONDS = 1.0
_PORT_SECONDS = 60.0
_PORT_POLL_SECONDS = 0.2
_POLLS_BETWEEN_WORDS = 15


def temp_directory(address: str) -> Path:
    """Return Ray's own directory by a short name: the paths of its sockets may not exceed 107 bytes, and mounts may be anywhere."""
    return Path(f"/tmp/ray-{address}")


def start(scratch: str, head: str, *command: str) -> None:
    """Become `ray start`, in an empty directory on the scratch volume. `head` is the address to wait for until it answers; ":PORT" for
    the head itself, which waits until that port is free."""
    # The first process of a container is not ended by a signal that it does not handle.
    signal.signal(signal.SIGTERM, _leave)
    place, link = Path(scratch, "ray"), temp_directory(os.environ["POD_IP"])
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    link.unlink(missing_ok=True)
    link.symlink_to(place)
    os.environ["TMPDIR"] = str(link)  # the dashboard's own processes talk over sockets in there
    host, _, port = head.rpartition(":")
    if host:
        _wait_for_head(host, int(port))
    else:
        _wait_for_port(int(port))
    agents = dict(zip(_AGENTS, free_ports(len(_AGENTS)), strict=True))
    node = os.environ["RAY_OVERRIDE_NODE_ID_FOR_TESTING"] = secrets.token_hex(28)
    _take_turns(place, node, agents[_AGENTS[0]])
    os.execvp(
        command[0], [*command, f"--temp-dir={link}", *(f"--{agent}-port={port}" for agent, port in agents.items())]
    )


def probe(*more: str) -> None:
    """Exit with an error unless this node's raylet is up, and each of `more`: `gcs:PORT` (the head's state), `port:PORT` (it listens)."""
    address = os.environ["POD_IP"]
    agent = _agent(address)
    if agent is None:
        raise SystemExit("Ray has not started yet.")
    _expect_ok(address, agent[1], _RAYLET_LIVES)
    for item in more:
        kind, _, port = item.partition(":")
        if kind == "gcs":
            _expect_ok(address, int(port), "/api/gcs_healthz")
        else:
            socket.create_connection((address, int(port)), timeout=_PROBE_SECONDS).close()


def drain(program: str, head: str, seconds: str) -> None:
    """Run `program` (ray_drain.py) for at most `seconds`. A node that has ended by itself is drained, whatever the program returned; one
    that never started needs no drain."""
    address = os.environ["POD_IP"]
    agent = _agent(address)
    if agent is None:
        return
    command = [sys.executable, "-I", "-c", program, head, seconds, agent[0]]
    try:
        code = subprocess.run(command, timeout=float(seconds), check=False).returncode
    except subprocess.TimeoutExpired:
        code = 1
    if code and _answers(address, agent[1], _RAYLET_LIVES):
        raise SystemExit(code)


def _take_turns(place: Path, node: str, port: int) -> None:
    """Start nodes that share a machine, and with it /tmp, one after the other: a child keeps the lock until this node is up, or its time
    is over. It also writes the agent's port, which the agent itself writes once it is up: a raylet waits only 15 seconds for that, and
    an agent needs a whole core for some of them. That is why we choose the node's id."""
    lock = os.open("/tmp/ray-starting", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    parent = os.getpid()
    if os.fork():
        return
    address, deadline = os.environ["POD_IP"], time.monotonic() + _TURN_SECONDS
    written = False
    while os.getppid() == parent and time.monotonic() < deadline and not _answers(address, port, _RAYLET_LIVES):
        for session in () if written else place.glob("session_2*"):
            (session / f"{AGENT_PORT_FILE}{node}").write_text(str(port))
            written = True
        time.sleep(_TURN_POLL_SECONDS)
    os._exit(0)


def free_ports(count: int) -> list[int]:
    """Return ports on which nobody listens now, at any address of this machine."""
    ports: list[int] = []
    for port in random.sample(_AGENT_PORTS, len(_AGENT_PORTS)):
        if len(ports) == count:
            break
        with contextlib.suppress(OSError), socket.socket() as tried:
            tried.bind(("", port))
            ports.append(port)
    return ports


def _agent(address: str) -> tuple[str, int] | None:
    """Return this node's id and the port of its dashboard agent, as Ray wrote them; None before it did."""
    for path in temp_directory(address).glob(f"session_2*/{AGENT_PORT_FILE}*"):
        with contextlib.suppress(OSError, ValueError):
            return path.name.removeprefix(AGENT_PORT_FILE), int(path.read_text())
    return None


def _wait_for_head(host: str, port: int) -> None:
    for polls in itertools.count():
        if _answers(host, port, "/api/gcs_healthz"):
            return
        if polls % _POLLS_BETWEEN_WORDS == 0:
            _say(f"Waiting for the cluster's head at {host}.")
        time.sleep(_POLL_SECONDS)


def _wait_for_port(port: int) -> None:
    """Wait until the port is free, at most _PORT_SECONDS. Where pods share a machine the previous head holds it until it has ended, and
    Ray, which takes 45 seconds to notice, would give up. Ray explains best when the port is somebody else's."""
    deadline = time.monotonic() + _PORT_SECONDS
    if not _is_free(port):
        _say(f"Waiting for port {port}, which the head before this one may still have.")
    while not _is_free(port) and time.monotonic() < deadline:
        time.sleep(_PORT_POLL_SECONDS)


def _is_free(port: int) -> bool:
    """Return True when nobody listens on the port; connections that have ended do not count."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("", port))
        except OSError:
            return False
        return True


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def _expect_ok(host: str, port: int, path: str) -> None:
    if not _answers(host, port, path):
        raise SystemExit(f"http://{host}:{port}{path} does not say that all is well.")


def _answers(host: str, port: int, path: str) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _leave(_signal: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + signal.SIGTERM)


COMMANDS: dict[str, Callable[..., None]] = {"start": start, "probe": probe, "drain": drain}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
