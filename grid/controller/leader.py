"""Elects one leader among any number of controllers by a Kubernetes Lease.

The lease is only ever written with the version that was read, so two candidates cannot both take it. A candidate takes it over when it has
seen no renewal for `Terms.lease` seconds of its own clock (clocks of two machines are never compared). A leader that could not renew for
`Terms.renew` seconds, which is less, stops its work before anybody else can begin. The algorithm is that of client-go's
tools/leaderelection.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from grid.controller.downtime import Downtime
from grid.core.errors import Conflict, GridError, NotFound
from grid.kube.api import KubeApi
from grid.kube.objects import RawObject
from grid.kube.resources import LEASES

logger = logging.getLogger(__name__)

LEASE = "compute-grid-controller"  # the controllers' own


@dataclass(frozen=True, slots=True)
class Terms:
    """The times of an election in seconds: `lease` > `renew` > `retry`, so that a leader has several tries before it must stop."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


class Election:
    """One candidate. `attempt` is one step; `lead` runs until it is cancelled.

    `away` is the time for which nobody led before this candidate did, by the clocks of both machines; it is only shown to people.
    """

    def __init__(
        self,
        api: KubeApi,
        *,
        name: str,
        namespace: str,
        identity: str,
        terms: Terms | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._name = name
        self._namespace = namespace
        self.identity = identity
        self._terms = terms or Terms()
        self._monotonic = monotonic
        self._clock = clock
        self._sleep = sleep
        self._rng = random.Random(identity)  # so that candidates that began together do not stay in step
        self._seen_version = ""
        self._seen_at = 0.0
        self._taken_at = 0.0
        self._renewed_before = ""
        self._is_cut_off = False
        self.away: Downtime | None = None

    async def attempt(self) -> bool:
        """Take or renew the lease and return True when it is ours now. Raise GridError when the cluster does not answer."""
        try:
            lease = await self._api.get(LEASES, self._name, namespace=self._namespace)
        except NotFound:
            return await self._create()
        holder = lease["spec"].get("holderIdentity") or ""
        self._observe(lease["metadata"]["resourceVersion"])
        if holder not in ("", self.identity) and not self._has_expired(lease):
            return False
        return await self._take(lease, holder)

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` whenever this candidate leads; it is cancelled, and has ended, before somebody else can lead."""
        try:
            while True:
                while not await self._attempt_safely():
                    await self._sleep(self._terms.retry * (1 + self._rng.random() / 5))
                self.away, self._is_cut_off = self._downtime(), False
                logger.info("leading lease=%s identity=%s", self._name, self.identity)
                await self._work_while_leading(work)
                logger.warning("no longer leading lease=%s identity=%s", self._name, self.identity)
                await self._sleep(self._terms.retry)  # work that fails at once must not make a hot loop
        finally:
            await asyncio.shield(self._release())

    async def _work_while_leading(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(work())
        # Time counts from before a request is sent: other candidates count from when they see it, which is later.
        deadline = self._taken_at + self._terms.renew
        try:
            while not task.done() and (left := deadline - self._monotonic()) > 0:
                waiting = asyncio.ensure_future(self._sleep(min(self._terms.retry, left)))
                try:
                    await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    waiting.cancel()
                if not task.done() and await self._attempt_safely(within=deadline - self._monotonic()):
                    deadline = self._taken_at + self._terms.renew
                    self._is_cut_off = False
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if not task.cancelled() and task.exception() is not None:
            logger.error("work of the leader failed", exc_info=task.exception())

    async def _attempt_safely(self, within: float | None = None) -> bool:
        """Attempt, and return False on any error; `within` is the time left, in seconds, for an answer to be of use."""
        started = self._monotonic()
        seconds = self._terms.retry * 2
        try:
            async with asyncio.timeout(seconds if within is None else min(seconds, within)):
                is_ours = await self.attempt()
        except (GridError, TimeoutError) as error:
            reason = str(error) or "no answer in time"
            logger.warning("lease cannot be read or renewed lease=%s reason=%s", self._name, reason)
            self._is_cut_off = True
            return False
        if is_ours:
            self._taken_at = started
        else:
            self._is_cut_off = False
        return is_ours

    def _observe(self, version: str) -> None:
        if version != self._seen_version:
            self._seen_version, self._seen_at = version, self._monotonic()

    def _has_expired(self, lease: RawObject) -> bool:
        promised = float(lease["spec"].get("leaseDurationSeconds") or self._terms.lease)
        return self._monotonic() - self._seen_at > promised

    async def _create(self) -> bool:
        lease = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": self._spec(acquired=self._stamp(), transitions=0),
        }
        try:
            created = await self._api.create(LEASES, lease, namespace=self._namespace)
        except Conflict:
            return False
        self._observe(created["metadata"]["resourceVersion"])
        self._renewed_before = ""
        return True

    async def _take(self, lease: RawObject, holder: str) -> bool:
        spec = lease["spec"]
        transitions = int(spec.get("leaseTransitions") or 0)
        if holder == self.identity:
            renewed = self._spec(acquired=spec.get("acquireTime") or self._stamp(), transitions=transitions)
        else:
            renewed = self._spec(acquired=self._stamp(), transitions=transitions + 1)
        try:
            written = await self._api.replace(
                LEASES, self._name, {**lease, "spec": {**spec, **renewed}}, namespace=self._namespace
            )
        except Conflict:
            return False
        self._observe(written["metadata"]["resourceVersion"])
        self._renewed_before = str(spec.get("renewTime") or "")
        return True

    def _downtime(self) -> Downtime | None:
        """Return the time since the lease was last renewed, by any candidate."""
        try:
            since = datetime.fromisoformat(self._renewed_before)
            return Downtime("cluster" if self._is_cut_off else "controller", since, self._clock())
        except ValueError:
            return None

    def _spec(self, *, acquired: str, transitions: int) -> RawObject:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, round(self._terms.lease)),
            "acquireTime": acquired,
            "renewTime": self._stamp(),
            "leaseTransitions": transitions,
        }

    async def _release(self) -> None:
        """Release the lease, so that the next leader begins at once; if that fails, it begins when the lease has expired."""
        try:
            lease = await self._api.get(LEASES, self._name, namespace=self._namespace)
            if lease["spec"].get("holderIdentity") == self.identity:
                free = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._stamp()}
                await self._api.replace(
                    LEASES, self._name, {**lease, "spec": lease["spec"] | free}, namespace=self._namespace
                )
        except GridError as error:
            logger.info("lease not released lease=%s error=%s", self._name, error)

    def _stamp(self) -> str:
        """Return the time for people to read: no decision compares clocks."""
        return self._clock().isoformat(timespec="microseconds").replace("+00:00", "Z")
