"""The service proxy: gives each Service with a cluster IP an address of this machine, and forwards from there to its pods.

No program without root can answer at 10.96.0.0/16, so a Service is reached at an address in 127.48.0.0/12 instead; the kubelets
replace the cluster IP by that when they start a container (`places_of`). The proxy follows Services and pods through
watches, works with any Kubernetes API server, and listens on a port only while a ready pod is behind it: without one, a client is
refused at once, as by kube-proxy. It belongs to one event loop; a port that cannot be opened is retried.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from grid.core.labels import SIMULATED
from grid.sandbox.client import (
    PODS,
    SERVICES,
    Api,
    Clock,
    EventRecorder,
    Mirror,
    Object,
    SystemClock,
    key_of,
    reference_to,
    uid_of,
)
from grid.sandbox.serviceproxy.endpoints import Backend, backends_of, cluster_ip, endpoint_facts, selects
from grid.sandbox.serviceproxy.forwarding import ForwardedConnections, Listener
from grid.sandbox.serviceproxy.index import PodIndex, ServiceIndex

logger = logging.getLogger(__name__)

_AGAIN_SECONDS = 5.0


class ServiceAddresses(Protocol):
    """The addresses of Services on this machine, kept over restarts."""

    def service(self, cluster_ip: str) -> str: ...

    def services(self) -> Collection[str]:
        """Return the cluster IPs that have an address."""
        ...

    def release_service(self, cluster_ip: str) -> None: ...


class ServiceProxy:
    """The proxy, which forwards connections to Services while `run` runs; a cancelled `run` closes everything."""

    def __init__(self, api: Api, addresses: ServiceAddresses, *, clock: Clock | None = None) -> None:
        self._api = api
        self._addresses = addresses
        self._clock = clock or SystemClock()
        self._services = Mirror(api, SERVICES, clock=self._clock)
        self._pods = Mirror(api, PODS, label_selector=f"!{SIMULATED}", clock=self._clock)
        self._pod_index, self._service_index = PodIndex(), ServiceIndex()
        self._services.subscribe(self._service_changed)
        self._pods.subscribe(self._pod_changed)
        self._listeners: dict[str, dict[int, Listener]] = {}  # cluster IP -> port of the Service -> listener
        self._failing: set[tuple[str, int]] = set()
        self._events = EventRecorder(api, "kube-proxy", clock=self._clock)
        self._dirty: set[str] = set()
        self._woken = asyncio.Event()
        self.connections = ForwardedConnections()

    async def places_of(self, cluster_ips: Collection[str]) -> Mapping[str, str]:
        """Return the address on this machine for each of the addresses that belongs to a Service. Raise GridError.

        A Service that was just created may not be in the mirror yet, so an unknown address is looked up at the
        server.
        """
        if not cluster_ips:
            return {}
        await self._services.synced()
        known = {cluster_ip(service) for service in self._services.values()}
        if not known.issuperset(cluster_ips):
            listing = await self._api.list(SERVICES.path())
            known |= {cluster_ip(service) for service in listing}
        return {address: self._addresses.service(address) for address in cluster_ips if address in known}

    async def run(self) -> None:
        mirrors = [asyncio.create_task(mirror.run()) for mirror in (self._services, self._pods)]
        try:
            await self._services.synced()
            await self._pods.synced()
            alive = {cluster_ip(service) for service in self._services.values()}
            self._dirty |= set(self._addresses.services()) - alive  # of Services deleted while this was not running
            while True:
                await self._look()
        finally:
            for task in mirrors:
                task.cancel()
            await asyncio.gather(*mirrors, return_exceptions=True)
            for listeners in self._listeners.values():
                for listener in listeners.values():
                    await listener.close()
            self._listeners.clear()
            await self.connections.close()

    # Changes

    def _service_changed(self, old: Object | None, new: Object | None) -> None:
        self._service_index.changed(old, new)
        for service in (old, new):
            if service is not None and (address := cluster_ip(service)):
                self._touch(address)

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        self._pod_index.changed(old, new)
        same = old is not None and new is not None and uid_of(old) == uid_of(new)
        if same and endpoint_facts(old) == endpoint_facts(new):
            return
        for pod in [pod for pod in (old, new) if pod is not None]:
            for service in self._service_index.candidates(pod):
                if selects(service, pod) and (address := cluster_ip(service)):
                    self._touch(address)

    def _touch(self, address: str) -> None:
        self._dirty.add(address)
        self._woken.set()

    # Reconciliation

    async def _look(self) -> None:
        self._woken.clear()
        dirty, self._dirty = self._dirty, set()
        services = {cluster_ip(service): service for service in self._services.values()}
        for address in dirty:
            try:
                await self._follow(address, services.get(address))
            except OSError as error:
                logger.warning("service address=%s is not served: %s", address, error)
                self._dirty.add(address)
            except Exception:
                logger.exception("service address=%s is looked at again", address)
                self._dirty.add(address)
        waits: list[asyncio.Future[object]] = [asyncio.ensure_future(self._woken.wait())]
        if self._dirty:
            waits.append(asyncio.ensure_future(self._clock.sleep(_AGAIN_SECONDS)))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _follow(self, address: str, service: Object | None) -> None:
        """Open, update and close the Service's ports according to its present pods."""
        wanted = backends_of(service, self._pod_index.candidates(service)) if service is not None else {}
        listeners = self._listeners.setdefault(address, {})
        for port in listeners.keys() - wanted.keys():
            await listeners.pop(port).close()
        for port, backends in wanted.items():
            if port in listeners:
                listeners[port].lead_to(backends)
            else:
                await self._open(address, port, backends, service or {})
        if service is None:
            del self._listeners[address]
            self._failing = {key for key in self._failing if key[0] != address}
            self._addresses.release_service(address)

    async def _open(self, address: str, port: int, backends: Sequence[Backend], service: Object) -> None:
        place = self._addresses.service(address)
        try:
            self._listeners[address][port] = Listener(place, port, backends, self.connections)
        except OSError as error:
            if (address, port) not in self._failing:
                self._failing.add((address, port))
                problem = f"cannot listen on {place}:{port}, where this machine reaches the Service: {error.strerror}"
                logger.warning("service key=%s %s", key_of(service), problem)
                about = reference_to(service, kind=SERVICES.kind, api_version=SERVICES.api_version)
                await self._events.record(about, "FailedToListen", problem, type="Warning")
            self._dirty.add(address)
        else:
            self._failing.discard((address, port))
