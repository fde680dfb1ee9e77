"""One container of one pod over all its attempts: started, watched, probed, stopped, started again.

It belongs to its pod's worker, which calls it on the event loop and is woken after each change. Starting and stopping are tasks of
their own, so that a pull never delays a deletion.
"""

import asyncio
import contextlib
import logging
from datetime import datetime, timedelta
from typing import Literal

from grid.core.errors import GridError
from grid.sandbox.client import Object, name_of, namespace_of, uid_of
from grid.sandbox.kubelet.backoff import RestartBackoff, spell
from grid.sandbox.kubelet.handlers import HandlerOutcome, HandlerTarget
from grid.sandbox.kubelet.podstatus import ContainerRole, ContainerView, WaitingReason
from grid.sandbox.kubelet.probes import Kind, Probes
from grid.sandbox.kubelet.runtime import START_ERROR, Attempt
from grid.sandbox.kubelet.services import Services, Wake, end_task, first_of
from grid.sandbox.kubelet.starting import CannotStartYet, Starter
from grid.sandbox.kubelet.termination import termination_message

logger = logging.getLogger(__name__)

_CONFIG_RETRY_SECONDS = 10.0
_SHOW_PULL_ERROR_SECONDS = 2.0
_LEAST_GRACE_SECONDS = 2.0
_LONGEST_HOOK_SECONDS = 3600.0
_PULL_REASONS = ("ErrImagePull", "ImagePullBackOff")


class PodContainer:
    """One container of a pod, run attempt after attempt, as its restart policy says."""

    def __init__(self, services: Services, pod: Object, container: Object, role: ContainerRole, wake: Wake) -> None:
        self.name = str(container["name"])
        self.role = role
        self._services = services
        self._pod = pod
        self._container = container
        self._wake = wake
        group = "containers" if role is ContainerRole.MAIN else "initContainers"
        self._field = f"spec.{group}{{{self.name}}}"
        self._waiting: WaitingReason | None = None
        self._current: Attempt | None = None
        self._previous: Attempt | None = None
        self._messages: dict[str, str] = {}
        self._image_id = ""
        self._probes: Probes | None = None
        self._restarts = RestartBackoff(services.delays)
        self._pulls = RestartBackoff(services.delays)
        self._ended_at: datetime | None = None
        self._retry_at: datetime | None = None
        self._failed_at: datetime | None = None
        self._starting: asyncio.Task[None] | None = None
        self._launching = False  # while True the process may exist, and a cancelled task would lose track of it
        self._stopping: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._beginning: asyncio.Task[None] | None = None
        self._stop_deadline = 0.0
        self._adopt()

    def _adopt(self) -> None:
        """Take over the attempts that the runtime has from before this kubelet started."""
        attempts = self._services.runtime.attempts(uid_of(self._pod), self.name)
        if not attempts:
            return
        for attempt in attempts:
            if attempt.exit is not None:
                self._messages[attempt.id] = termination_message(attempt, self._container)
        self._current = attempts[-1]
        self._previous = attempts[-2] if len(attempts) > 1 else None
        self._image_id = self._current.spec.image_id
        self._ended_at = self._current.exit.finished_at if self._current.exit is not None else None
        if self._current.running:
            logger.info("container id=%s still runs and is taken over", self._current.id)
            self._watch(self._current)
            self._probe(self._current)

    # State

    @property
    def running(self) -> bool:
        return self._current is not None and self._current.running

    @property
    def idle(self) -> bool:
        """True when nothing runs and nothing is about to start."""
        return not self.running and (self._starting is None or self._starting.done())

    @property
    def ever_started(self) -> bool:
        return self._current is not None

    @property
    def interrupted(self) -> bool:
        """True when its last attempt ended because the cluster or the machine was stopped."""
        ended = self._current.exit if self._current is not None else None
        return ended is not None and (ended.by_shutdown or ended.reason == "Unknown")

    @property
    def last(self) -> Attempt | None:
        return self._current

    def view(self) -> ContainerView:
        probes = self._probes if self.running else None
        return ContainerView(
            name=self.name,
            role=self.role,
            image=str(self._container["image"]),
            image_id=self._image_id,
            waiting=self._waiting,
            current=self._current,
            previous=self._previous,
            message=self._messages.get(self._current.id, "") if self._current else "",
            previous_message=self._messages.get(self._previous.id, "") if self._previous else "",
            started=probes is not None and probes.started,
            ready=probes is not None and probes.ready,
        )

    # Starting

    def advance(self, starter: Starter, restart_policy: str, now: datetime) -> float | None:
        """Start the container if it should run and may; return after how many seconds to check again, None to wait for a wake-up."""
        if self.running or (self._starting is not None and not self._starting.done()):
            return None
        if not self._wanted(restart_policy):
            return None
        if self._retry_at is not None and now < self._retry_at:
            return self._hold(now)
        if self._ended_at is not None and self._retry_at is None:
            ready_at = self._restarts.ready_at(self._ended_at)
            if now < ready_at:
                self._crash_looping()
                return (ready_at - now).total_seconds()
            self._restarts.started(self._ended_at, now)
        self._starting = asyncio.create_task(self._start(starter))
        return None

    def _wanted(self, restart_policy: str) -> bool:
        if self._current is None or self._current.exit is None:
            return True
        ended = self._current.exit
        if self.role is ContainerRole.SIDECAR or (restart_policy == "Always" and self.role is ContainerRole.MAIN):
            return True
        return restart_policy != "Never" and (ended.code != 0 or ended.by_shutdown)

    def _crash_looping(self) -> None:
        pod = f"{name_of(self._pod)}_{namespace_of(self._pod)}({uid_of(self._pod)})"
        pause = spell(self._restarts.seconds)
        waiting = WaitingReason(
            "CrashLoopBackOff", f"back-off {pause} restarting failed container={self.name} pod={pod}"
        )
        if self._waiting != waiting:
            self._waiting = waiting
            self._event("BackOff", f"Back-off restarting failed container {self.name} in pod {pod}", "Warning")

    def _hold(self, now: datetime) -> float:
        """Return the seconds until the next try. A failed pull is first shown as its error, then as backing off."""
        assert self._retry_at is not None
        left = (self._retry_at - now).total_seconds()
        if self._waiting is None or self._waiting.reason not in _PULL_REASONS or self._failed_at is None:
            return left
        shown = (now - self._failed_at).total_seconds()
        if self._waiting.reason == "ErrImagePull" and shown < _SHOW_PULL_ERROR_SECONDS:
            return _SHOW_PULL_ERROR_SECONDS - shown
        if self._waiting.reason == "ErrImagePull":
            summary = f'Back-off pulling image "{self._container["image"]}"'
            self._waiting = WaitingReason("ImagePullBackOff", f"{summary}: ErrImagePull: {self._waiting.message}")
            self._event("BackOff", summary)
            self._event("Failed", "Error: ImagePullBackOff", "Warning")
        return left

    async def _start(self, starter: Starter) -> None:
        try:
            await self._start_once(starter)
            self._retry_at = None
        except CannotStartYet as problem:
            self._postpone(problem.waiting)
        except (GridError, OSError) as problem:
            self._event("Failed", f"Error: {problem}", "Warning")
            self._postpone(WaitingReason("CreateContainerError", str(problem)))
        except Exception:
            logger.exception("container pod=%s name=%s was not started", name_of(self._pod), self.name)
            self._postpone(WaitingReason("CreateContainerError", "the kubelet failed; its log says why"))
        finally:
            self._launching = False
            self._wake()

    async def _start_once(self, starter: Starter) -> None:
        if self._waiting is None and self._current is None:
            self._waiting = WaitingReason("ContainerCreating")
        number = self._current.spec.number + 1 if self._current is not None else 0
        image = await starter.image(self._container, self._field)
        self._pulls = RestartBackoff(self._services.delays)
        self._image_id = image.image.id
        spec = await starter.spec(self._container, number, image, self._field)
        self._launching = True
        attempt = await self._services.runtime.start(spec)
        self._launching = False
        self._event("Created", "Container created")
        self._previous, self._current, self._waiting = self._current, attempt, None
        # A program may have ended already and was started nevertheless, unless the runtime could not start it.
        if attempt.exit is not None and attempt.exit.reason == START_ERROR:
            self._ended_at = self._services.clock.now()
            self._event("Failed", f"Error: {attempt.exit.message}", "Warning")
            return
        self._event("Started", "Container started")
        self._watch(attempt)
        self._beginning = asyncio.create_task(self._begin(attempt))

    def _postpone(self, waiting: WaitingReason) -> None:
        now = self._services.clock.now()
        pause = _CONFIG_RETRY_SECONDS
        if waiting.reason == "ErrImagePull":
            self._pulls.started(now, now)
            pause = self._pulls.seconds
        self._waiting, self._failed_at, self._retry_at = waiting, now, now + timedelta(seconds=pause)

    # Watching

    def _watch(self, attempt: Attempt) -> None:
        self._watching = asyncio.create_task(self._follow(attempt))

    async def _follow(self, attempt: Attempt) -> None:
        while True:
            try:
                ended = await self._services.runtime.ended(attempt)
                break
            except Exception:
                logger.exception("container id=%s cannot be watched and is tried again", attempt.id)
                await self._services.clock.sleep(_CONFIG_RETRY_SECONDS)
        self._messages[ended.id] = termination_message(ended, self._container)
        self._current, self._ended_at = ended, self._services.clock.now()
        beginning, probes = self._beginning, self._probes
        if probes is not None:
            probes.stop()
        self._wake()
        await end_task(beginning)
        if probes is not None:
            await probes.close()

    def _target(self, attempt: Attempt) -> HandlerTarget:
        address = self._services.addresses.pod(uid_of(self._pod))
        if self._pod["spec"].get("hostNetwork"):
            address = self._services.address
        return HandlerTarget(self._container, attempt, address)

    def _probe(self, attempt: Attempt) -> None:
        if self._current is not attempt or self.role is ContainerRole.INIT:
            return
        self._probes = Probes(
            self._target(attempt),
            self._services.handlers,
            self._services.clock,
            changed=self._wake,
            unhealthy=self._unhealthy,
            restart=self._restart,
        )
        self._probes.start()

    async def _unhealthy(self, kind: Kind, outcome: HandlerOutcome) -> None:
        self._event("Unhealthy", f"{kind.capitalize()} probe failed: {outcome.message}".strip(), "Warning")

    def _restart(self, kind: Kind) -> None:
        grace = float(self._pod["spec"].get("terminationGracePeriodSeconds") or 30)
        probe = self._container.get(f"{kind}Probe") or {}
        grace = float(probe.get("terminationGracePeriodSeconds") or grace)
        self.stop(grace, f"Container {self.name} failed {kind} probe, will be restarted")

    async def _begin(self, attempt: Attempt) -> None:
        """Run the postStart hook, then start the probes; a hook that fails ends the container."""
        hook = (self._container.get("lifecycle") or {}).get("postStart")
        if hook:
            outcome = await self._services.handlers.run(hook, self._target(attempt), timeout=_LONGEST_HOOK_SECONDS)
            if not outcome.ok:
                self._event("FailedPostStartHook", f"PostStartHook failed: {outcome.message}".strip(), "Warning")
                grace = float(self._pod["spec"].get("terminationGracePeriodSeconds") or 30)
                self.stop(grace, "FailedPostStartHook")
                return
        self._probe(attempt)
        self._wake()

    # Stopping

    def stop(self, grace: float, message: str = "") -> None:
        """Begin to stop the container; a shorter grace period later shortens the first, a longer one changes nothing."""
        if self._starting is not None and not self._starting.done() and not (self.running or self._launching):
            self._starting.cancel()
        if not self.running:
            return
        deadline = self._services.clock.monotonic() + grace
        if self._stopping is not None and not self._stopping.done():
            if deadline >= self._stop_deadline:
                return
            self._stop_deadline = deadline
            self._stopping = asyncio.create_task(self._stop(hook=False, instead_of=self._stopping))
            return
        self._stop_deadline = deadline
        if self._probes is not None:
            self._probes.pause()
        self._event("Killing", message or f"Stopping container {self.name}")
        self._stopping = asyncio.create_task(self._stop(hook=grace > 0))

    async def _stop(self, *, hook: bool, instead_of: "asyncio.Task[None] | None" = None) -> None:
        await end_task(instead_of)
        attempt, watching = self._current, self._watching
        if attempt is None or watching is None:
            return
        clock, runtime = self._services.clock, self._services.runtime
        if hook:
            await self._before_stop(attempt, watching)
            self._stop_deadline = max(self._stop_deadline, clock.monotonic() + _LEAST_GRACE_SECONDS)
        runtime.terminate(attempt)
        left = self._stop_deadline - clock.monotonic()
        if left > 0 and not watching.done():
            await first_of(asyncio.ensure_future(asyncio.shield(watching)), asyncio.ensure_future(clock.sleep(left)))
        if not watching.done():
            runtime.kill(attempt)
        await asyncio.shield(watching)

    async def _before_stop(self, attempt: Attempt, watching: "asyncio.Task[None]") -> None:
        """Run the preStop hook, until the grace period or the container itself ends at the latest."""
        hook = (self._container.get("lifecycle") or {}).get("preStop")
        left = self._stop_deadline - self._services.clock.monotonic()
        if not hook or left <= 0:
            return
        running = asyncio.ensure_future(self._services.handlers.run(hook, self._target(attempt), timeout=left))
        try:
            await first_of(
                asyncio.ensure_future(asyncio.shield(running)),
                asyncio.ensure_future(asyncio.shield(watching)),
                asyncio.ensure_future(self._services.clock.sleep(left)),
            )
        finally:
            in_time = running.done()
            await end_task(running)
        if watching.done():
            return
        if not in_time:
            self._event("FailedPreStopHook", "PreStopHook failed: it took longer than the grace period", "Warning")
        elif not running.result().ok:
            self._event("FailedPreStopHook", f"PreStopHook failed: {running.result().message}".strip(), "Warning")

    async def close(self) -> None:
        """Stop watching the container and leave it running."""
        if self._probes is not None:
            await self._probes.close()
        for task in (self._starting, self._beginning, self._stopping, self._watching):
            with contextlib.suppress(Exception):
                await end_task(task)

    def _event(self, reason: str, message: str, type: Literal["Normal", "Warning"] = "Normal") -> None:
        self._services.events.about_pod(self._pod, reason, message, type=type, field=self._field)
