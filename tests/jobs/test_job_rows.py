"""Rows of jobs, of their runs and of notifications look as stored, in each state; and an unchanged run makes an equal row."""

from dataclasses import replace
from datetime import timedelta

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
from dashboard.shell.fragments import render_fragment
from dashboard.shell.viewmodels.live import Fragment
from grid.executions.launchrequest import JobSettings
from grid.jobs.jobsettings import RunRecord
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
