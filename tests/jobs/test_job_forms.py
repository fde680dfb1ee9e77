"""The forms of jobs: what is read from tables and lines as it was typed, what is offered to wait for, and that sending twice asks once."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard.jobs.forms.jobs import JobPart, SweepForm
from dashboard.shell.forms.fields import PairsField
from grid.jobs import jobs
from grid.models import Job, JobRun, User
from tests.conftest import People
from tests.jobs.conftest import launch_job
from tests.shell.browsing import client_of

MACHINE = {"environment": "script", "tier": "small"}


@pytest.fixture
def job(people: People) -> Job:
    return launch_job(people, at_once=1)


def table(text: str) -> list[dict[str, str]] | list[str]:
    form = SweepForm({"table": text})
    if form.is_valid():
        return form.cleaned_data["table"]  # type: ignore[no-any-return]
    return [str(error) for error in form.errors["table"]]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("rate, depth\r\n0.1, 3\r\n\r\n0.01,5\r\n", [{"rate": "0.1", "depth": "3"}, {"rate": "0.01", "depth": "5"}]),
        ("\n\na\tb\n1\t\n\t2", [{"a": "1", "b": ""}, {"a": "", "b": "2"}]),
        ('a,b\n"1,5", " x "', [{"a": "1,5", "b": " x "}]),
        ('a\tb\n"say ""hi"""\t1,5', [{"a": 'say "hi"', "b": "1,5"}]),
        ('a,b\n"two\nlines",2', [{"a": "two\nlines", "b": "2"}]),
        ('a\n""\n5" pipe', [{"a": ""}, {"a": '5" pipe'}]),
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


def offered(user: User) -> list[str]:
    choices: Any = JobPart(None, user=user, initial={}).fields["after"]
    return [str(label) for value, label in choices.choices if value]


@pytest.mark.django_db
def test_only_open_runs_of_own_projects_are_offered(people: People, job: Job) -> None:
    jobs.start(job.pk, by="alice", now=timezone.now())
    train = [f"Run {number} of Train (Customer churn)" for number in (2, 1)]
    assert (offered(people.owner), offered(people.stranger)) == (train, [])
    ended = job.runs.get(number=2)
    assert not JobPart({"after": str(ended.pk)}, user=people.stranger, initial={}).is_valid()
    JobRun.objects.filter(pk=ended.pk).update(outcome="succeeded", ended_at=timezone.now())
    assert offered(people.owner) == train[1:]
    assert not JobPart({"after": str(ended.pk)}, user=people.owner, initial={}).is_valid()


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
def test_run_again_repeats_later_but_ignores_double_click(people: People, job: Job) -> None:
    token = token_on(people.owner, f"/jobs/{job.pk}/")
    for asked in range(1, 4):
        for _ in range(2):
            client_of(people.owner).post(f"/jobs/{job.pk}/again/1/", {"token": token})
        assert job.runs.count() == 1 + asked
        JobRun.objects.update(requested_at=timezone.now() - timedelta(seconds=11))
