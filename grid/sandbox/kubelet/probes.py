"""The probes of one running container: startup, readiness and liveness.

Each probe is a loop of its own. Startup runs first and delays the other two; a failed liveness or startup probe requests a
restart; readiness is only reported. Results count once a threshold of equal ones in a row is reached.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from grid.sandbox.client import Clock, Object
from grid.sandbox.kubelet.handlers import HandlerOutcome, Handlers, HandlerTarget
from grid.sandbox.kubelet.services import end_task

logger = logging.getLogger(__name__)

Kind = Literal["startup", "readiness", "liveness"]
_FIELDS: dict[Kind, str] = {"startup": "startupProbe", "readiness": "readinessProbe", "liveness": "livenessProbe"}


@dataclass(frozen=True, slots=True)
class ProbeSchedule:
    """A probe's times and thresholds, with Kubernetes' defaults for those not set."""

    initial_delay: float
    period: float
    timeout: float
    successes: int
    failures: int

    @classmethod
    def of(cls, probe: Object) -> "ProbeSchedule":
        return cls(
            initial_delay=float(probe.get("initialDelaySeconds") or 0),
            period=float(probe.get("periodSeconds") or 10),
            timeout=float(probe.get("timeoutSeconds") or 1),
            successes=int(probe.get("successThreshold") or 1),
            failures=int(probe.get("failureThreshold") or 3),
        )


@dataclass(slots=True)
class Tally:
    """A count of equal results in a row, which `add` compares with the thresholds."""

    schedule: ProbeSchedule
    last: bool | None = None
    count: int = 0

    def add(self, ok: bool) -> bool | None:
        """Count a result; return it once it is settled, or None before."""
        self.count = self.count + 1 if ok == self.last else 1
        self.last = ok
        enough = self.schedule.successes if ok else self.schedule.failures
        return ok if self.count >= enough else None


class Probes:
    """The probes of one running container.

    `changed` is called when `started` or `ready` changed; `unhealthy` reports each failure; `restart` asks for the
    end of the container and names the probe.
    """

    def __init__(
        self,
        target: HandlerTarget,
        handlers: Handlers,
        clock: Clock,
        *,
        changed: Callable[[], None],
        unhealthy: Callable[[Kind, HandlerOutcome], Awaitable[None]],
        restart: Callable[[Kind], None],
    ) -> None:
        container = target.container
        self._probes: dict[Kind, Object] = {
            kind: container[field] for kind, field in _FIELDS.items() if container.get(field)
        }
        self.started = "startup" not in self._probes
        self.ready = "startup" not in self._probes and "readiness" not in self._probes
        self._target = target
        self._handlers = handlers
        self._clock = clock
        self._changed = changed
        self._unhealthy = unhealthy
        self._restart = restart
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._probes:
            self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        self.ready = False
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Stop the probes and wait until they have ended."""
        self.stop()
        await end_task(self._task)

    def pause(self) -> None:
        """Stop probing a container that is being stopped, without a change of its readiness."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            if "startup" in self._probes and not await self._until_started():
                return
            if not self.started:
                self.started = True
                self.ready = "readiness" not in self._probes
                self._changed()
            async with asyncio.TaskGroup() as group:
                for kind in ("readiness", "liveness"):
                    if kind in self._probes:
                        group.create_task(self._watch(kind))
        except Exception:
            logger.exception("probes of container=%s ended", self._target.attempt.id)

    async def _until_started(self) -> bool:
        schedule = ProbeSchedule.of(self._probes["startup"])
        tally = Tally(schedule)
        await self._initial_delay(schedule)
        while True:
            settled = tally.add(await self._probe("startup", schedule))
            if settled:
                return True
            if settled is False:
                self._restart("startup")
                return False
            await self._clock.sleep(schedule.period)

    async def _initial_delay(self, schedule: ProbeSchedule) -> None:
        """Sleep until the initial delay since the container's start, which may be before this process's, has passed."""
        age = (self._clock.now() - self._target.attempt.started_at).total_seconds()
        await self._clock.sleep(max(0.0, schedule.initial_delay - age))

    async def _watch(self, kind: Kind) -> None:
        schedule = ProbeSchedule.of(self._probes[kind])
        tally = Tally(schedule)
        await self._initial_delay(schedule)
        while True:
            settled = tally.add(await self._probe(kind, schedule))
            if kind == "liveness" and settled is False:
                self._restart(kind)
                return
            if kind == "readiness" and settled is not None and settled != self.ready:
                self.ready = settled
                self._changed()
            await self._clock.sleep(schedule.period)

    async def _probe(self, kind: Kind, schedule: ProbeSchedule) -> bool:
        outcome = await self._handlers.run(self._probes[kind], self._target, schedule.timeout)
        if not outcome.ok:
            await self._unhealthy(kind, outcome)
        return outcome.ok
