"""The forms of jobs: what is read from tables and lines as it was typed, what is offered to wait for, and that sending twice asks once."""

import re
import time
from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.jobs import job_records
from dashboard.jobs.forms.jobs import MOST_OFFERED, DurationField, JobPart, SweepForm
from dashboard.jobs.job_records import jobs_of, read_sweep, runs_of
from dashboard.shell.forms.fields import PairsField
from grid.jobs import jobs
from grid.models import Execution, Job, JobRun, User
from tests.conftest import People
from tests.jobs.conftest import launch_job
from tests.shell.browsing import client_of

MACHINE = {"environment": "script", "tier": "small"}


@pytest.fixture
def job(people: People) -> Job:
    return launch_job(people, at_once=1)


def sweep(job: Job, count: int) -> list[JobRun]:
    rows = [{"lr": str(number)} for number in range(count)]
    return jobs.start_sweep(job.pk, rows, by="alice", now=timezone.now())


def table(text: str) -> list[dict[str, str]] | list[str]:
    form = SweepForm({"table": text})
    if form.is_valid():
        return form.cleaned_data["table"]  # type: ignore[no-any-return]
    return [str(error) for error in form.errors["table"]]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("rate, depth\r\n0.1, 3\r\n\r\n0.01,5\r\n", [{"rate": "0.1", "depth": "3"}, {"rate": "0.01", "depth": "5"}]),
        ("a\tb\n1\t\n\t2", [{"a": "1", "b": ""}, {"a": "", "b": "2"}]),
        ("a,b\n1,\n,2", [{"a": "1", "b": ""}, {"a": "", "b": "2"}]),
        ('a,b\n"1,5", " x "', [{"a": "1,5", "b": " x "}]),
        ('a\tb\n"say ""hi"""\t1,5', [{"a": 'say "hi"', "b": "1,5"}]),
        ('a,b\n"two\nlines",2', [{"a": "two\nlines", "b": "2"}]),
        ('a\n""\n5" pipe', [{"a": ""}, {"a": '5" pipe'}]),
        ("\n\na\tb\n1\t2", [{"a": "1", "b": "2"}]),
    ],
)
def test_a_table_is_read_as_spreadsheets_write_it(text: str, rows: list[dict[str, str]]) -> None:
    assert table(text) == rows


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Write the names in the first line"),
        ("a,b", "Write the names in the first line"),
        ("a,b\n1", "Line 1 has 1 value, but the first line has 2 names."),
        ('a,b\n"1,2', "Close each quote"),
        (f"a\n{'x' * 1_000_000}", "Use at most 1,000,000 characters"),
    ],
)
def test_unreadable_table_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    assert sentence in str(table(text))


def test_values_of_variables_are_kept_as_they_were_typed() -> None:
    field = PairsField(kind="variable", required=False)
    assert field.clean("A= x \r\n  B =y=z\n\nC=\t\n") == {"A": " x ", "B": "y=z", "C": "\t"}
    assert PairsField(kind="label", required=False).clean("team = vision ") == {"team": "vision"}


def test_thousands_of_wrong_lines_are_not_all_told() -> None:
    with pytest.raises(ValidationError) as refused:
        PairsField(kind="variable").clean("wrong\n" * 1000)
    assert len(refused.value.messages) == 5


def test_long_duration_text_is_refused_at_once() -> None:
    began = time.perf_counter()
    with pytest.raises(ValidationError, match="Use at most 40 characters"):
        DurationField().clean("1s" * 1_000_000)
    assert time.perf_counter() - began < 0.5


def offered(user: User) -> list[str]:
    return [str(label) for value, label in JobPart(None, user=user, initial={}).fields["after"].choices if value]  # type: ignore[attr-defined]


@pytest.mark.django_db
def test_offered_predecessors_are_few_with_single_sweep_run(people: People, job: Job) -> None:
    sweep(job, 30)
    latest = jobs.start(job.pk, by="alice", now=timezone.now())
    assert offered(people.owner) == [
        f"Run {latest.number} of Train (Customer churn)",
        "Run 31 of Train, the last of a sweep (Customer churn)",
        "Run 1 of Train (Customer churn)",
    ]
    for _ in range(MOST_OFFERED):
        jobs.start(job.pk, by="alice", now=timezone.now())
    assert len(offered(people.owner)) == MOST_OFFERED
    form = JobPart({"after": str(job.runs.get(number=1).pk)}, user=people.owner, initial={})
    assert form.is_valid(), "one that is not offered any more can still be chosen"


@pytest.mark.django_db
def test_sweep_without_its_first_runs_is_listed_once(job: Job) -> None:
    sweep(job, 4)
    JobRun.objects.filter(number__in=(1, 2, 4)).update(outcome="stopped", ended_at=timezone.now())
    Execution.objects.all().delete()
    JobRun.objects.filter(number__in=(1, 2, 4)).delete()
    (line,) = runs_of(job.pk, sweep="", before=0, now=timezone.now()).lines
    assert line == read_sweep(job.pk, "2")
    assert [run.number for run in runs_of(job.pk, sweep="2", before=0, now=timezone.now()).lines] == [5, 3]  # type: ignore[union-attr]


@pytest.mark.django_db
def test_sweeps_of_listed_jobs_are_counted_in_one_query(people: People, job: Job) -> None:
    sweep(job, 3)
    with CaptureQueriesContext(connection) as of_one:
        jobs_of(people.owner.pk, "", timezone.now())
    for title, count in (("Score", 2), ("Sum", 4)):
        sweep(launch_job(people, title), count)
    with CaptureQueriesContext(connection) as of_three:
        cards = jobs_of(people.owner.pk, "", timezone.now()).cards
    # All are called "2", as each job's second run is the first of its sweep.
    assert {card.job.name: card.sweep and card.sweep.total for card in cards} == {"Train": 3, "Score": 2, "Sum": 4}
    assert len(of_three) == len(of_one)


@pytest.mark.django_db
def test_job_list_is_shown_while_a_sweep_is_deleted(people: People, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep(job, 2)

    def delete_and_read(jobs: Iterable[str]) -> dict[str, tuple[datetime | None, int]]:
        JobRun.objects.exclude(sweep="").delete()
        return {}

    monkeypatch.setattr(job_records, "next_runs", delete_and_read)
    (card,) = jobs_of(people.owner.pk, "", timezone.now()).cards
    assert card.sweep is None and card.run is not None


def token_on(user: User, path: str) -> str:
    match = re.search(r'name="token" value="([^"]+)"', client_of(user).get(path).content.decode())
    assert match is not None, path
    return match[1]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize(
    ("shown", "sent", "fields"),
    [
        ("", "again/0/", {}),
        ("again/1/", "again/1/", {}),
        ("run/", "run/", {**MACHINE, "command": "second", "parameters": "rate=1"}),
        ("sweep/", "sweep/", {"table": "rate\n1\n2"}),
    ],
)
def test_a_form_that_is_sent_twice_asks_once(
    people: People, job: Job, shown: str, sent: str, fields: dict[str, str]
) -> None:
    count = 2 if "table" in fields else 1
    fields = {**fields, "token": token_on(people.owner, f"/jobs/{job.pk}/{shown}")}
    first = client_of(people.owner).post(f"/jobs/{job.pk}/{sent}", fields)
    second = client_of(people.owner).post(f"/jobs/{job.pk}/{sent}", fields, follow=True)
    assert first.status_code == 302 and second.redirect_chain == [(first.headers["Location"], 302)]
    assert "This form was sent twice; it was run once." in second.content.decode()
    assert job.runs.count() == 1 + count
    fields["token"] = token_on(people.owner, f"/jobs/{job.pk}/{shown}")
    client_of(people.owner).post(f"/jobs/{job.pk}/{sent}", fields)
    assert job.runs.count() == 1 + 2 * count, "a new showing of the form asks anew"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("number", [0, 1])
def test_run_again_repeats_later_but_ignores_double_click(people: People, job: Job, number: int) -> None:
    token = token_on(people.owner, f"/jobs/{job.pk}/")
    for asked in range(1, 4):
        for _ in range(2):
            client_of(people.owner).post(f"/jobs/{job.pk}/again/{number}/", {"token": token})
        assert job.runs.count() == 1 + asked
        JobRun.objects.update(requested_at=timezone.now() - timedelta(seconds=11))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("runtime")
def test_job_list_token_allows_a_new_choice(people: People, job: Job) -> None:
    token = token_on(people.owner, "/jobs/")
    for rows in ("rate\n1", "rate\n1", "rate\n2"):
        client_of(people.owner).post(f"/jobs/{job.pk}/sweep/", {"table": rows, "token": token})
    assert job.runs.count() == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("runtime")
def test_a_preview_keeps_the_token(people: People, job: Job) -> None:
    fields = {"table": "rate\n1", "token": "abc", "preview": "on"}
    assert 'value="abc"' in client_of(people.owner).post(f"/jobs/{job.pk}/sweep/", fields).content.decode()
