"""One node: keeps its Node object alive and runs the pods that are bound to it.

It reads pods through a watch narrowed to its node, keeps a worker per pod, and after a restart takes over containers that still run
and ends those of deleted pods. `detach` leaves all containers running; `stop` ends them within a few seconds.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from grid.sandbox.client import PODS, Api, Clock, EventRecorder, Mirror, Object, key_of, name_of, namespace_of, uid_of
from grid.sandbox.controllers.podresources import Amounts, is_finished, pod_requests
from grid.sandbox.imagestore import ImageStore
from grid.sandbox.kubelet.admittance import refusal
from grid.sandbox.kubelet.backoff import Delays
from grid.sandbox.kubelet.cadvisor import cadvisor, disk_usage
from grid.sandbox.kubelet.handlers import Handlers, Web
from grid.sandbox.kubelet.node import MachineSpec, NodeAgent
from grid.sandbox.kubelet.pod import PodWorker
from grid.sandbox.kubelet.podstatus import PodVerdict
from grid.sandbox.kubelet.runtime import Attempt, ContainerRuntime, PodIdentity
from grid.sandbox.kubelet.server import NoLog
from grid.sandbox.kubelet.services import Events, PodAddresses, ServicePlaces, Services, end_task
from grid.sandbox.kubelet.summary import ContainerUsage, PodUsage, metrics, summary

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Host:
    """The services that all nodes of a machine share."""

    images: ImageStore
    web: Web
    addresses: PodAddresses
    service_places: ServicePlaces
    claims: Path
    clock: Clock
    delays: Delays = field(default_factory=Delays)
    handlers: type[Handlers] = Handlers


class Kubelet:
    """The kubelet of one node."""

    def __init__(self, spec: MachineSpec, api: Api, runtime: ContainerRuntime, host: Host) -> None:
        self.spec = spec
        clock = host.clock
        events = Events(EventRecorder(api, "kubelet", host=spec.name, clock=clock))
        self._services = Services(
            node_name=spec.name,
            address=spec.address,
            allocatable=spec.allocatable,
            api=api,
            runtime=runtime,
            images=host.images,
            handlers=host.handlers(runtime, host.web, clock),
            addresses=host.addresses,
            service_places=host.service_places,
            claims=host.claims,
            clock=clock,
            events=events,
            delays=host.delays,
        )
        self._agent = NodeAgent(
            spec, api, images=host.images, events=events, clock=clock, runtime_version=runtime.name_and_version
        )
        self._pods = Mirror(api, PODS, field_selector=f"spec.nodeName={spec.name}", clock=clock)
        self._pods.subscribe(self._changed)
        self._workers: dict[str, PodWorker] = {}
        self._admitted: dict[str, Amounts] = {}  # what each admitted pod requests
        self._tasks: list[asyncio.Task[None]] = []
        self._started_at = clock.now()

    def start(self, port: int = 10250) -> None:
        """Start all tasks; `port` is where the API server finds this node's logs."""
        self._tasks = [
            asyncio.create_task(self._services.events.run()),
            asyncio.create_task(self._agent.run(port)),
            asyncio.create_task(self._pods.run()),
            asyncio.create_task(self._end_strangers()),
        ]

    async def detach(self) -> None:
        """End all tasks and leave the containers running, as if this process had been killed."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            await end_task(task)
        workers, self._workers = list(self._workers.values()), {}
        for worker in workers:
            await worker.close()
        await self._services.runtime.settled()

    async def stop(self, grace: float) -> None:
        """End all containers, killing them after the grace period; their pods start them again when the node comes back."""
        await self.detach()
        running = [attempt for pod in self._services.runtime.pods() for attempt in self._running(pod)]
        for attempt in running:
            self._services.runtime.mark_shutdown(attempt)
        await self._end(running, grace)

    async def drop(self) -> None:
        """Remove all containers and files of the node's pods, because the machine is deleted."""
        await self.detach()
        for pod in self._services.runtime.pods():
            await self._end(self._running(pod), grace=0.0)
            self._services.runtime.forget(pod.uid)
            self._services.addresses.release_pod(pod.uid)

    # Pods

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            worker = self._workers.get(uid_of(old or {}))
            if worker is not None:
                worker.removed()
            return
        uid = uid_of(new)
        worker = self._workers.get(uid)
        if worker is not None:
            worker.update(new)
            return
        try:
            worker = PodWorker(self._services, new, lambda: self._forget(uid), self._refusal)
        except (ValueError, OSError):
            # A pod that cannot be run must not keep the others from being run.
            logger.exception("pod key=%s cannot be run on node=%s", key_of(new), self.spec.name)
            return
        self._workers[uid] = worker
        worker.start()

    def _forget(self, uid: str) -> None:
        self._workers.pop(uid, None)
        self._admitted.pop(uid, None)

    def _refusal(self, pod: Object) -> PodVerdict | None:
        """Admit the pod and return None, or return why it does not fit beside those that were admitted before."""
        requests = pod_requests(pod)
        present = [
            self._admitted[uid_of(item)]
            for item in self._pods.values()
            if uid_of(item) in self._admitted and not is_finished(item)
        ]
        begun = bool((pod.get("status") or {}).get("startTime"))  # it was admitted before this process began
        verdict = None if begun else refusal(requests, self.spec.allocatable, present)
        if verdict is None:
            self._admitted[uid_of(pod)] = requests
        return verdict

    async def _end_strangers(self) -> None:
        """End the containers of pods that the API server no longer has, once the first list is complete."""
        await self._pods.synced()
        for pod in self._services.runtime.pods():
            if pod.uid in self._workers:
                continue
            try:
                await self._end(self._running(pod), grace=1.0)
                self._services.runtime.forget(pod.uid)
                self._services.addresses.release_pod(pod.uid)
                logger.info("pod key=%s/%s was deleted meanwhile and is cleaned up", pod.namespace, pod.name)
            except Exception:
                logger.exception("pod key=%s/%s could not be cleaned up", pod.namespace, pod.name)

    def _running(self, pod: PodIdentity) -> list[Attempt]:
        runtime = self._services.runtime
        return [
            attempt
            for name in runtime.containers(pod.uid)
            for attempt in runtime.attempts(pod.uid, name)
            if attempt.running
        ]

    async def _end(self, attempts: Sequence[Attempt], grace: float) -> None:
        runtime = self._services.runtime
        endings = [asyncio.ensure_future(runtime.ended(attempt)) for attempt in attempts]
        if not endings:
            return
        if grace > 0:
            for attempt in attempts:
                runtime.terminate(attempt)
            await asyncio.wait(endings, timeout=grace)
        for attempt, ending in zip(attempts, endings, strict=True):
            if not ending.done():
                runtime.kill(attempt)
        for result in await asyncio.gather(*endings, return_exceptions=True):
            if isinstance(result, OSError):
                logger.warning("a container has ended, which cannot be noted: %s", result)
            elif isinstance(result, Exception):
                raise result

    # Requests of the API server

    def attempt(self, namespace: str, pod: str, container: str, *, previous: bool) -> Attempt:
        # Among pods that had this name one after another, the present one counts.
        worker = self._workers.get(uid_of(self._pods.get(f"{namespace}/{pod}") or {}))
        if worker is None:
            raise LookupError(f'pod "{pod}" not found on node {self.spec.name}')
        pod_container = next((item for item in worker.containers if item.name == container), None)
        if pod_container is None:
            raise LookupError(f'container "{container}" not found in pod "{pod}"')
        view = pod_container.view()
        if previous:
            # While the container waits for its restart, the attempt that ended counts as the previous one.
            ended = view.current if view.waiting is not None else view.previous
            if ended is None:
                raise NoLog(f'previous terminated container "{container}" in pod "{pod}" not found')
            return ended
        if view.current is None:
            reason = view.waiting.reason if view.waiting is not None else "ContainerCreating"
            raise NoLog(f'container "{container}" in pod "{pod}" is waiting to start: {reason}')
        return view.current

    def has_ended(self, attempt: Attempt) -> bool:
        known = self._services.runtime.attempts(attempt.spec.pod.uid, attempt.spec.container)
        return not any(item.id == attempt.id and item.running for item in known)

    def summary(self) -> Object:
        return summary(self.spec.name, self._usage(), node_started=self._started_at, now=self._services.clock.now())

    def metrics(self) -> str:
        return metrics(self._usage(), self._services.clock.now())

    def cadvisor(self) -> str:
        return cadvisor(self._usage(), disk_usage(self._services.claims))

    def _usage(self) -> list[PodUsage]:
        pods = []
        for worker in self._workers.values():
            containers = []
            for item in worker.containers:
                attempt = item.last
                usage = self._services.runtime.usage(attempt) if attempt is not None else None
                if attempt is not None and attempt.running and usage is not None:
                    containers.append(ContainerUsage(item.name, attempt.started_at, usage, attempt.spec.image))
            if containers:
                identity = PodIdentity(uid_of(worker.pod), namespace_of(worker.pod), name_of(worker.pod))
                pods.append(PodUsage(identity, _earliest(containers), containers))
        return pods


def _earliest(containers: Sequence[ContainerUsage]) -> datetime:
    return min(item.started_at for item in containers)
