"""One pod on one node: a worker that compares the spec with the present state, takes the next step, and reports.

Level-triggered: a change of the pod, the end of a container, a probe's result or a timer only wakes it; each reconciliation starts
from the present state. It ends when nothing of the pod is left.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from grid.core.errors import Conflict, GridError, NotFound
from grid.sandbox.client import (
    PODS,
    Object,
    annotations_of,
    format_time,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    parse_time,
    uid_of,
)
from grid.sandbox.kubelet import localstorage, volumes
from grid.sandbox.kubelet.backoff import Delays, RestartBackoff
from grid.sandbox.kubelet.container import PodContainer
from grid.sandbox.kubelet.environment import DownwardFacts
from grid.sandbox.kubelet.podstatus import ContainerRole, PodFrame, PodVerdict, build_status, programs_phase
from grid.sandbox.kubelet.services import ApiSources, Services, end_task, first_of
from grid.sandbox.kubelet.starting import Starter, role_of

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 2.0
_MOUNT_DELAYS = Delays(first=0.5, longest=122.0)
_DEFAULT_GRACE = 30
_GONE_GRACE = 1.0
_AGAIN_SECONDS = 10.0
# The period of a kubelet's eviction manager.
_MEASURE_SECONDS = 10.0
_MINE = ("phase", "reason", "message", "podIP", "podIPs", "initContainerStatuses", "containerStatuses")
_DEADLINE = PodVerdict("Failed", "DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
_EVICTED = "Evicted"
_SHUTDOWN = PodVerdict("Failed", "Terminated", "Pod was terminated in response to imminent node shutdown.")


class PodWorker:
    """The worker that brings one pod to its spec and reports its status.

    `admit` is asked once, before anything is done: it returns why the node does not take the pod.
    """

    def __init__(
        self,
        services: Services,
        pod: Object,
        finished: Callable[[], None],
        admit: Callable[[Object], PodVerdict | None],
    ) -> None:
        self._services = services
        self._pod = pod
        self._finished = finished
        self._admit: Callable[[Object], PodVerdict | None] | None = admit
        self._refused = False
        self._uid = uid_of(pod)
        self._dirty = asyncio.Event()
        self._gone = False
        self._delete_sent_at: datetime | None = None
        self._verdict: PodVerdict | None = None
        self._written: Object | None = None
        self._started_at = parse_time(pod.get("status", {}).get("startTime")) or services.clock.now()
        self._places: dict[str, Path] | None = None
        self._written_about: tuple[Object, Object] = ({}, {})
        self._mounts = RestartBackoff(_MOUNT_DELAYS)
        self._mount_at: datetime | None = None
        self._measured_at: datetime | None = None
        self._sources = ApiSources(services.api)
        self._containers = [
            PodContainer(services, pod, container, role_of(container, init=init), self.wake)
            for init, group in ((True, "initContainers"), (False, "containers"))
            for container in pod["spec"].get(group) or ()
        ]
        self._task: asyncio.Task[None] | None = None
        status = pod.get("status") or {}
        # A pod that was reported as finished keeps that status, whatever is left of it here.
        self._said_over = status.get("phase") in ("Succeeded", "Failed")
        if self._said_over:
            self._verdict = PodVerdict(status["phase"], status.get("reason", ""), status.get("message", ""))
        elif any(container.interrupted for container in self._containers):
            message = "Pod sandbox changed, it will be killed and re-created."
            services.events.about_pod(pod, "SandboxChanged", message)

    @property
    def pod(self) -> Object:
        return self._pod

    @property
    def containers(self) -> list[PodContainer]:
        return self._containers

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"pod {key_of(self._pod)}")

    def wake(self) -> None:
        self._dirty.set()

    def update(self, pod: Object) -> None:
        self._pod = pod
        self.wake()

    def removed(self) -> None:
        """Record that the API server no longer has the pod."""
        self._gone = True
        self.wake()

    async def close(self) -> None:
        """End the worker and leave the pod's processes running."""
        await end_task(self._task)
        for container in self._containers:
            await container.close()

    async def _run(self) -> None:
        while True:
            self._dirty.clear()
            looked_at = self._services.clock.monotonic()
            try:
                pause = await self._look()
            except GridError as error:
                logger.warning("pod key=%s waits: %s", key_of(self._pod), error)
                pause = max(_RETRY_SECONDS, error.retry_after)
            except OSError as error:  # of this machine: its disk is full, no address is left
                logger.warning("pod key=%s waits: %s", key_of(self._pod), error)
                message = f"Failed to create pod sandbox: {error}"
                self._services.events.about_pod(self._pod, "FailedCreatePodSandBox", message, type="Warning")
                pause = _AGAIN_SECONDS
            except Exception:
                logger.exception("pod key=%s is looked at again", key_of(self._pod))
                pause = _AGAIN_SECONDS
            if pause is not None and pause < 0:
                self._finished()
                return
            waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._dirty.wait())]
            if pause is not None:
                left = looked_at + pause - self._services.clock.monotonic()
                waits.append(asyncio.ensure_future(self._services.clock.sleep(max(0.0, left))))
            await first_of(*waits)

    async def _look(self) -> float | None:
        """Reconcile once. Return the seconds until the next time; None: only a wake-up counts, negative: nothing is left to do."""
        if self._gone:
            return self._clean_up()
        if is_terminating(self._pod):
            return await self._terminate()
        self._ask_admission()
        now = self._services.clock.now()
        pause = _sooner(self._judge(now), await self._measure(now))
        if self._verdict is not None:
            self._stop_all(_GONE_GRACE if self._verdict.reason == _EVICTED else self._grace())
        else:
            pause = _sooner(pause, await self._advance(now))
        await self._report()
        return pause

    def _ask_admission(self) -> None:
        admit, self._admit = self._admit, None
        if admit is None or self._said_over:
            return
        verdict = admit(self._pod)
        if verdict is not None:
            self._refused = True
            self._verdict = PodVerdict(verdict.phase, verdict.reason, f"Pod was rejected: {verdict.message}")
            self._services.events.about_pod(self._pod, verdict.reason, verdict.message, type="Warning")

    # Running

    def _judge(self, now: datetime) -> float | None:
        """Decide on the pod as a whole: node shutdown or deadline. Return the seconds until the deadline, or None."""
        if self._verdict is not None:
            return None
        policy = self._restart_policy
        ended = [container.last.exit for container in self._containers if container.last is not None]
        if policy == "Never" and any(exit is not None and exit.by_shutdown for exit in ended):
            self._verdict = _SHUTDOWN
            return None
        limit = self._pod["spec"].get("activeDeadlineSeconds")
        if limit is None:
            return None
        left = (self._started_at + timedelta(seconds=float(limit)) - now).total_seconds()
        if left > 0:
            return left
        self._verdict = _DEADLINE
        self._services.events.about_pod(self._pod, _DEADLINE.reason, _DEADLINE.message)
        return None

    async def _measure(self, now: datetime) -> float | None:
        """Evict a pod that exceeds its limits of local storage. Return the seconds until the next check, or None."""
        if self._verdict is not None or not localstorage.is_limited(self._pod) or self._over():
            return None
        if self._measured_at is not None and now < self._measured_at + timedelta(seconds=_MEASURE_SECONDS):
            return _MEASURE_SECONDS - (now - self._measured_at).total_seconds()
        self._measured_at = now
        directory = self._services.runtime.pod_directory(self._uid)
        message = await asyncio.to_thread(localstorage.excess, self._pod, directory)
        if message:
            self._verdict = PodVerdict("Failed", _EVICTED, message)
            self._services.events.about_pod(self._pod, _EVICTED, message, type="Warning")
        return _MEASURE_SECONDS

    async def _advance(self, now: datetime) -> float | None:
        """Do what can be done now: volumes, then init containers one by one, then the others."""
        if self._over():
            self._stop_all(self._grace())
            return None
        if self._places is None:
            pause = await self._mount(now)
            if self._places is None:
                return pause
        elif self._written_about != _told_of(self._pod):
            await self._volumes().renew()
            self._written_about = _told_of(self._pod)
        starter = Starter(self._services, self._sources, self._facts(), self._places)
        pause = None
        mains_began = any(item.ever_started for item in self._containers if item.role is ContainerRole.MAIN)
        for container in self._containers:
            if container.role is ContainerRole.INIT and (mains_began or container.view().initialized):
                continue
            pause = _sooner(pause, container.advance(starter, self._restart_policy, now))
            if container.role is not ContainerRole.MAIN and not mains_began and not container.view().initialized:
                break
        return pause

    def _over(self) -> bool:
        """Return True when all main containers have ended for good, or an init container has failed for good."""
        if self._restart_policy == "Always":
            return False
        if self._frame().verdict is not None or self._status()["phase"] in ("Succeeded", "Failed"):
            return True
        mains = [item.view() for item in self._containers if item.role is ContainerRole.MAIN]
        return programs_phase(mains, self._restart_policy) != "Running"

    async def _mount(self, now: datetime) -> float | None:
        if self._mount_at is not None and now < self._mount_at:
            return (self._mount_at - now).total_seconds()
        about = _told_of(self._pod)
        try:
            self._places = await self._volumes().prepare()
        except volumes.MountFailed as error:
            self._mounts.started(now, now)
            self._mount_at = now + timedelta(seconds=self._mounts.seconds)
            self._services.events.about_pod(self._pod, "FailedMount", str(error), type="Warning")
            return self._mounts.seconds
        self._written_about = about
        return None

    # Ending

    def _stop_all(self, grace: float) -> bool:
        """Stop the main containers first, then the sidecars. Return True when all have ended."""
        mains = [item for item in self._containers if item.role is ContainerRole.MAIN]
        for container in mains:
            container.stop(grace)
        if all(item.idle for item in mains):
            for container in self._containers:
                container.stop(grace)
        return all(item.idle for item in self._containers)

    async def _terminate(self) -> float | None:
        seconds = self._pod["metadata"].get("deletionGracePeriodSeconds")
        if not self._stop_all(float(_DEFAULT_GRACE if seconds is None else seconds)):
            await self._report()
            return None
        await self._report()
        volumes.remove(self._volume_directory())
        now = self._services.clock.now()
        if self._delete_sent_at is None or (now - self._delete_sent_at).total_seconds() >= _AGAIN_SECONDS:
            self._delete_sent_at = now
            await self._delete()
        return _AGAIN_SECONDS

    async def _delete(self) -> None:
        """Delete the pod for good, by its uid. Only the kubelet may do that, as it knows that nothing runs."""
        path = PODS.path(namespace_of(self._pod), name_of(self._pod))
        try:
            await self._services.api.delete(path, grace_seconds=0, uid=self._uid)
        except (NotFound, Conflict):
            pass
        except GridError:
            self._delete_sent_at = None
            raise

    def _clean_up(self) -> float | None:
        if not self._stop_all(_GONE_GRACE):
            return None
        volumes.remove(self._volume_directory())
        self._services.runtime.forget(self._uid)
        self._services.addresses.release_pod(self._uid)
        return -1.0

    # Reporting

    async def _report(self) -> None:
        """Write the status if it changed, by the pod's uid, so that a later pod of this name is not affected."""
        if self._said_over:
            return
        before = self._written if self._written is not None else self._pod.get("status") or {}
        status = self._status()
        if status == before:
            self._written = status
            return
        removed = {key: None for key in _MINE if key in before and key not in status}
        path = PODS.path(namespace_of(self._pod), name_of(self._pod), "status")
        with contextlib.suppress(NotFound, Conflict):
            await self._services.api.patch(path, {"metadata": {"uid": self._uid}, "status": {**status, **removed}})
        self._written = status

    def _status(self) -> Object:
        current = self._pod.get("status") or {}
        if self._refused and self._verdict is not None:
            # Nothing was made for it, so nothing but the decision is told.
            decision = {"phase": self._verdict.phase, "reason": self._verdict.reason, "message": self._verdict.message}
            return {**current, **decision, "startTime": format_time(self._started_at)}
        if self._written is not None:
            # Our own copy is newer than the mirror's, but other clients write conditions too.
            ours = {item["type"]: item for item in self._written["conditions"]}
            theirs = {item["type"]: item for item in current.get("conditions") or ()}
            current = {**current, "conditions": list({**theirs, **ours}.values())}
        views = [container.view() for container in self._containers]
        return build_status(self._frame(), views, current, self._services.clock.now())

    def _frame(self) -> PodFrame:
        return PodFrame(
            restart_policy=self._restart_policy,
            started_at=self._started_at,
            host_ip=self._services.address,
            pod_ip=self._address() if self._places is not None or self._verdict is not None else "",
            set_up=self._places is not None,
            verdict=self._verdict,
        )

    def _facts(self) -> DownwardFacts:
        services = self._services
        return DownwardFacts(self._pod, self._address(), services.address, services.node_name, services.allocatable)

    def _address(self) -> str:
        if self._pod["spec"].get("hostNetwork"):
            return self._services.address
        return self._services.addresses.pod(self._uid)

    def _volumes(self) -> volumes.PodVolumes:
        return volumes.PodVolumes(
            self._facts(), directory=self._volume_directory(), claims=self._services.claims, sources=self._sources
        )

    def _volume_directory(self) -> Path:
        return self._services.runtime.pod_directory(self._uid) / "volumes"

    def _grace(self) -> float:
        seconds = self._pod["spec"].get("terminationGracePeriodSeconds")
        return float(_DEFAULT_GRACE if seconds is None else seconds)

    @property
    def _restart_policy(self) -> str:
        return str(self._pod["spec"].get("restartPolicy") or "Always")


def _told_of(pod: Object) -> tuple[Object, Object]:
    """Return what a volume may tell of the pod that changes while it runs."""
    return dict(labels_of(pod)), dict(annotations_of(pod))


def _sooner(first: float | None, second: float | None) -> float | None:
    if first is None or second is None:
        return first if second is None else second
    return min(first, second)
