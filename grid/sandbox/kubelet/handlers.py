"""The handlers of probes and lifecycle hooks: run a command, request over HTTP, open a connection, sleep."""

import asyncio
import contextlib
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import aiohttp

from grid.sandbox.client import Clock, Object
from grid.sandbox.kubelet.clusterips import replaced
from grid.sandbox.kubelet.environment import expand_all
from grid.sandbox.kubelet.mounts import Mounts
from grid.sandbox.kubelet.runtime import Attempt, ContainerRuntime

_LONGEST_MESSAGE = 1024
_AGENT = "kube-probe/1.36"


@dataclass(frozen=True, slots=True)
class HandlerOutcome:
    ok: bool
    message: str = ""


class Web(Protocol):
    """The HTTP session that all probes share; made on the loop at first use."""

    def session(self) -> aiohttp.ClientSession: ...


@dataclass(frozen=True, slots=True)
class HandlerTarget:
    """The running container that a handler is for."""

    container: Object
    attempt: Attempt
    pod_ip: str


class Handlers:
    """The runner of handlers. A failure of the container is an `HandlerOutcome`, never an exception."""

    def __init__(self, runtime: ContainerRuntime, web: Web, clock: Clock) -> None:
        self._runtime = runtime
        self._web = web
        self._clock = clock

    async def run(self, handler: Object, target: HandlerTarget, timeout: float) -> HandlerOutcome:
        try:
            if handler.get("exec"):
                return await self._execute(handler["exec"].get("command") or (), target, timeout)
            if handler.get("httpGet"):
                return await self._get(handler["httpGet"], target, timeout)
            if handler.get("tcpSocket"):
                return await self._connect(handler["tcpSocket"], target, timeout)
            if handler.get("sleep"):
                await self._clock.sleep(float(handler["sleep"].get("seconds", 0)))
                return HandlerOutcome(True)
        except LookupError as error:
            return HandlerOutcome(False, str(error.args[0]))
        kinds = ", ".join(key for key in handler if key in ("grpc",)) or "nothing"
        return HandlerOutcome(
            False, f"this cluster cannot run such a handler ({kinds}); use exec, httpGet or tcpSocket"
        )

    async def _execute(self, command: Sequence[str], target: HandlerTarget, timeout: float) -> HandlerOutcome:
        spec = target.attempt.spec
        mounts = Mounts(spec.mounts)
        words = (mounts.rewrite(word) for word in expand_all(command, spec.env))
        argv = [replaced(word, spec.service_places) for word in words]
        done = await self._runtime.execute(target.attempt, argv, timeout)
        if done.code is None:
            return HandlerOutcome(False, f'command timed out: "{shlex.join(argv)}" timed out after {timeout:g}s')
        return HandlerOutcome(done.code == 0, done.output[:_LONGEST_MESSAGE])

    async def _get(self, request: Object, target: HandlerTarget, timeout: float) -> HandlerOutcome:
        port = port_number(request.get("port"), target.container)
        scheme = str(request.get("scheme") or "HTTP").lower()
        path = str(request.get("path") or "/")
        url = f"{scheme}://{request.get('host') or target.pod_ip}:{port}{path if path.startswith('/') else '/' + path}"
        headers = {"User-Agent": _AGENT, "Accept": "*/*"}
        headers |= {str(item["name"]): str(item.get("value", "")) for item in request.get("httpHeaders") or ()}
        limit = aiohttp.ClientTimeout(total=timeout)
        try:
            async with self._web.session().get(
                url, headers=headers, timeout=limit, ssl=False, allow_redirects=False
            ) as answer:
                if 200 <= answer.status < 400:
                    return HandlerOutcome(True)
                return HandlerOutcome(False, f"HTTP probe failed with statuscode: {answer.status}")
        except TimeoutError:
            problem = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        except aiohttp.ClientConnectorError as error:
            problem = f"dial tcp {target.pod_ip}:{port}: connect: {_reason(error.os_error)}"
        except (aiohttp.ClientError, ValueError, OSError) as error:
            problem = str(error) or type(error).__name__
        return HandlerOutcome(False, f'Get "{url}": {problem}'[:_LONGEST_MESSAGE])

    async def _connect(self, request: Object, target: HandlerTarget, timeout: float) -> HandlerOutcome:
        port = port_number(request.get("port"), target.container)
        host = str(request.get("host") or target.pod_ip)
        try:
            # Until Python 3.12 `wait_for` loses a cancellation that arrives together with the connection.
            async with asyncio.timeout(timeout):
                _, writer = await asyncio.open_connection(host, port)
        except TimeoutError:
            return HandlerOutcome(False, f"dial tcp {host}:{port}: i/o timeout")
        except OSError as error:
            return HandlerOutcome(False, f"dial tcp {host}:{port}: connect: {_reason(error)}")
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return HandlerOutcome(True)


class SimulatedHandlers(Handlers):
    """Handlers for simulated containers, in which nothing listens: all but sleeping succeeds at once."""

    async def run(self, handler: Object, target: HandlerTarget, timeout: float) -> HandlerOutcome:
        return await super().run(handler, target, timeout) if handler.get("sleep") else HandlerOutcome(True)


def port_number(port: object, container: Object) -> int:
    """Return a port from a number or the name of one of the container's ports. Raise LookupError for an unknown name."""
    text = str(port)
    if text.isdigit():
        return int(text)
    for item in container.get("ports") or ():
        if item.get("name") == text:
            return int(item["containerPort"])
    raise LookupError(f"couldn't find port “{text}” in the container's ports")


def _reason(error: OSError) -> str:
    """Return the error as a kubelet prints it: in lower case, without the number."""
    return os.strerror(error.errno).lower() if error.errno else str(error)


class SharedWeb:
    """One session for all probes of a process."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            # Each probe is a new connection, like a real kubelet's: a kept one would hide a full backlog.
            connector = aiohttp.TCPConnector(limit=0, force_close=True)
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
