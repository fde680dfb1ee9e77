"""Asks for the controller's Lease every few seconds: the answer tells whether a controller works, and that there is one whether the API
server answers. A server that hangs closes no connection, and a watch that is silent may just have nothing to tell.

Clocks of two machines are not compared: a Lease is old when it has not changed for a while on our own clock.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from grid.controller.leader import LEASE
from grid.core.errors import ClusterUnavailable, GridError, NotFound, TooManyRequests
from grid.core.translation import gettext as _
from grid.kube.api import KubeApi
from grid.kube.objects import RawObject
from grid.kube.resources import LEASES
from grid.kube.store import Freshness
from grid.kube.trouble import ClusterTrouble, TroubleJudge, sentence_of
from grid.platformhealth.outages import LEADER, Outage

logger = logging.getLogger(__name__)

PERIOD = 3.0
# Until a second try, as one lost packet is no outage, and then for either's answer: 4 s are slow, not silent.
PATIENCE = (3.0, 2.0)
SLOW_SECONDS = 2.0  # so long for each of two answers is slow
AWAY_SECONDS = 15.0  # so long the Lease is held; a leader renews it every two seconds
HANDOVER_SECONDS = 6.0  # the next leader tries every two seconds to take a Lease that was given back


@dataclass(frozen=True, slots=True)
class ControllerAway:
    """No controller works. `since` is when the last one renewed the Lease, by its own clock; None when none ever has. `lacks` is the last
    failure of one that runs and cannot work, "" when none is known to run."""

    since: datetime | None
    lacks: str = ""


class ControllerLease:
    """`heard` returns when the API server was last heard by anybody else in this process, on the same clock; None for never."""

    def __init__(
        self, api: KubeApi, namespace: str, *, monotonic: Callable[[], float], heard: Callable[[], float | None]
    ) -> None:
        self._api, self._namespace = api, namespace
        self._monotonic, self._heard = monotonic, heard
        self._answered_at: float | None = None
        self._failed_at = 0.0  # when the first question was sent that got no answer
        self._error = ""
        self._trouble = ClusterTrouble.SILENT  # the kind of `_error`
        self._judge = TroubleJudge()
        self._pause = PERIOD
        self._spent = (0.0, 0.0)  # seconds until each of the last two answers
        self.failure: Outage | None = None  # as the controller itself noted it last
        self.unreadable = ""  # why the Lease cannot be read, though the API server answers
        self._is_readable = False  # False before the first answer, and without the right to read it
        self._lease: RawObject | None = None
        self._version = ""  # of the lease, "" without one
        self._changed_at = 0.0

    async def run(self) -> None:
        while True:
            await self.ask()
            await asyncio.sleep(self._pause)

    async def ask(self) -> None:
        """Ask until there is an answer, at most twice. The first question still counts while the second is asked."""
        asked_at, error, self._pause = self._monotonic(), "", PERIOD
        tries: list[asyncio.Task[RawObject | None]] = []
        try:
            for seconds in PATIENCE:
                tries.append(asyncio.create_task(self._read()))
                waiting = [question for question in tries if not question.done()]
                done, _pending = await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                error = _("The API server does not answer in time.")
                for question in done:
                    try:
                        self._take(question.result())
                        return
                    except ClusterUnavailable as unavailable:
                        error = str(unavailable)
                        self._judge.silent()
                    except TooManyRequests as busy:
                        self._pause = max(PERIOD, busy.retry_after)
                        self._failed(asked_at, sentence_of(busy), ClusterTrouble.THROTTLED)
                        return
                    except GridError as refused:
                        sentence, trouble = self._judge.judge(refused, self._monotonic())
                        if trouble is ClusterTrouble.SILENT:
                            self._failed(asked_at, sentence, trouble)
                        else:
                            self._refused(refused, sentence)
                        return
        finally:
            for question in tries:
                question.cancel()
            await asyncio.gather(*tries, return_exceptions=True)
        self._judge.silent()
        self._failed(asked_at, error, ClusterTrouble.SILENT)

    def _failed(self, asked_at: float, error: str, trouble: ClusterTrouble) -> None:
        if not self._error or trouble is not self._trouble:
            self._failed_at = asked_at
        self._error, self._trouble = error, trouble

    def _refused(self, refused: GridError, sentence: str) -> None:
        """Note a refusal: the API server answers, though we may not read the Lease."""
        if self._is_readable or self._answered_at is None:
            logger.warning("the controller's lease cannot be read reason=%s", refused)
        self._answered_at, self._error = self._monotonic(), ""
        self._is_readable, self.unreadable = False, sentence

    def freshness(self, now: float) -> Freshness:
        """Return for how long the API server has not answered, or limits us, or that it is slow; nothing is wrong before its first answer,
        which the caches wait for."""
        if self._answered_at is None:
            return Freshness(True, 0.0, "")
        if not self._error and min(self._spent) >= SLOW_SECONDS:
            sentence = _("Its last answers took {seconds:.1f} s and more.", seconds=min(self._spent))
            return Freshness(True, 0.0, sentence, ClusterTrouble.SLOW)
        since, is_silent = self._failed_at, self._trouble is ClusterTrouble.SILENT
        if is_silent:
            # Whoever else has just heard it knows better.
            since = max(self._heard() or since, since)
        if not self._error or now - since < PERIOD:
            return Freshness(True, 0.0, "")
        return Freshness(True, now - since if is_silent else 0.0, self._error, self._trouble, now - since)

    @property
    def is_known(self) -> bool:
        """Whether `away` can tell: the Lease may be read, and the API server answers."""
        return self._is_readable and not self._error

    def away(self, now: float) -> ControllerAway | None:
        """Return that no controller works, or what one lacks; None while one does or nobody can tell."""
        unheld, failure = self.unheld(now), self.failure
        # Of a candidate it matters only when no other one leads.
        if failure is not None and (failure.part == LEADER or unheld is not None or not self.is_known):
            return ControllerAway(failure.since, failure.sentence)
        return unheld

    def unheld(self, now: float) -> ControllerAway | None:
        """Return that no controller holds the Lease; None while one does or nobody can tell."""
        if not self.is_known:
            return None
        spec = self._lease["spec"] if self._lease is not None else {}
        patience = AWAY_SECONDS if spec.get("holderIdentity") else HANDOVER_SECONDS
        if now - self._changed_at <= patience:
            return None
        try:
            return ControllerAway(datetime.fromisoformat(str(spec.get("renewTime"))))
        except ValueError:
            return ControllerAway(None)

    async def _read(self) -> RawObject | None:
        asked_at = self._monotonic()
        try:
            lease = await self._api.get(LEASES, LEASE, namespace=self._namespace)
        except NotFound:
            lease = None
        self._spent = self._spent[1], self._monotonic() - asked_at
        return lease

    def _take(self, lease: RawObject | None) -> None:
        version = str(lease["metadata"]["resourceVersion"]) if lease is not None else ""
        if not self._is_readable or self._error or version != self._version:
            self._changed_at = self._monotonic()  # without an answer the controller could not renew it either
        self._answered_at, self._error, self.unreadable = self._monotonic(), "", ""
        self._judge.answered()
        self._is_readable, self._lease, self._version = True, lease, version
