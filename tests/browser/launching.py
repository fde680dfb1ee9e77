"""What the launch form's tests put on the stage: environments with frameworks, nodes that may become more, and ended runs with peaks."""

from datetime import UTC, datetime
from typing import Any

from asgiref.sync import sync_to_async

from grid.kube.resources import CONFIG_MAPS, NODES
from grid.models import ConfigRecord, Environment, Execution, PeakUse
from tests.browser import executing
from tests.browser.administering import AUTOSCALER
from tests.browser.server import Stage
from tests.support import builders

LAST, SHORT = "kkkk2222kc", "kkkk2222mm"
GIB = 2**30


def _environments() -> None:
    ConfigRecord.objects.all().delete()
    Environment.objects.filter(pk="jupyterlab").update(frameworks={"dask": "2026.8.0", "ray": "2.59.0"})
    for id, name, frameworks in (
        ("dask-cluster", "Dask", {"dask": "2026.8.0"}),
        ("lake", "Data lake tools", {"dask": "2026.7.1", "spark": "4.3.0"}),
        ("ray-cluster", "Ray", {"ray": "2.60.0"}),
    ):
        Environment.objects.create(id=id, name=name, kind="cluster", image=f"grid/{id}:1", frameworks=frameworks)


async def team(stage: Stage) -> None:
    await executing.team(stage)
    await sync_to_async(_environments)()
    for name in ("default-7f4k2", "default-9x2mc"):
        stage.cluster.put(NODES, builders.node(name, cpu="8", memory="32Gi", created=datetime.now(UTC)))
    data = {"status": AUTOSCALER}
    stage.cluster.put(CONFIG_MAPS, builders.config_map("cluster-autoscaler-status", data, namespace="kube-system"))


async def launched(stage: Stage) -> list[dict[str, Any]]:
    """Every execution, the newest last."""

    def read() -> list[dict[str, Any]]:
        rows = Execution.objects.order_by("requested_at", "kind").values(
            "kind", "tier", "head_tier", "slots", "attached_to__kind", "spec"
        )
        return [{**row, "spec": (row["spec"] or {}).get("cluster")} for row in rows]

    return await sync_to_async(read)()


def _write_peak(id: str, gibibytes: float) -> None:
    PeakUse.objects.create(
        execution_id=id,
        memory_peak_bytes=int(gibibytes * GIB),
        cpu_peak_millicores=700,
        cpu_sum_millicores=6000,
        samples=20,
    )


async def runs(stage: Stage) -> None:
    """Three runs that would have done with less, and one that ran out of memory."""
    await team(stage)
    now = datetime.now(UTC)
    ended: dict[str, Any] = {
        "kind": "job",
        "environment": await Environment.objects.aget(pk="script"),
        "ended_at": now,
        "settled_at": now,
    }
    for id in ("kkkk2222ka", "kkkk2222kb", LAST):
        await executing.put(stage, id, "succeeded", minutes=30, tier="large", title="train", **ended)
        await sync_to_async(_write_peak)(id, 3.0)
    message = "The program used more memory than its limit."
    short = {**ended, "reason": "out_of_memory", "message": message}
    await executing.put(stage, SHORT, "failed", minutes=20, title="merge", **short)
    await sync_to_async(_write_peak)(SHORT, 3.9)
