"""What runs have measured, on the run's page, among a job's runs and in comparisons. Who gets which answer: `tests/access/answers.txt`."""

import html
import json
from typing import Any

import pytest
from django.utils import timezone

from dashboard.jobs.viewmodels.runs import MOST_CHARTS, MetricPoints, RunMetrics, charts, number_words
from grid.jobs import jobs
from grid.jobs.jobruns import advance_all
from grid.jobs.runmetrics import store
from grid.jobs.runmetrics.lines import Measurements
from grid.logs.logplace import LogPlace
from grid.models import Environment, Execution, Job, State, User
from grid.runtime import Runtime
from tests.conftest import People, client_of
from tests.executions.executing import make_running
from tests.jobs.test_jobs_pages import launched, page, script as script
from tests.support.cluster import FakeCluster
from tests.support.frozen import write_frozen

HOSTILE = "<script>alert(1)</script>"
pages = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]


def measures(execution: Execution, values: dict[str, list[float]], refused: int = 0) -> None:
    new = Measurements({name: [(None, value) for value in numbers] for name, numbers in values.items()}, refused)
    known = store.read_place(execution.pk)
    assert store.add(execution.pk, known, LogPlace("2026-02-02T10:00:00", 1), new, now=timezone.now())


def ends(job: Job, number: int) -> Execution:
    """The run's attempt has succeeded, and the next ones are launched."""
    execution = Execution.objects.get(run__job=job, run__number=number)
    now = timezone.now()
    Execution.objects.filter(pk=execution.pk).update(
        state=State.SUCCEEDED, started_at=now, ended_at=now, settled_at=now, exit_code=0
    )
    advance_all({job.pk}, now=now)
    return execution


def swept(job: Job, losses: list[list[float]]) -> str:
    """A sweep whose runs have measured these losses; return the path of its page."""
    ends(job, job.runs.count())
    rows = [{"rate": str(number)} for number in range(len(losses))]
    runs = jobs.start_sweep(job.pk, rows, by="alice", now=timezone.now())
    for run, values in zip(runs, losses, strict=True):
        if values:
            measures(run.attempts.get(), {"loss": values, "accuracy": [0.5]})
    return f"/jobs/{job.pk}/?sweep={runs[0].sweep}"


def values_at(people: People, path: str) -> dict[str, Any]:
    answer = client_of(people.owner).get(path)
    assert answer.status_code == 200
    values: dict[str, Any] = json.loads(answer.content)
    return values


def in_order(shown: str) -> list[int]:
    return [int(part.split('"')[0]) for part in shown.split('<tr id="run-')[1:]]


def test_number_is_short_and_integers_are_complete() -> None:
    words = [number_words(value) for value in (1234567.0, -2.0, 1e-7, 0.123456789)]
    assert words == ["1,234,567", "-2", "1e-07", "0.12346"]


def test_metric_has_own_chart_and_each_run_a_line() -> None:
    falling = MetricPoints("loss", 3, 0.1, 0.1, 0.9, [(1, 0.9), (2, 0.5), (4, 0.1)])
    shorter = MetricPoints("loss", 2, 0.2, 0.2, 0.7, [(2, 0.7), (3, 0.2)])
    chart = charts({"Run 1": [falling], "Run 2": [shorter]})["charts"]["metric-0"]
    assert (chart["title"], chart["times"]) == ("loss", [1, 2, 3, 4])
    first, second = chart["lines"].values()
    assert (first["label"], first["values"]) == ("Run 1", [0.9, 0.5, None, 0.1])
    assert (second["label"], second["values"]) == ("Run 2", [None, 0.7, 0.2, None])
    assert (first["colour"], first["dash"]) != (second["colour"], second["dash"])


def test_metric_names_cannot_clash_and_charts_are_bounded() -> None:
    metrics = [MetricPoints(name, 1, 1, 1, 1, [(0, 1)]) for name in ("__proto__", HOSTILE, *map(str, range(30)))]
    assert list(charts({"Run 1": metrics})["charts"]) == [f"metric-{number}" for number in range(MOST_CHARTS)]
    table = RunMetrics(metrics, refused=1, unkept=2)
    assert len(table.rows) == len(metrics)
    assert list(table.notes) == [
        "1 value was no finite number, such as NaN, or had no usable name.",
        "Only 32 metrics are kept; 2 values of others are not.",
        "The first 12 metrics are drawn.",
    ]


class TestPages:
    pytestmark = pages

    def test_a_run_shows_its_metrics_and_its_exit_code(self, people: People, script: Environment) -> None:
        job = launched(people)
        execution = Execution.objects.get()
        assert "Nothing measured yet." in page(people.owner, f"/executions/{execution.pk}/")
        measures(execution, {"loss": [3, 1, 2], HOSTILE: [7]}, refused=2)
        ends(job, 1)
        answer = client_of(people.teammate).get(f"/executions/{execution.pk}/").content.decode()
        assert HOSTILE not in answer
        shown = html.unescape(answer)
        assert 'data-name="metric-0" data-title="loss"' in shown
        assert '<th scope="row" class="wrap break">loss</th>' in shown
        assert "2 values were no finite number" in shown
        assert "<dt>Exit code</dt><dd>0</dd>" in shown
        assert "data-final" in shown

    def test_run_values_come_as_charts_rows_and_file(self, people: People, script: Environment) -> None:
        launched(people)
        execution = Execution.objects.get()
        measures(execution, {"loss": [3, 1]})
        path = f"/executions/{execution.pk}/metrics/"
        chart = values_at(people, path)["charts"]["metric-0"]
        assert (chart["times"], [line["values"] for line in chart["lines"].values()]) == ([0, 1], [[3, 1]])
        assert "charted from:body" in page(people.owner, f"{path}?table=1")
        assert values_at(people, f"{path}?download=1") == {"loss": [{"step": 0, "value": 3}, {"step": 1, "value": 1}]}

    def test_job_runs_show_last_value_of_chosen_metric(self, people: People, script: Environment) -> None:
        job = launched(people)
        measures(Execution.objects.get(), {"loss": [3, 0.25], "accuracy": [0.75]})
        assert '<td class="num run-metric">0.25</td>' in page(people.owner, f"/jobs/{job.pk}/")
        shown = page(people.owner, f"/jobs/{job.pk}/?metric=accuracy")
        assert '<td class="num run-metric">0.75</td>' in shown
        assert "<option selected>accuracy</option>" in shown

    def test_sweep_is_sorted_by_metric_with_missing_ones_last(self, people: People, script: Environment) -> None:
        path = swept(launched(people), [[0.5], [], [0.9, 0.1], [0.7]])
        assert in_order(page(people.owner, f"{path}&metric=loss&order=lowest")) == [4, 2, 5, 3]
        assert in_order(page(people.owner, f"{path}&metric=loss&order=highest")) == [5, 2, 4, 3]
        assert in_order(page(people.owner, f"{path}&metric=none&order=highest")) == [2, 3, 4, 5]
        assert in_order(page(people.owner, f"{path}&metric=loss&order=sideways")) == [5, 4, 3, 2]

    @pytest.mark.parametrize("query", ["run=x", "run=99999999999", "metric=%00", "sweep=٣&order=lowest"])
    def test_a_hostile_query_gets_no_values(self, people: People, script: Environment, query: str) -> None:
        job = launched(people)
        assert values_at(people, f"/jobs/{job.pk}/metrics/?{query}")["charts"] == {}
        assert client_of(people.owner).get(f"/jobs/{job.pk}/?{query}").status_code == 200


@pytest.fixture
def job(people: People, cluster: FakeCluster, runtime: Runtime) -> Execution:
    return make_running(people, cluster, runtime, kind="job")


def offers(job: Execution, person: User) -> bool:
    page = client_of(person).get(f"/executions/{job.pk}/").content.decode()
    return "Open its page" in page


@pytest.mark.django_db(transaction=True)
def test_job_port_page_is_offered_only_to_its_owner(people: People, job: Execution) -> None:
    assert not offers(job, people.owner)
    write_frozen(job, spec={**job.spec, "port": 6006})
    assert [offers(job, person) for person in (people.owner, people.teammate, people.operator, people.admin)] == [
        True, False, False, False,
    ]  # fmt: skip
    write_frozen(job, state=State.FINISHING)
    assert not offers(job, people.owner), "it has ended"
