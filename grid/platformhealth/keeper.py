"""Looks at the platform twice a minute while this process leads, and records what it finds; no other process asks the cluster for it."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from django.conf import settings

from grid.database.periodic import PeriodicTask, TaskRecord
from grid.executions.context import Context
from grid.executions.policykeeper import SYSTEM_NAMESPACE
from grid.platformhealth import lights, records, taskhealth
from grid.platformhealth.facts import LogShipping
from grid.platformhealth.reading import PlatformReader, Watched, nothing_wrong
from grid.platformhealth.served_versions import VersionReader

LOOK_SECONDS = 30.0


class ShipsLogs(Protocol):
    """Sends executions' logs to the log receiver, as `grid.logs.logshipping` does."""

    @property
    def state(self) -> LogShipping: ...


class PlatformKeeper:
    """Looks and records. `records` says how the leader's periodic tasks go, `shipping` sends logs; None where they stay here."""

    def __init__(
        self,
        context: Context,
        watched: Watched,
        records: Callable[[], Sequence[TaskRecord]],
        shipping: ShipsLogs | None = None,
    ) -> None:
        self._context = context
        self._records = records
        self._shipping = shipping
        self._versions = VersionReader(context.api, monotonic=context.monotonic)
        self._reader = PlatformReader(context.api, watched, clock=context.clock, monotonic=context.monotonic)

    def periodic(self) -> PeriodicTask:
        return PeriodicTask("platform health", LOOK_SECONDS, self.run_once)

    async def run_once(self) -> None:
        context = self._context
        reading = await self._reader.read(context.events.values(), context.pods.values())
        versions = await self._versions.lines()
        began = context.monotonic()
        await context.database(records.ping)
        light = lights.database(context.monotonic() - began)
        now, tasks = context.clock(), self._records()
        receiver = lights.log_receiver(self._shipping.state if self._shipping is not None else None, now)
        ours = (light, receiver, taskhealth.light(tasks, now))
        await context.database(records.record, context.target.data_plane, reading, ours, now, versions, tasks)


def watched(namespace: str) -> Watched:
    """Return what this installation's settings name. In a cluster our own lookup tells of its DNS, and the proxy is a Deployment of
    which the cluster tells; on one machine the proxy is a port."""
    is_in_cluster = bool(os.environ.get("KUBERNETES_SERVICE_HOST"))
    return Watched(
        namespace=namespace,
        own_namespace=SYSTEM_NAMESPACE,
        ingress_namespace=settings.INGRESS_NAMESPACE if settings.INGRESS_CLASS else "",
        lookup=_lookup if is_in_cluster else None,
        connect=None if is_in_cluster else connecting_to(settings.WORKSPACE_ORIGIN),
    )


def connecting_to(origin: str) -> Callable[[], Awaitable[str]]:
    parts = urlsplit(origin)
    port = parts.port or (443 if parts.scheme == "https" else 80)

    async def open_once() -> None:
        _, writer = await asyncio.open_connection(parts.hostname, port)
        writer.close()

    return lambda: nothing_wrong(open_once())


async def _lookup() -> str:
    return await nothing_wrong(asyncio.get_running_loop().getaddrinfo("kubernetes.default.svc", 443))
