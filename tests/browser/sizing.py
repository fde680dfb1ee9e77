"""What the browser tests of sizes put on the stage: a team that may launch, and runs of Alice that have ended, with their peaks."""

from datetime import UTC, datetime
from typing import Any

from asgiref.sync import sync_to_async

from grid.models import Environment, PeakUse
from tests.browser import executing, launching
from tests.browser.server import Stage

LAST, SHORT = "kkkk2222kc", "kkkk2222mm"
GIB = 2**30


def _measure(id: str, gibibytes: float) -> None:
    PeakUse.objects.create(
        execution_id=id,
        memory_peak_bytes=int(gibibytes * GIB),
        cpu_peak_millicores=700,
        cpu_sum_millicores=6000,
        samples=20,
    )


async def runs(stage: Stage) -> None:
    """Three runs that would have done with less, and one that ran out of memory."""
    await launching.team(stage)
    now = datetime.now(UTC)
    ended: dict[str, Any] = {
        "kind": "job",
        "environment": await Environment.objects.aget(pk="script"),
        "ended_at": now,
        "settled_at": now,
    }
    for id in ("kkkk2222ka", "kkkk2222kb", LAST):
        await executing.put(stage, id, "succeeded", minutes=30, tier="large", title="train", **ended)
        await sync_to_async(_measure)(id, 3.0)
    message = "The program used more memory than its limit."
    short = {**ended, "reason": "out_of_memory", "message": message}
    await executing.put(stage, SHORT, "failed", minutes=20, title="merge", **short)
    await sync_to_async(_measure)(SHORT, 3.9)
