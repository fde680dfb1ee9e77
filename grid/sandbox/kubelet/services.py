"""The services that the parts of one kubelet share: its runtime, its clients, its clock, its events."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from grid.core.errors import GridError, NotFound
from grid.sandbox.client import (
    CONFIG_MAPS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    VOLUME_CLAIMS,
    VOLUMES,
    Api,
    Clock,
    EventRecorder,
    Object,
    answer_of,
    reference_to,
)
from grid.sandbox.imagestore import ImageStore
from grid.sandbox.kubelet.backoff import Delays
from grid.sandbox.kubelet.environment import ConfigError, decoded
from grid.sandbox.kubelet.handlers import Handlers
from grid.sandbox.kubelet.runtime import ContainerRuntime

logger = logging.getLogger(__name__)

_WAITING_EVENTS = 1000
EventType = Literal["Normal", "Warning"]


class PodAddresses(Protocol):
    def pod(self, uid: str) -> str: ...

    def release_pod(self, uid: str) -> None: ...


class ServicePlaces(Protocol):
    async def places_of(self, cluster_ips: Collection[str]) -> Mapping[str, str]:
        """Return the address on this machine for each of the addresses that belongs to a Service."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """The services of one kubelet."""

    node_name: str
    address: str
    allocatable: Mapping[str, str]
    api: Api
    runtime: ContainerRuntime
    images: ImageStore
    handlers: Handlers
    addresses: PodAddresses
    service_places: ServicePlaces
    claims: Path
    clock: Clock
    events: "Events"
    delays: Delays


class _Event(NamedTuple):
    about: Object
    reason: str
    message: str
    type: EventType


class Events:
    """Events in the order in which they happened, written in the background: no container waits for the API server."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._queue: asyncio.Queue[_Event] = asyncio.Queue(_WAITING_EVENTS)

    def about_pod(self, pod: Object, reason: str, message: str, *, type: EventType = "Normal", field: str = "") -> None:
        """Record an event about a pod; `field` is the container's path in it, like `spec.containers{run}`."""
        about = reference_to(pod, kind=PODS.kind, api_version=PODS.api_version)
        if field:
            about["fieldPath"] = field
        self.about(about, reason, message, type=type)

    def about(self, about: Object, reason: str, message: str, *, type: EventType = "Normal") -> None:
        try:
            self._queue.put_nowait(_Event(about, reason, message, type))
        except asyncio.QueueFull:
            logger.warning("event not written reason=%s about=%s: too many wait", reason, about.get("name"))

    async def run(self) -> None:
        while True:
            event = await self._queue.get()
            try:
                await self._recorder.record(event.about, event.reason, event.message, type=event.type)
            except Exception:
                logger.exception("event not written reason=%s", event.reason)
            finally:
                self._queue.task_done()

    async def written(self) -> None:
        """Return once all events so far are written or given up."""
        await self._queue.join()


class ApiSources:
    """Config maps, secrets, claims and tokens, fetched when a container needs them."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        config_map = await self._get(CONFIG_MAPS.path(namespace, name))
        return None if config_map is None else decoded({**config_map, "kind": CONFIG_MAPS.kind})

    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        secret = await self._get(SECRETS.path(namespace, name))
        return None if secret is None else decoded({**secret, "kind": SECRETS.kind})

    async def claim(self, namespace: str, name: str) -> Object | None:
        return await self._get(VOLUME_CLAIMS.path(namespace, name))

    async def volume(self, name: str) -> Object | None:
        return await self._get(VOLUMES.path(name=name))

    async def service_account_token(self, namespace: str, account: str, request: Object) -> str:
        spec: Object = {"expirationSeconds": int(request.get("expirationSeconds") or 3600)}
        if request.get("audience"):
            spec["audiences"] = [request["audience"]]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        try:
            answer = await self._api.create(SERVICE_ACCOUNTS.path(namespace, account, "token"), body)
        except GridError as error:
            raise ConfigError(f"failed to fetch token: {answer_of(error).message}") from error
        return str((answer.get("status") or {}).get("token", ""))

    async def _get(self, path: str) -> Object | None:
        try:
            return await self._api.get(path)
        except NotFound:
            return None
        except GridError as error:
            raise ConfigError(answer_of(error).message) from error


async def first_of(*waits: "asyncio.Future[Any]") -> None:
    """Return when one wait is done and the others are cancelled and over."""
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def end_task(task: "asyncio.Task[Any] | None") -> None:
    """Cancel a task and wait until it is over."""
    if task is not None and not task.done():
        if not task.cancelling():  # a second cancellation would interrupt the handling of the first
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


Wake = Callable[[], None]
