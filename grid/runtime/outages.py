"""Notes outages while nobody leads, as the leader notes them while one does, and reads what keeps a controller from its work."""

from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from grid.core.translation import gettext as _
from grid.database.periodic import PeriodicTask, RunsIn
from grid.models.dataplane import LOCAL
from grid.platformhealth.outages import NOTE_SECONDS, Outage, note, present_failure

if TYPE_CHECKING:
    from grid.runtime import Runtime


def outages_task(runtime: "Runtime", database: Callable[..., Awaitable[Any]]) -> PeriodicTask:
    async def run_once() -> None:
        now, lease, failure = runtime.clock(), runtime.data_planes[LOCAL].controller, None
        try:
            failure = await database(present_failure, LOCAL, now)
        finally:
            lease.failure = failure
        for outage in present_outages(runtime, now):
            await database(note, LOCAL, outage, now)

    return PeriodicTask("outages", NOTE_SECONDS, run_once, RunsIn.EVERY_PROCESS)


def present_outages(runtime: "Runtime", now: datetime) -> Iterator[Outage]:
    """Yield what a leader would record if there were one."""
    lease, freshness = runtime.data_planes[LOCAL].controller, runtime.freshness()
    unheld = lease.unheld(runtime.monotonic())
    if lease.is_known and unheld is None:
        return
    if (trouble := freshness.trouble) is not None:
        sentence = _("{kind}: {error}", kind=trouble.value, error=freshness.error)
        yield Outage("api-server", sentence, now - timedelta(seconds=freshness.trouble_seconds))
    if unheld is not None and unheld.since is not None and lease.failure is None:
        sentence = _("No controller is running: nothing is started, stopped or scaled.")
        yield Outage("controller", sentence, unheld.since)
