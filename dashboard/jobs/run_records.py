"""Reads from the database and the repositories what runs of jobs ran with, measured and left as results, synchronously."""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from django.conf import settings

from dashboard.jobs.viewmodels import runs
from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.environments.revisions import other_revision
from grid.executions.spec import parse_spec
from grid.files.repositories import Repositories, Repository
from grid.models import Environment, Execution, JobRun, MetricReading, Project, RunFiles, RunMetric


def ran_with(execution_id: str) -> runs.RanWith | None:
    """Return what an execution was launched with, and what the kubelet told of it; None when there is none, or it can no longer be read."""
    execution = Execution.objects.filter(pk=execution_id).first()
    if execution is None:
        return None
    try:
        return runs.RanWith(parse_spec(execution), execution)
    except ValueError:
        return None


def deprecated_since(ran: runs.RanWith) -> str:
    """Return a sentence when the environment's revision that ran is deprecated now, with the current one; "" otherwise."""
    environment = Environment.objects.filter(pk=ran.spec.environment.id).first()
    if environment is None:
        return ""
    sentence, is_deprecated = other_revision(environment, ran.spec.environment.revision)
    return sentence if is_deprecated else ""


def launched_with(execution_id: str) -> dict[str, str]:
    """Return the facts of an attempt for a comparison; an empty id is that of a run that was not launched yet."""
    ran = ran_with(execution_id) if execution_id else None
    return runs.launch_facts(ran) if ran else dict(runs.NOT_LAUNCHED)


def read_metrics(execution_id: str) -> runs.RunMetrics:
    counts = MetricReading.objects.filter(pk=execution_id).values_list("refused", "unkept").first()
    return runs.RunMetrics(_points_of([execution_id]).get(execution_id, ()), *(counts or ()))


def ranked_runs(job_id: str, sweep: str, metric: str, order: str) -> list[int]:
    """Return the numbers of a sweep's runs by the last value of a metric; those without it come last."""
    numbers = list(JobRun.objects.filter(job=job_id, sweep=sweep).order_by("number").values_list("number", flat=True))
    rows = RunMetric.objects.filter(name=metric, execution__run__job=job_id, execution__run__sweep=sweep)
    values = rows.order_by("execution__attempt").values_list("execution__run__number", "last")
    last = dict(values)  # of several attempts the latest that has measured it
    sign = -1 if order == runs.HIGHEST else 1
    return sorted(numbers, key=lambda number: (number not in last, sign * last.get(number, 0.0), number))


def leading_runs(job_id: str, sweep: str, metric: str, order: str) -> tuple[list[int], str]:
    """Return the runs of a sweep that come first in this order, and the metric, which is the first of any when none is asked for."""
    of_sweep = RunMetric.objects.filter(execution__run__job=job_id, execution__run__sweep=sweep)
    metric = metric or of_sweep.order_by("pk").values_list("name", flat=True).first() or ""
    if order:
        return ranked_runs(job_id, sweep, metric, order)[: runs.MOST_RUNS], metric
    measured = of_sweep.filter(name=metric).order_by("execution__run__number")
    return list(measured.values_list("execution__run__number", flat=True).distinct()[: runs.MOST_RUNS]), metric


def metrics_of_runs(job_id: str, numbers: Sequence[int], name: str = "") -> dict[int, Sequence[runs.MetricPoints]]:
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


def _points_of(ids: Iterable[str], name: str = "") -> dict[str, list[runs.MetricPoints]]:
    rows = RunMetric.objects.filter(execution__in=list(ids)).order_by("pk")
    if name:
        rows = rows.filter(name=name)
    metrics = defaultdict(list)
    for row in rows:
        points = [(step, value) for _, step, value in row.points]
        metrics[row.execution_id].append(
            runs.MetricPoints(row.name, row.count, row.last, row.lowest, row.highest, points)
        )
    return dict(metrics)


logger = logging.getLogger(__name__)


class ResultsUnreadable(Exception):
    """They are not there, or cannot be read now; the message is a sentence for the person."""


def read_results(execution_id: str) -> runs.Results | None:
    """Return the results of an execution; None where it has none. Raise ResultsUnreadable."""
    files = RunFiles.objects.filter(pk=execution_id).exclude(results="").select_related("execution__project").first()
    if files is None:
        return None
    with _repository(files.execution.project) as repository:
        return runs.results(files.results, repository.files(files.results))


def compare_results(first_id: str, second_id: str) -> runs.ResultsComparison | None:
    """Return how the results of two executions differ; None where neither has any. Raise ResultsUnreadable."""
    rows = RunFiles.objects.filter(pk__in=[first_id, second_id]).exclude(results="")
    kept = {row.pk: row for row in rows.select_related("execution__project")}
    if not kept:
        return None
    with _repository(next(iter(kept.values())).execution.project) as repository:
        commits = [kept[id].results if id in kept else "" for id in (first_id, second_id)]
        first, second = (runs.RunResults(commit, repository.files(commit) if commit else ()) for commit in commits)
        return runs.compared_results(first, second, partial(repository.difference, limit=runs.DIFFERENCE_BYTES))


@contextmanager
def _repository(project: Project) -> Iterator[Repository]:
    """Yield the project's repository. Raise ResultsUnreadable where it has none, or cannot be read."""
    if not project.is_in_git or not settings.REPOSITORIES:  # results of remote ones are here too
        raise ResultsUnreadable(
            _("The project's files are no longer in Git. Choose Git again on its page to see results.")
        )
    repository = Repositories(settings.REPOSITORIES).of(project.pk)
    try:
        yield repository
    except (GridError, OSError) as error:
        logger.warning("results not read repository=%s reason=%s", repository.path.name, error)
        raise ResultsUnreadable(
            _("The results cannot be read now. Try again, or ask an operator to look at the repositories' volume.")
        ) from error
