"""Rows and forms of jobs: what is stored of each state, what is read as it was typed, and that sending twice asks once."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard.jobs.forms.jobs import JobPart, SweepForm
from dashboard.jobs.viewmodels.job_rows import job_ending, job_fragments, run_fragments
from dashboard.jobs.viewmodels.jobs import (
    AttemptLine,
    JobCard,
    JobRecord,
    RunLine,
    ScheduleLine,
    ScheduleTimes,
    SweepLine,
)
from dashboard.notifications.viewmodel import NotificationRecord, notification_fragments
from dashboard.shell.forms.fields import PairsField
from dashboard.shell.fragments import render_fragment
from dashboard.shell.viewmodels.live import Fragment
from grid.executions.launchrequest import JobSettings
from grid.jobs import jobs
from grid.jobs.jobsettings import RunRecord
from grid.models import Job, JobRun, User
from tests.conftest import People, client_of
from tests.jobs.conftest import launch_job
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden

NOW = MOMENT + timedelta(hours=1)
HOSTILE = "<script>alert(1)</script>"
SETTINGS = JobSettings(command="python train.py --rate $rate", retries=2)
JOB = JobRecord(
    id="j1",
    name=f"Train {HOSTILE}",
    owner_id=1,
    owner_username="alice",
    project_id="churn",
    project_name="Customer churn",
    project_roles={1: "owner"},
    environment_name="Script",
    tier_name="Small",
    settings=SETTINGS,
    has_cluster=False,
)
RUNNING = RunLine(
    number=4,
    sweep="",
    parameters={"rate": "0.1"},
    record=RunRecord(
        title="Train", environment="script", environment_name="Script", tier="small", tier_name="Small", job=SETTINGS
    ),
    requested_at=MOMENT,
    requested_by="alice",
    outcome="",
    message="",
    next_attempt_at=None,
    after="",
    attempts=(AttemptLine("e4", 1, "running", "", MOMENT + timedelta(minutes=2), None),),
    cost="$0.05",
    now=NOW,
)
ENDED = replace(
    RUNNING,
    number=3,
    outcome="failed",
    message=f"Exit code 1 {HOSTILE}",
    attempts=(AttemptLine("e3", 2, "failed", "", MOMENT, MOMENT + timedelta(minutes=7), 137),),
)
TRIED_AGAIN = replace(
    RUNNING, number=2, message="Attempt 1 failed.", next_attempt_at=NOW + timedelta(minutes=3), attempts=()
)
SWEEP = SweepLine("1", total=3, ended=2, failed=1, requested_at=MOMENT, requested_by="alice")
MACHINE = {"environment": "script", "tier": "small"}


def looks(fragments: list[Fragment]) -> str:
    return "".join(render_fragment(fragment, now=NOW) for fragment in fragments)


def test_rows_of_jobs_look_as_stored() -> None:
    cards = [
        JobCard(JOB, RUNNING, None, NOW + timedelta(hours=2)),
        JobCard(replace(JOB, id="j2"), ENDED, None, None, 1),
        JobCard(replace(JOB, id="j3"), None, SWEEP),
        JobCard(replace(JOB, id="j4"), None, None),
    ]
    shown = looks(job_fragments(cards, NOW, older="j4"))
    assert HOSTILE not in shown
    assert_golden("jobs", shown)
    assert_golden("jobs-none", looks(job_fragments([], NOW, older="")))


def test_rows_of_runs_look_as_stored() -> None:
    shown = looks(run_fragments("j1", [RUNNING, ENDED, TRIED_AGAIN, SWEEP], NOW, older="?before=2", may_stop=True))
    assert HOSTILE not in shown
    assert_golden("runs", shown)
    assert_golden("runs-none", looks(run_fragments("j1", [], NOW, older="", may_stop=False)))


def test_unchanged_run_makes_the_same_row_later() -> None:
    later = NOW + timedelta(minutes=1)
    first = run_fragments("j1", [RUNNING, ENDED, SWEEP], NOW, older="", may_stop=True)
    again: list[RunLine | SweepLine] = [replace(RUNNING, now=later), replace(ENDED, now=later), SWEEP]
    assert first == run_fragments("j1", again, later, older="", may_stop=True)


def test_the_parts_above_the_runs_look_as_stored() -> None:
    schedule = ScheduleLine(7, "0 6 * * *", "UTC", "skip", "once", NOW, "", ScheduleTimes("daily", ("Thu 06:00",)), ())
    paused = replace(schedule, id=8, next_at=None, paused="Paused by alice.")
    parts = [
        Fragment("sweep-head", "jobs/fragments/sweep_head.html", SWEEP),
        job_ending("j1", SWEEP, open_runs=1, may_end=True),
        job_ending("j1", replace(SWEEP, ended=3), open_runs=0, may_end=True),
        job_ending("j1", None, open_runs=2, may_end=True),
        job_ending("j1", None, open_runs=0, may_end=True),
        job_ending("j1", None, open_runs=0, may_end=False),
        *(Fragment(line.fragment, "jobs/fragments/schedule_next.html", line) for line in (schedule, paused)),
    ]
    assert_golden("job-parts", looks(parts))


def test_notifications_look_as_stored() -> None:
    unread = NotificationRecord(7, "failed", f"Train {HOSTILE}", "Exit code 1.", "/executions/e4/", MOMENT, True)
    read = NotificationRecord(6, "started", "Train", "", "/executions/e4/", MOMENT, False)
    shown = looks(notification_fragments([unread, read, read], 1, page=2, page_length=2))
    assert HOSTILE not in shown
    assert_golden("notifications", shown)
    assert_golden("notifications-none", looks(notification_fragments([], 0, page=1, page_length=2)))


@pytest.fixture
def job(people: People) -> Job:
    return launch_job(people, at_once=1)


def table(text: str) -> str:
    form = SweepForm({"table": text})
    return json.dumps(form.cleaned_data["table"] if form.is_valid() else form.errors["table"])


TABLES = ["rate, depth\r\n0.1, 3\r\n\r\n0.01,5\r\n", "\n\na\tb\n1\t\n\t2", 'a,b\n"1,5", " x "']
QUOTED = ['a\tb\n"say ""hi"""\t1,5', 'a,b\n"two\nlines",2', 'a\n""\n5" pipe']
UNREADABLE = ["", "a,b", "a,b\n1", 'a,b\n"1,2', f"a\n{'x' * 1_000_000}"]


def test_table_is_read_as_spreadsheets_write_or_refused() -> None:
    blocks = [f"> {text[:50]!r}\n{table(text)}" for text in (*TABLES, *QUOTED, *UNREADABLE)]
    assert_golden("words-of-tables", "\n".join(blocks), ending="txt")


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
