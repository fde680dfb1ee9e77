"""Looks at the platform twice a minute while this process leads, and stores what it finds, with the incidents that begin and end with it;
no other process asks the cluster for it."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol
from urllib.parse import urlsplit

import msgspec
from django.conf import settings
from django.db import transaction

from grid.core.decoding import prepared
from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask, TaskRecord
from grid.executions.context import Context
from grid.executions.policykeeper import SYSTEM_NAMESPACE
from grid.models import PlatformIncident, PlatformReport
from grid.platformhealth import lights, outages, taskhealth
from grid.platformhealth.facts import Light, LogShipping
from grid.platformhealth.incidents import UNATTENDED, Streak, judge
from grid.platformhealth.reading import PlatformLook, PlatformReader, Watched, nothing_wrong
from grid.platformhealth.served_versions import VersionReader
from grid.platformhealth.versions import VersionLine

LOOK_SECONDS = 30.0
UNATTENDED_SENTENCE = _("Nobody looked after the platform: no controller worked, or it did not reach its database.")


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
        await context.database(ping)
        light = lights.database(context.monotonic() - began)
        now, tasks = context.clock(), self._records()
        receiver = lights.log_receiver(self._shipping.state if self._shipping is not None else None, now)
        ours = (light, receiver, taskhealth.light(tasks, now))
        await context.database(record, context.target.data_plane, reading, ours, now, versions, tasks)


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
        _reader, writer = await asyncio.open_connection(parts.hostname, port)
        writer.close()

    return lambda: nothing_wrong(open_once())


async def _lookup() -> str:
    return await nothing_wrong(asyncio.get_running_loop().getaddrinfo("kubernetes.default.svc", 443))


def ping() -> None:
    PlatformReport.objects.order_by("pk").values_list("pk").first()


def record(
    data_plane: str,
    reading: PlatformLook,
    ours: Sequence[Light],
    now: datetime,
    versions: Sequence[VersionLine] = (),
    tasks: Sequence[TaskRecord] = (),
) -> None:
    """Store the look, with the lights of what the controller itself asks, and how its periodic tasks go.
    Two controllers at once store one after the other, and begin each incident once."""
    all_lights = (*reading.lights, *ours)
    with transaction.atomic():
        report, is_first = PlatformReport.objects.select_for_update().get_or_create(
            pk=data_plane, defaults={"checked_at": now}
        )
        is_unattended = not is_first and now - report.checked_at > UNATTENDED
        if is_unattended and not outages.explains_absence(data_plane, report.checked_at):
            _incident(data_plane, "controller", _("Controller"), UNATTENDED_SENTENCE, report.checked_at, now)
        _turn(data_plane, report, all_lights, now)
        report.checked_at = now
        report.lights = msgspec.to_builtins(all_lights)
        report.workloads = msgspec.to_builtins(reading.workloads)
        report.troubles = list(reading.troubles)
        report.versions = msgspec.to_builtins(versions)
        report.tasks = msgspec.to_builtins(tasks)
        report.save()


def _turn(data_plane: str, report: PlatformReport, lights: Sequence[Light], now: datetime) -> None:
    unended = PlatformIncident.objects.filter(data_plane=data_plane, ended_at=None)
    streaks = msgspec.convert(report.streaks, prepared(dict[str, Streak]))
    judged = judge(lights, streaks, set(unended.values_list("part", flat=True)), now)
    for turn in judged.begun:
        _incident(data_plane, turn.light.key, turn.light.name, turn.light.sentence, turn.at, None)
    for turn in judged.ended:
        unended.filter(part=turn.light.key).update(ended_at=turn.at)
    report.streaks = msgspec.to_builtins(judged.streaks)


def _incident(data_plane: str, part: str, name: str, sentence: str, at: datetime, ended_at: datetime | None) -> None:
    PlatformIncident.objects.create(
        data_plane=data_plane, part=part, name=name, sentence=sentence, at=at, ended_at=ended_at
    )
