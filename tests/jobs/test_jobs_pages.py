"""Jobs and their schedules over HTTP: launched with what was typed, listed, run again, swept, compared, edited, paused, deleted."""

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from dashboard.shell.pages.live import FORBIDDEN
from grid.jobs import schedules
from grid.jobs.jobruns import advance_all
from grid.jobs.schedules import ScheduleSettings
from grid.models import Environment, Execution, Job, JobRun, Schedule, State, User
from grid.runtime import Runtime
from grid.runtime.written import roles_in, runs_of_job
from tests.conftest import People, client_of, page_at
from tests.executions.executing import make_environment, make_project, make_tier
from tests.jobs.conftest import launch_job
from tests.shell.live import connected

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
HOSTILE = "<script>alert(1)</script>"
LAUNCH = {"kind": "job", "project": "churn", "environment": "script", "tier": "small", "token": "t1", "title": "Train"}
SETTINGS = {
    "command": "python train.py\r\n--rate $rate",
    "variables": "SEED=7\nMODE=fast=1",
    "folder": "./training/",
    "timeout": "1h 30m",
    "retries": "2",
    "retry_wait": "10s",
    "at_once": "3",
}
MACHINE = {"environment": "script", "tier": "small"}
TYPED = {"cron": "30 6 * * 1-5", "time_zone": "Europe/Berlin", "overlap": "queue", "missed": "none"}


@pytest.fixture
def script(people: People) -> Environment:
    make_project(people.owner, people.teammate)
    make_tier("small")
    return make_environment("script", name="Script", kind="job", port=None)


def post(user: User, path: str, fields: dict[str, Any]) -> tuple[int, str, str]:
    answer = client_of(user).post(path, fields)
    return answer.status_code, answer.headers.get("Location", ""), html.unescape(answer.content.decode())


def page(user: User, path: str) -> str:
    return html.unescape(page_at(user, path))


def launched(people: People, **fields: str) -> Job:
    status, _, shown = post(people.owner, "/launch/", {**LAUNCH, **fields})
    assert status == 302, re.findall("field-error.*", shown)
    return Job.objects.latest("created_at")


def end(run: JobRun, state: State, message: str = "") -> None:
    Execution.objects.filter(run=run).update(
        state=state,
        message=message,
        reason_values=None,
        started_at=timezone.now(),
        ended_at=timezone.now(),
        settled_at=timezone.now(),
    )
    advance_all({run.job_id}, now=timezone.now())


def leave(job: Job, user: User) -> None:
    job.project.members.remove(user)


def test_a_job_is_launched_with_what_was_typed(people: People, script: Environment) -> None:
    job = launched(people, **SETTINGS)
    assert job.command == "python train.py\n--rate $rate"
    assert job.variables == {"SEED": "7", "MODE": "fast=1"}
    assert (job.folder, job.timeout_seconds) == ("training", 5400)
    assert (job.retries, job.retry_seconds, job.at_once) == (2, 10, 3)
    assert Execution.objects.get().spec["job"]["timeout_seconds"] == 5400


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("variables", "no sign", "“no sign” has no “=”"),
        ("timeout", "soon", "Write a time with its unit"),
        ("retries", "99", "Use 0 to 10 retries."),
        ("after", "99999", "This run has ended or is not of your projects"),
        ("command", "x" * 20_001, "Use at most 20,000 characters"),
    ],
)
def test_invalid_option_is_reported_at_its_field_and_opened(
    people: People, script: Environment, field: str, value: str, sentence: str
) -> None:
    status, _, shown = post(people.owner, "/launch/", {**LAUNCH, field: value})
    assert (status, sentence in shown) == (422, True)
    assert f'id="id_{field}_error"' in shown
    assert ('class="job-options" open' in shown) == (field != "command")
    assert not Job.objects.exists()


def test_dependent_first_run_leads_to_its_job_page(people: People, script: Environment) -> None:
    first = launched(people).runs.get()
    status, where, _ = post(people.owner, "/launch/", {**LAUNCH, "title": "Score", "after": str(first.pk)})
    job = Job.objects.get(title="Score")
    assert (status, where) == (302, f"/jobs/{job.pk}/")
    assert "It starts when run 1 of Train has succeeded." in page(people.owner, where)
    assert post(people.owner, "/launch/", {**LAUNCH, "title": "Score", "after": str(first.pk)})[1] == where


def test_sweep_preview_explains_table_and_starts_nothing(people: People, script: Environment) -> None:
    job = launched(people)
    path = f"/jobs/{job.pk}/sweep/"
    status, _, shown = post(people.owner, path, {"table": "rate\tdepth\n1\t2\n3\t4", "preview": "on"})
    assert (status, "2 runs; the first with rate=1, depth=2." in shown) == (200, True)
    for table, sentence in (("a,a\n1,2", "twice"), ("HOME\nx", "Line 1 of the values: HOME is set by Compute Grid.")):
        status, _, shown = post(people.owner, path, {"table": table})
        assert (status, sentence in shown) == (422, True), table
    assert job.runs.count() == 1


def test_run_again_uses_job_and_launch_again_uses_run(people: People, script: Environment) -> None:
    job = launched(people, command="first")
    execution = Execution.objects.get()
    edited = {**MACHINE, "title": "Trained", "command": "second"}
    assert post(people.owner, f"/jobs/{job.pk}/edit/", edited)[0] == 302
    assert (
        client_of(people.owner).get(f"/launch/?from={execution.pk}").headers["Location"] == f"/jobs/{job.pk}/again/1/"
    )
    assert "first" in page(people.owner, f"/jobs/{job.pk}/again/1/")
    post(people.owner, f"/jobs/{job.pk}/again/1/", {})
    post(people.owner, f"/jobs/{job.pk}/again/0/", {})
    commands = [run.settings.record["job"]["command"] for run in job.runs.order_by("number")]
    assert commands == ["first", "first", "second"]
    assert client_of(people.owner).post(f"/jobs/{job.pk}/again/9/").status_code == 404


def test_another_person_copies_a_job_by_its_execution(people: People, script: Environment) -> None:
    launched(people, command="python train.py", timeout="2h")
    shown = page(people.teammate, f"/launch/?from={Execution.objects.get().pk}")
    assert "\npython train.py</textarea>" in shown and 'value="2 h"' in shown


def test_run_with_other_settings_leaves_job_unchanged_and_comparable(people: People, script: Environment) -> None:
    job = launched(people, command="first", parameters="mode=")
    fields = {**MACHINE, "command": "second", "parameters": f"mode=fast\nrate={HOSTILE}"}
    status, where, _ = post(people.owner, f"/jobs/{job.pk}/run/", fields)
    assert (status, where.startswith("/executions/")) == (302, True)
    job.refresh_from_db()
    assert job.command == "first"
    answer = client_of(people.teammate).get(f"/jobs/{job.pk}/compare/?a=1&b=2").content.decode()
    assert HOSTILE not in answer and html.escape(HOSTILE) in answer
    differs, alike = answer.split("runs-alike")
    assert (
        all(word in differs for word in ("Parameter rate", "Parameter mode", "fast", "first", "second"))
        and "Hardware tier" in alike
    )
    assert "Command" not in alike


def test_attempts_of_run_link_to_each_other(people: People, script: Environment) -> None:
    job = launched(people, retries="1", retry_wait="1s", parameters="")
    first = Execution.objects.get()
    end(job.runs.get(), State.FAILED, "Exit code 3.")
    by_itself = "Its run tries this again by itself"
    assert by_itself in page(people.owner, f"/executions/{first.pk}/")
    Execution.objects.update(ended_at=timezone.now() - timedelta(minutes=1))
    (second,) = advance_all({job.pk}, now=timezone.now())
    shown = page(people.owner, f"/executions/{second}/")
    assert "Attempt 2 of 2" in shown and "failed: Exit code 3." in shown and f"/executions/{first.pk}/" in shown
    assert f"/jobs/{job.pk}/again/1/" in shown
    assert f"/jobs/{job.pk}/again/1/" not in page(people.teammate, f"/executions/{second}/")
    Execution.objects.filter(pk=second).update(state=State.FAILED)
    assert by_itself not in page(people.owner, f"/executions/{second}/")


def test_runs_are_stopped_before_job_is_deleted(people: People, script: Environment) -> None:
    job = launched(people, at_once="1")
    post(people.owner, f"/jobs/{job.pk}/again/0/", {})
    assert post(people.owner, f"/jobs/{job.pk}/delete/", {})[0] == 422
    post(people.owner, f"/jobs/{job.pk}/again/0/", {})
    stop = f"/jobs/{job.pk}/stop/?number=3"
    assert stop in page(people.owner, f"/jobs/{job.pk}/") and stop not in page(people.teammate, f"/jobs/{job.pk}/")
    assert "Stop 1 run" in page(people.owner, stop)
    post(people.owner, f"/jobs/{job.pk}/stop/", {"number": "3"})
    assert [run.number for run in job.runs.filter(outcome="stopped")] == [3]
    assert "Stop 2 runs" in page(people.owner, f"/jobs/{job.pk}/stop/")
    assert post(people.owner, f"/jobs/{job.pk}/stop/", {})[0] == 302
    assert set(job.runs.values_list("outcome", flat=True)) == {"stopped"}
    for _ in range(2):
        assert post(people.owner, f"/jobs/{job.pk}/delete/", {})[1] == "/jobs/"
    assert client_of(people.owner).get(f"/jobs/{job.pk}/").status_code == 404
    assert "You have no jobs." in page(people.owner, "/jobs/")


def test_runs_of_several_jobs_are_stopped_after_single_question(people: People, script: Environment) -> None:
    busy, other, idle = (
        launched(people, token=token, title=title)
        for token, title in zip("abc", ("Busy <b>", "Other", "Idle"), strict=True)
    )
    post(people.owner, f"/jobs/{busy.pk}/again/0/", {})
    post(people.owner, f"/jobs/{idle.pk}/stop/", {})
    theirs = Job.objects.create(
        id="theirs",
        owner=people.teammate,
        project=busy.project,
        environment=busy.environment,
        tier=busy.tier,
        title="Secret",
    )
    ids = {"id": [busy.pk, other.pk, idle.pk, theirs.pk, "' OR 1=1 --", "\x00"]}
    asked = client_of(people.owner).get("/jobs/stop/", ids).text
    assert "Stop the runs of 2 jobs?" in asked and "Busy &lt;b&gt;" in asked and "Secret" not in asked
    assert "2 runs not ended" in asked and "None of its runs is left to stop." in asked
    for stranger in (people.teammate, people.operator, people.stranger):
        post(stranger, "/jobs/stop/", {"id": [busy.pk, other.pk]})
    assert JobRun.objects.filter(outcome="").count() == 3
    answer = client_of(people.owner).post("/jobs/stop/", ids, follow=True)
    assert answer.redirect_chain == [("/jobs/", 302)]
    assert "Stop of 3 runs of 2 jobs requested." in answer.text
    assert not JobRun.objects.filter(outcome="").exists()
    assert "Nothing was left to stop." in client_of(people.owner).post("/jobs/stop/", ids, follow=True).text


async def test_open_list_and_job_page_show_the_run_ending(
    runtime: Runtime, people: People, script: Environment
) -> None:
    job = await sync_to_async(launched)(people)
    run = await sync_to_async(job.runs.get)()
    async with (
        connected("/live/jobs/", people.owner) as jobs_list,
        connected(f"/live/job/?id={job.pk}", people.teammate) as one_job,
    ):
        await jobs_list.message_about("Train")
        assert "Stop" not in await one_job.message_about("run-1"), "it is somebody else's"
        await sync_to_async(end)(run, State.FAILED, HOSTILE)
        runtime.hub.publish(runs_of_job(job.pk))
        for socket, row in ((jobs_list, f"job-{job.pk}"), (one_job, "run-1")):
            message = await socket.message_about(f"[id=&quot;{row}&quot;]")
            assert "Failed" in message and "&lt;script&gt;" in message and "<script>" not in message


async def test_former_member_loses_an_open_job_page(runtime: Runtime, people: People, script: Environment) -> None:
    job = await sync_to_async(launched)(people)
    async with connected(f"/live/job/?id={job.pk}", people.teammate) as socket:
        await socket.message_about("run-1")
        await sync_to_async(leave)(job, people.teammate)
        runtime.hub.publish(roles_in(job.project_id))
        assert await socket.close_code() == FORBIDDEN


@pytest.fixture
def job(people: People) -> Job:
    return launch_job(people)


def post_form(people: People, path: str, fields: dict[str, Any] | None = None) -> tuple[int, str]:
    answer = client_of(people.owner).post(path, fields or {})
    return answer.status_code, html.unescape(answer.content.decode())


def page_of(people: People, path: str, *, user: str = "owner") -> str:
    return page_at(getattr(people, user), path)


def saved(job: Job, **changes: str) -> Schedule:
    return schedules.create(job.pk, ScheduleSettings(**(TYPED | changes)), now=timezone.now())


def test_saved_schedule_shows_its_words_and_next_five_times(people: People, job: Job) -> None:
    status, _ = post_form(people, f"/jobs/{job.pk}/schedules/new/", TYPED)
    schedule = Schedule.objects.get()
    assert (status, {name: getattr(schedule, name) for name in TYPED}) == (302, TYPED)
    shown = page_of(people, f"/jobs/{job.pk}/")
    assert "Monday to Friday at 06:30" in shown and "Queue it" in shown and "Do not run" in shown
    assert len(re.findall(r"<li>\w{3} \d+ \w+ \d{4} 06:30 CES?T</li>", shown)) == 5
    assert "schedules" in page_of(people, "/jobs/") and "data-until" in page_of(people, "/jobs/")


def test_team_mates_see_schedules_without_buttons(people: People, job: Job) -> None:
    saved(job)
    shown = page_of(people, f"/jobs/{job.pk}/", user="teammate")
    assert "Monday to Friday at 06:30" in shown
    assert not any(word in shown for word in ("New schedule", "Pause", "schedules/"))


def test_checking_says_what_is_typed_and_saves_nothing(people: People, job: Job) -> None:
    for path, extra in (("check", {}), ("new", {"check": "on"})):
        status, shown = post_form(people, f"/jobs/{job.pk}/schedules/{path}/", TYPED | extra)
        assert status == 200 and "Monday to Friday at 06:30" in shown and shown.count("06:30 CE") == 5
        status, shown = post_form(people, f"/jobs/{job.pk}/schedules/{path}/", TYPED | extra | {"cron": "0 0 30 2 *"})
        assert status == 200 and "No such date comes within five years" in shown
    assert not Schedule.objects.exists()


@pytest.mark.parametrize(("field", "typed"), [("cron", HOSTILE), ("time_zone", HOSTILE), ("overlap", "x")])
def test_invalid_schedule_is_reported_at_its_field_without_markup(
    people: People, job: Job, field: str, typed: str
) -> None:
    answer = client_of(people.owner).post(f"/jobs/{job.pk}/schedules/new/", TYPED | {field: typed})
    shown = answer.content.decode()
    assert answer.status_code == 422 and f'id="id_{field}_error"' in shown and HOSTILE not in shown
    assert not Schedule.objects.exists()


def test_a_schedule_is_edited_paused_resumed_and_deleted(people: People, job: Job) -> None:
    own = f"/jobs/{job.pk}/schedules/{saved(job).pk}/"
    assert 'value="30 6 * * 1-5"' in page_of(people, own)
    assert post_form(people, own, TYPED | {"cron": "@hourly"})[0] == 302
    assert "Every hour, on the hour" in page_of(people, f"/jobs/{job.pk}/")
    for _ in range(2):
        assert post_form(people, f"{own}pause/")[0] == 302
    assert f"Paused by {people.owner.get_username()}." in page_of(people, f"/jobs/{job.pk}/")
    assert "Paused" in page_of(people, "/jobs/")
    assert post_form(people, f"{own}pause/", {"resume": "on"})[0] == 302
    assert Schedule.objects.get().next_at is not None
    assert "Every hour, on the hour" in page_of(people, f"{own}delete/")
    for _ in range(2):
        assert post_form(people, f"{own}delete/")[0] == 302
    assert not Schedule.objects.exists()
    assert client_of(people.owner).get(own).status_code == 404


def test_the_schedule_of_another_job_is_not_found(people: People, job: Job) -> None:
    schedule = saved(job)
    other = Job.objects.create(
        id="other", owner=people.owner, project=job.project, environment=job.environment, tier=job.tier
    )
    for number in (schedule.pk, 10**30):
        for path in ("", "pause/"):
            assert post_form(people, f"/jobs/{other.pk}/schedules/{number}/{path}", TYPED)[0] == 404
        post_form(people, f"/jobs/{other.pk}/schedules/{number}/delete/")
    assert Schedule.objects.get().paused_at is None
