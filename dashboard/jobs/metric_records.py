"""Reads what runs of jobs have measured from the database, synchronously."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from dashboard.jobs.viewmodels.run_metrics import HIGHEST, MOST_RUNS, MetricPoints, RunMetrics
from grid.models import Execution, JobRun, MetricReading, RunMetric


def read_metrics(execution_id: str) -> RunMetrics:
    """Return what an execution has measured, with its points."""
    counts = MetricReading.objects.filter(pk=execution_id).values_list("refused", "unkept").first()
    refused, unkept = counts or (0, 0)
    return RunMetrics(_points_of([execution_id]).get(execution_id, ()), refused, unkept)


def ranked_runs(job_id: str, sweep: str, metric: str, order: str) -> list[int]:
    """Return the numbers of a sweep's runs by the last value of a metric; those without it come last."""
    numbers = list(JobRun.objects.filter(job=job_id, sweep=sweep).order_by("number").values_list("number", flat=True))
    rows = RunMetric.objects.filter(name=metric, execution__run__job=job_id, execution__run__sweep=sweep)
    values = rows.order_by("execution__attempt").values_list("execution__run__number", "last")
    last = dict(values)  # of several attempts the latest that has measured it
    sign = -1 if order == HIGHEST else 1
    return sorted(numbers, key=lambda number: (number not in last, sign * last.get(number, 0.0), number))


def leading_runs(job_id: str, sweep: str, metric: str, order: str) -> tuple[list[int], str]:
    """Return the runs of a sweep that come first in this order, and the metric, which is the first of any when none is asked for."""
    of_sweep = RunMetric.objects.filter(execution__run__job=job_id, execution__run__sweep=sweep)
    metric = metric or of_sweep.order_by("pk").values_list("name", flat=True).first() or ""
    if order:
        return ranked_runs(job_id, sweep, metric, order)[:MOST_RUNS], metric
    measured = of_sweep.filter(name=metric).order_by("execution__run__number")
    return list(measured.values_list("execution__run__number", flat=True).distinct()[:MOST_RUNS]), metric


def metrics_of_runs(job_id: str, numbers: Sequence[int], name: str = "") -> dict[int, Sequence[MetricPoints]]:
    """Return what the latest attempts of these runs have measured, by the number of the run; with a name, that metric alone."""
    rows = Execution.objects.filter(run__job=job_id, run__number__in=numbers).order_by("run__number", "attempt")
    attempts = dict(rows.values_list("run__number", "pk"))
    points = _points_of(attempts.values(), name)
    return {number: points.get(attempts[number], ()) for number in numbers if number in attempts}


def last_values(execution_ids: Iterable[str]) -> dict[str, Mapping[str, float]]:
    values: dict[str, dict[str, float]] = defaultdict(dict)
    rows = RunMetric.objects.filter(execution__in=list(execution_ids)).order_by("pk")
    for id, name, last in rows.values_list("execution", "name", "last"):
        values[id][name] = last
    return dict(values)


def _points_of(ids: Iterable[str], name: str = "") -> dict[str, list[MetricPoints]]:
    rows = RunMetric.objects.filter(execution__in=list(ids)).order_by("pk")
    if name:
        rows = rows.filter(name=name)
    metrics = defaultdict(list)
    for row in rows:
        points = [(step, value) for _, step, value in row.points]
        metrics[row.execution_id].append(MetricPoints(row.name, row.count, row.last, row.lowest, row.highest, points))
    return dict(metrics)
