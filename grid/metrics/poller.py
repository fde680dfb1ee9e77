"""Polls the usage of nodes and pods for ever; the period depends on whether the cluster has a source of metrics."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.metrics.sources import NoMetrics, UsageSource
from grid.metrics.usage import UsageStore

logger = logging.getLogger(__name__)

PERIOD = 15.0  # metrics-server and most Prometheus set-ups measure no more often
ABSENT_PERIOD = 300.0  # metrics may be installed any day, so checking seldom is enough
_FORGET_AFTER = 8  # failed rounds, two minutes: older numbers would mislead


class UsagePoller:
    """Measures usage periodically. `publish` is called after each round that changed the store or its `unavailable` sentence."""

    def __init__(
        self,
        source: UsageSource,
        store: UsageStore,
        publish: Callable[[str], None],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._source = source
        self._store = store
        self._publish = publish
        self._sleep = sleep
        self._rng = rng or random.Random()
        self._failures = 0

    async def run(self) -> None:
        """Measure for ever, with about a period between two rounds, at random so that processes do not ask at the same time."""
        while True:
            period = await self._round()
            await self._sleep(period * self._rng.uniform(0.9, 1.1))

    async def _round(self) -> float:
        try:
            measured = await self._source.measure()
        except NoMetrics as reason:
            self._say(str(reason), forget=True, level=logging.INFO)
            return ABSENT_PERIOD
        except GridError as error:
            self._failures += 1
            self._say(_("Usage is not being measured: {error}", error=error), forget=self._failures >= _FORGET_AFTER)
        except Exception as error:
            self._failures += 1
            logger.exception("measuring usage failed")
            sentence = _(
                "Usage is not being measured: an answer was not understood ({name}).", name=type(error).__name__
            )
            self._say(sentence, forget=self._failures >= _FORGET_AFTER)
        else:
            if self._failures:
                logger.info("usage is measured again")
            self._failures = 0
            self._store.replace(measured)
            self._publish(self._store.name)
        return PERIOD

    def _say(self, sentence: str, *, forget: bool, level: int = logging.WARNING) -> None:
        if self._store.mark_unavailable(sentence, forget=forget):
            logger.log(level, "no usage reason=%s", sentence)
            self._publish(self._store.name)
