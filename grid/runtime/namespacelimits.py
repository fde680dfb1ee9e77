"""The ResourceQuotas and LimitRanges of the executions' namespace, read when somebody asks and remembered for a while.

They change rarely and are asked for rarely, so a watch would cost more. When they cannot be read they are None, and nothing is said of
them.
"""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from grid.core.errors import GridError
from grid.diagnosis.shortages import NamespaceLimits
from grid.kube.api import KubeApi
from grid.kube.limits import LimitRange, ResourceQuota
from grid.kube.listing import read_all
from grid.kube.resources import LIMIT_RANGES, RESOURCE_QUOTAS

logger = logging.getLogger(__name__)

REMEMBERED_SECONDS = 30.0
ANSWER_SECONDS = 3.0  # longer than that nobody waits for a form


class NamespaceLimitsReader:
    """Reads the limits of one namespace. `get` is called on the event loop."""

    def __init__(self, api: KubeApi, namespace: str, *, monotonic: Callable[[], float]) -> None:
        self._api = api
        self._namespace = namespace
        self._monotonic = monotonic
        self._known: NamespaceLimits | None = None
        self._read_at: float | None = None
        self._reading = asyncio.Lock()

    async def get(self) -> NamespaceLimits | None:
        """Return the limits of at most half a minute ago; None when they cannot be read."""
        async with self._reading:  # many forms at once ask the cluster once
            now = self._monotonic()
            if self._read_at is None or now - self._read_at >= REMEMBERED_SECONDS:
                self._known, self._read_at = await self._read(), now
            return self._known

    async def _read(self) -> NamespaceLimits | None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                quotas = await read_all(self._api, RESOURCE_QUOTAS, ResourceQuota, namespace=self._namespace)
                ranges = await read_all(self._api, LIMIT_RANGES, LimitRange, namespace=self._namespace)
                return NamespaceLimits(tuple(quotas), tuple(ranges))
        except (GridError, TimeoutError, msgspec.DecodeError) as error:
            logger.debug("limits of the namespace not read reason=%s", error)
            return None
