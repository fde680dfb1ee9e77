"""Reads stored clusters from the database, synchronously, as values for pages: the spec and the samples."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from dashboard.clusters.viewmodels.clusters import ClusterRecord
from dashboard.clusters.viewmodels.samples import SamplePoint, SampleRow, sample_rows, scale_events
from dashboard.executions.viewmodels.execution import ExecutionRecord
from grid.models import ClusterSample, Execution

RECENT = timedelta(minutes=20)
_STORED = ("framework", "head_millicores", "head_memory_bytes", "head_gpus", "workers_minimum", "workers_maximum")
_SAMPLE = ("at", "ready", "wanted", "cpu_percent", "memory_percent", "pending_tasks")


def cluster_record(execution: Execution, now: datetime | None) -> ClusterRecord:
    """Return the cluster's values; with `now`, its recent samples are read too."""
    spec = _dict(_dict(execution.spec).get("cluster"))
    head, scaling = _dict(spec.get("head_tier")), _dict(spec.get("scaling"))
    recent: Sequence[SamplePoint] = ()
    if now is not None:
        recent = read_samples(execution.pk, after=(execution.ended_at or now) - RECENT)
    return ClusterRecord(
        **{name: getattr(execution, name) for name in _STORED},
        head_tier_name=str(head.get("name", "")),
        head_cost_per_hour=execution.head_price_per_hour,
        autoscale=bool(scaling.get("autoscale", True)),
        target_cpu=int(scaling.get("target_cpu", 80)),
        target_memory=int(scaling.get("target_memory", 80)),
        on_demand=bool(scaling.get("on_demand", False)),
        pending_tasks=recent[-1].pending_tasks if recent else None,
        wanted_before=tuple((sample.at, sample.wanted) for sample in recent),
    )


def read_samples(execution_id: str, *, after: datetime | None = None) -> Sequence[SamplePoint]:
    """Return all samples, or those after a time, oldest first; thinned as they are, a week of a steady cluster has some 2,500."""
    samples = ClusterSample.objects.filter(execution=execution_id).order_by("at")
    if after is not None:
        samples = samples.filter(at__gt=after)
    return [SamplePoint(*values) for values in samples.values_list(*_SAMPLE)]


def samples_table(record: ExecutionRecord) -> list[SampleRow]:
    samples = read_samples(record.id)
    return sample_rows(samples, scale_events(samples, record.lifecycle))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
