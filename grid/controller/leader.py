"""Elects one leader among any number of controllers by a Kubernetes Lease.

The lease is only ever written with the version that was read, so two candidates cannot both take it. A candidate takes it over when it has
seen no renewal for `Terms.lease` seconds of its own clock (clocks of two machines are never compared). A leader that could not renew for
`Terms.renew` seconds, which is less, stops its work before anybody else can begin. The algorithm is that of client-go's
tools/leaderelection, with its times, and stricter in one point: the renew deadline counts from when the last renewal was sent, not from
its answer, so that a slow answer makes no second leader.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from grid.controller.downtime import Downtime
from grid.core.errors import Conflict, GridError, NotFound
from grid.core.translation import gettext as _
from grid.kube.api import KubeApi
from grid.kube.objects import RawObject
from grid.kube.resources import LEASES
from grid.kube.trouble import TroubleJudge

logger = logging.getLogger(__name__)

LEASE = "compute-grid-controller"  # the controllers' own
NEVER = float("-inf")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Terms:
    """The times of an election in seconds: `lease` > `renew` > `retry`, so that a leader has several tries before it must stop."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    @property
    def patience(self) -> float:
        """How long a request may take: half the renew deadline, as client-go's tools/leaderelection/resourcelock gives its client."""
        return self.renew / 2


@dataclass(eq=False)
class Election:
    """One candidate. `attempt` is one step; `lead` runs until it is cancelled.
    `away` is the time for which nobody led before this candidate did, by the clocks of both machines; it is only shown to people.
    """

    api: KubeApi
    name: str
    namespace: str
    identity: str
    monotonic: Callable[[], float] = time.monotonic
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    terms = Terms()

    def __post_init__(self) -> None:
        self._rng = random.Random(self.identity)  # so that candidates that began together do not stay in step
        self._seen_version = ""
        self._seen_at = 0.0
        self._taken_at = NEVER  # when the last renewal that the server is known to have was sent
        self._tried_at = NEVER
        self._own: RawObject | None = None  # the lease as last known, while it is ours
        # When the first write was sent of which nobody knows whether the server did it.
        self._doubted_at: float | None = None
        self._late: set[asyncio.Future[Any]] = set()  # requests whose answers came too late, or may still come
        self._is_working = False
        self._renewed_before = ""
        self._is_cut_off = False
        self._judge = TroubleJudge()
        self.away: Downtime | None = None
        self.failure = ""  # of the last attempt, in words

    @property
    def leads_until(self) -> float:
        """When the work has to have ended unless the lease is renewed before, on the clock `monotonic`."""
        return self._taken_at + self.terms.renew

    async def attempt(self) -> bool:
        """Take or renew the lease and return True when it is ours now. Raise GridError or TimeoutError when the cluster does not answer."""
        if self._own is not None and self._doubted_at is None and self.monotonic() < self.leads_until:
            try:
                return await self._take(self._own)  # as client-go does: what we wrote last need not be read
            except (Conflict, NotFound):
                logger.debug("lease is not as it was written, reading it lease=%s", self.name)
        try:
            lease = await self._answer(self.api.get(LEASES, self.name, namespace=self.namespace))
        except NotFound:
            return await self._create()
        holder = lease["spec"].get("holderIdentity") or ""
        self._observe(lease["metadata"]["resourceVersion"])
        if holder == self.identity:
            self._recognise(lease)
        else:
            self._lose()
        if holder not in ("", self.identity) and not self._has_expired(lease):
            return False
        try:
            return await self._take(lease)
        except Conflict:
            return False

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` whenever this candidate leads; it is cancelled, and has ended, before somebody else can lead."""
        try:
            while True:
                while not await self._attempt_safely():
                    await self.sleep(self.terms.retry * (1 + self._rng.random() / 5))
                self.away, self._is_cut_off = self._downtime(), False
                logger.info("leading lease=%s identity=%s", self.name, self.identity)
                await self._work_while_leading(work)
                logger.warning("no longer leading lease=%s identity=%s", self.name, self.identity)
                await self.sleep(self.terms.retry)  # work that fails at once must not make a hot loop
        finally:
            await asyncio.shield(self._leave())

    async def _work_while_leading(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(work())
        self._is_working = True
        try:
            # Time counts from before a request is sent: other candidates count from when they see it, which is later.
            while not task.done() and (left := self.leads_until - self.monotonic()) > 0:
                # From attempt to attempt: a pause after a slow answer would take from the time for the next.
                pause = max(0.0, self._tried_at + self.terms.retry - self.monotonic())
                waiting = asyncio.ensure_future(self.sleep(min(pause, left)))
                try:
                    await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    waiting.cancel()
                if pause >= left:
                    break
                if not task.done() and await self._attempt_safely():
                    self._is_cut_off = False
        finally:
            self._is_working = False
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self._drop_late()
        if not task.cancelled() and task.exception() is not None:
            logger.error("work of the leader failed", exc_info=task.exception())

    async def _attempt_safely(self) -> bool:
        self._tried_at = self.monotonic()
        try:
            is_ours = await self.attempt()
        except (GridError, TimeoutError) as error:
            reason = str(error) or "no answer in time"
            logger.warning("lease cannot be read or renewed lease=%s reason=%s", self.name, reason)
            self._is_cut_off = True
            if isinstance(error, GridError):
                self.failure, _trouble = self._judge.judge(error, self.monotonic())
            else:
                self._judge.silent()
                self.failure = _("The API server does not answer in time.")
            return False
        self.failure = ""
        self._judge.answered()
        if not is_ours:
            self._is_cut_off = False
        return is_ours

    async def _answer(self, request: Coroutine[object, object, T]) -> T:
        """Return the answer of one request. Raise TimeoutError when it comes too late to be of use; the request is not cancelled then,
        because that would close its connection, and a slow server would be asked over ever new ones."""
        seconds = self.terms.patience
        if self._is_working:
            seconds = min(seconds, self.leads_until - self.monotonic())
        if seconds <= 0:
            request.close()  # nothing is sent any more
            raise TimeoutError
        task = asyncio.ensure_future(request)
        self._late.add(task)
        task.add_done_callback(self._is_answered)
        try:
            await asyncio.wait({task}, timeout=seconds)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not task.done():
            raise TimeoutError
        return task.result()

    def _is_answered(self, task: "asyncio.Future[T]") -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()  # else asyncio complains that nobody has asked for it

    async def _drop_late(self) -> None:
        """Cancel requests that still run: whoever does not lead writes nothing."""
        late = tuple(self._late)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def _recognise(self, lease: RawObject) -> None:
        """Note the lease that was read as ours. If it was renewed since the last known state, the server did a write whose answer was lost:
        that counts from when the first such write was sent, since the server cannot have done it before."""
        if self._own is not None and self._doubted_at is not None and _renewal(lease) != _renewal(self._own):
            self._taken_at = max(self._taken_at, self._doubted_at)
            self._doubted_at = None  # all earlier writes name a version that is gone
        self._own = lease

    def _lose(self) -> None:
        """Note that the lease is not ours, so that the work ends at once and the next renewal is no matter of course."""
        self._own, self._doubted_at, self._taken_at = None, None, NEVER

    def _observe(self, version: str) -> None:
        if version != self._seen_version:
            self._seen_version, self._seen_at = version, self.monotonic()

    def _has_expired(self, lease: RawObject) -> bool:
        promised = float(lease["spec"].get("leaseDurationSeconds") or self.terms.lease)
        return self.monotonic() - self._seen_at > promised

    async def _create(self) -> bool:
        lease = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": self._spec(acquired=self._stamp(), transitions=0),
        }
        try:
            await self._write(self.api.create(LEASES, lease, namespace=self.namespace))
        except Conflict:
            return False
        self._renewed_before = ""
        return True

    async def _take(self, lease: RawObject) -> bool:
        """Write the lease as ours, on condition that it is as given. Raise Conflict when it is not."""
        spec = lease["spec"]
        transitions = int(spec.get("leaseTransitions") or 0)
        if spec.get("holderIdentity") == self.identity:
            renewed = self._spec(acquired=spec.get("acquireTime") or self._stamp(), transitions=transitions)
        else:
            renewed = self._spec(acquired=self._stamp(), transitions=transitions + 1)
        body = {**lease, "spec": {**spec, **renewed}}
        await self._write(self.api.replace(LEASES, self.name, body, namespace=self.namespace))
        self._renewed_before = _renewal(lease)
        return True

    async def _write(self, request: Coroutine[object, object, RawObject]) -> None:
        """Send a write that makes the lease ours. After any error nobody knows whether the server did it: even after a conflict, since the
        client may have sent it twice."""
        sent_at = self.monotonic()
        if self._doubted_at is None:
            self._doubted_at = sent_at
        written = await self._answer(request)
        self._observe(written["metadata"]["resourceVersion"])
        self._own, self._doubted_at, self._taken_at = written, None, sent_at

    def _downtime(self) -> Downtime | None:
        """Return the time since the lease was last renewed, by any candidate."""
        try:
            since = datetime.fromisoformat(self._renewed_before)
            return Downtime("cluster" if self._is_cut_off else "controller", since, self.clock())
        except ValueError:
            return None

    def _spec(self, *, acquired: str, transitions: int) -> RawObject:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, round(self.terms.lease)),
            "acquireTime": acquired,
            "renewTime": self._stamp(),
            "leaseTransitions": transitions,
        }

    async def _leave(self) -> None:
        """Release the lease, so that the next leader begins at once; if that fails, it begins when the lease has expired."""
        await self._drop_late()
        try:
            lease = await self._answer(self.api.get(LEASES, self.name, namespace=self.namespace))
            if lease["spec"].get("holderIdentity") == self.identity:
                free = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._stamp()}
                body = {**lease, "spec": lease["spec"] | free}
                await self._answer(self.api.replace(LEASES, self.name, body, namespace=self.namespace))
        except (GridError, TimeoutError) as error:
            logger.info("lease not released lease=%s error=%s", self.name, str(error) or "no answer in time")
        finally:
            await self._drop_late()

    def _stamp(self) -> str:
        """Return the time for people to read: no decision compares clocks."""
        return self.clock().isoformat(timespec="microseconds").replace("+00:00", "Z")


def _renewal(lease: RawObject) -> str:
    return str(lease["spec"].get("renewTime") or "")
