"""What runs in the containers of a Ray cluster around `ray` itself: starting, probing and draining one node.

Its text is handed to `python -I -c` in a container, so it imports nothing of the product, nor Ray: a probe has no seconds to spare.
What it needs to know is in its arguments and in POD_IP.
"""

import contextlib
import fcntl
import http.client
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
# Of a node's agents. Any free ones, as several nodes may share a machine; between those of Ray's client server and those that Linux
# gives out by itself, so that none is taken before the agents are up.
_AGENTS = ("dashboard-agent-listen", "dashboard-agent-grpc", "runtime-env-agent", "metrics-export")
_AGENT_PORTS = range(24000, 32768)
_TURNS = "/tmp/ray-starting"
_TURN_SECONDS = 60.0
_TURN_POLL_SECONDS = 0.2
_RAYLET_LIVES = "/api/local_raylet_healthz"
_PROBE_SECONDS = 4
_POLL_SECONDS = 1.0
_PORT_SECONDS = 60.0
_PORT_POLL_SECONDS = 0.2
_POLLS_BETWEEN_WORDS = 15


def temp_directory(address: str) -> Path:
    """Ray's own directory by a short name: the paths of its sockets may not be longer than 107 bytes, and mounts may be anywhere."""
    return Path(f"/tmp/ray-{address}")


def start(scratch: str, head: str, *command: str) -> None:
    """Become `ray start`, in an empty directory on the scratch volume. `head`: where it is waited for until it answers; ":PORT" for the
    head itself, which waits until nobody else has that port."""
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
    _take_turns(link, node, agents[_AGENTS[0]])
    os.execvp(
        command[0], [*command, f"--temp-dir={link}", *(f"--{agent}-port={port}" for agent, port in agents.items())]
    )


def probe(*more: str) -> None:
    """Whether this node's raylet lives, and what else is asked for: `gcs:PORT` (the head's own state) and `port:PORT` (it listens)."""
    address = os.environ["POD_IP"]
    found = _agent(address)
    if found is None:
        raise SystemExit("Ray has not started yet.")
    _expect_ok(address, found[1], _RAYLET_LIVES)
    for item in more:
        kind, _, port = item.partition(":")
        if kind == "gcs":
            _expect_ok(address, int(port), "/api/gcs_healthz")
        else:
            socket.create_connection((address, int(port)), timeout=_PROBE_SECONDS).close()


def drain(program: str, head: str, seconds: str) -> None:
    """Run `program` (ray_drain.py) for at most so many seconds. A node that has ended by itself is drained, whatever became of the program
    that was connected to it; one that never started needs none."""
    address = os.environ["POD_IP"]
    found = _agent(address)
    if found is None:
        return
    command = [sys.executable, "-I", "-c", program, head, seconds, found[0]]
    try:
        code = subprocess.run(command, timeout=float(seconds), check=False).returncode
    except subprocess.TimeoutExpired:
        code = 1
    if code and _answers(address, found[1], _RAYLET_LIVES):
        raise SystemExit(code)


def _take_turns(link: Path, node: str, port: int) -> None:
    """Where nodes share a machine, and with it /tmp, one starts after the other: a child keeps the lock until this one is up, or has had
    time enough. It also writes down the agent's port, which the agent itself does once it is up: a raylet waits 15 seconds for that and
    gives up, and an agent needs a whole core for some of them. That is why the node's id is ours to give."""
    lock = os.open(_TURNS, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    parent = os.getpid()
    if os.fork():
        return
    address, deadline = os.environ["POD_IP"], time.monotonic() + _TURN_SECONDS
    written = False
    while os.getppid() == parent and time.monotonic() < deadline and not _answers(address, port, _RAYLET_LIVES):
        for session in () if written else link.glob("session_2*"):
            (session / f"{AGENT_PORT_FILE}{node}").write_text(str(port))
            written = True
        time.sleep(_TURN_POLL_SECONDS)
    os._exit(0)


def free_ports(count: int) -> list[int]:
    """That nobody listens on now, at any address of this machine."""
    found: list[int] = []
    for port in random.sample(_AGENT_PORTS, len(_AGENT_PORTS)):
        if len(found) == count:
            break
        with contextlib.suppress(OSError), socket.socket() as tried:
            tried.bind(("", port))
            found.append(port)
    return found


def _agent(address: str) -> tuple[str, int] | None:
    """This node's id and the port of its dashboard agent, as Ray wrote them down; None before it did."""
    for path in temp_directory(address).glob(f"session_2*/{AGENT_PORT_FILE}*"):
        with contextlib.suppress(OSError, ValueError):
            return path.name.removeprefix(AGENT_PORT_FILE), int(path.read_text())
    return None


def _wait_for_head(host: str, port: int) -> None:
    polls = 0
    while not _answers(host, port, "/api/gcs_healthz"):
        if polls % _POLLS_BETWEEN_WORDS == 0:
            _say(f"Waiting for the cluster's head at {host}.")
        polls += 1
        time.sleep(_POLL_SECONDS)


def _wait_for_port(port: int) -> None:
    """Where pods share a machine the head before this one keeps it until it has ended, and Ray, which takes 45 seconds to find out, would
    give up. Not for ever: Ray says best what is wrong when it is somebody else's."""
    deadline = time.monotonic() + _PORT_SECONDS
    if not _is_free(port):
        _say(f"Waiting for port {port}, which the head before this one may still have.")
    while not _is_free(port) and time.monotonic() < deadline:
        time.sleep(_PORT_POLL_SECONDS)


def _is_free(port: int) -> bool:
    """Whether nobody listens on it; connections that have ended do not count."""
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
