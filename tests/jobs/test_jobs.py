"""Jobs: created with their first run, swept, retried by the controller, stopped, edited, deleted; run again with what they ran with."""

import base64
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps

from grid.configuration import EXECUTION_RETENTION, GLOBAL_QUEUE_LIMIT, MAXIMUM_EXECUTIONS_PER_USER
from grid.controller import retention
from grid.core.errors import Rejected
from grid.executions.launchrequest import JobSettings
from grid.executions.manifests import build
from grid.executions.spec import parse_spec
from grid.jobs import jobs
from grid.jobs.jobrows import attempt_id, make_runs, record_of
from grid.jobs.jobruns import advance, advance_all, all_jobs_due, jobs_due, jobs_told
from grid.jobs.jobs import environment_by_digest
from grid.jobs.jobsettings import problems_of, wrong_variables
from grid.kube.resources import PODS, SECRETS
from grid.models import Execution, HardwareTier, Job, JobRun, State
from grid.queue import quota, snapshot
from tests.controller.world import Fault, Killed, World, in_world
from tests.support.builders import NAMESPACE
from tests.support.golden import assert_golden
from tests.support.shop import NOW, Shop

LATER = NOW + timedelta(hours=2)
DIGEST = "sha256:" + "a" * 64


def launched(shop: Shop, **settings: Any) -> Job:
    """A job whose first run is queued."""
    shop.launch(kind="job", environment=shop.job, title="Train", job=JobSettings(**settings))
    return Job.objects.get()


def ended(run: JobRun, state: State = State.FAILED, **columns: Any) -> None:
    """Settle the run's latest attempt."""
    newest = run.attempts.order_by("-attempt")[0]
    at = {"ended_at": NOW, "settled_at": NOW}
    Execution.objects.filter(pk=newest.pk).update(
        state=state, message="Exit code 1.", reason_values=None, **at, **columns
    )


def start(job: Job, **changes: Any) -> JobRun:
    asked: dict[str, Any] = {"by": "alice", "now": NOW}
    return jobs.start(job.pk, **(asked | changes))


def fresh(run: JobRun) -> JobRun:
    run.refresh_from_db()
    return run


def codes(refused: pytest.ExceptionInfo[Rejected]) -> list[tuple[str, str]]:
    return [(problem.path, problem.code) for problem in refused.value.problems]


def test_launched_job_has_its_first_run_and_attempt(shop: Shop) -> None:
    job = launched(shop, command="python train.py", retries=2)
    run, execution = job.runs.get(), Execution.objects.get()
    assert (execution.pk, execution.run, execution.attempt) == (job.pk, run, 1)
    assert (job.title, job.command, job.retries, job.runs_made) == ("Train", "python train.py", 2, 1)
    assert (run.number, run.outcome, run.requested_by, run.settings.record["tier_name"]) == (1, "", "alice", "Small")
    spec = parse_spec(execution).job
    assert spec is not None and (spec.job, spec.run, spec.attempt, spec.command) == (job.pk, 1, 1, "python train.py")


def test_workspace_has_no_run_and_refused_job_no_row(shop: Shop) -> None:
    shop.launch(job=JobSettings(command="ignored"))
    with pytest.raises(Rejected) as refused:
        launched(shop, folder="../secrets", retries=11)
    assert codes(refused) == [("folder", "folder"), ("retries", "retries")]
    assert not JobRun.objects.exists() and not Job.objects.exists()


def test_pod_runs_command_in_folder_with_variables_as_typed(shop: Shop) -> None:
    hostile = "'; rm -rf / #$(HOME)`id`\n$$"
    job = launched(
        shop, command="echo $$ $(date) $lr", variables={"A": "$(POD_IP)"}, folder="training", timeout_seconds=7200
    )
    run = start(job, parameters={"lr": hostile, "A": "mine", "date": "pasted"})
    made = {
        item.resource: item.body
        for item in build(parse_spec(run.attempts.get()), namespace=NAMESPACE, token="t", anchor_uid="u")
    }
    pod = made[PODS]["spec"]
    (container,) = pod["containers"]
    assert container["command"] == ["/bin/sh", "-c", "echo $$$$ $$(date) $$lr"]
    assert (container["workingDir"], pod["activeDeadlineSeconds"]) == ("/mnt/project/training", 7200)
    variables = {item["name"]: item for item in container["env"]}
    for name, value in (("lr", hostile), ("A", "mine")):
        key = variables[name]["valueFrom"]["secretKeyRef"]["key"]
        assert base64.b64decode(made[SECRETS]["data"][key]).decode() == value


VARIABLES = [
    {"1st": "x"},
    {"a\nb": "x"},
    {"": "x"},
    {"HOME": "/tmp"},
    {"GRID_ANYTHING": "x"},
    {"a": "x\0y"},
    {"a": "\ud800"},
]
MANY = [{f"a{number}": "é" * 10_000 for number in range(11)}, {f"a{number}": "" for number in range(101)}]
PROGRAMS: list[dict[str, Any]] = [
    {"command": "x" * 20_001},
    {"command": "a\0b"},
    {"folder": "/etc"},
    {"folder": "a/../../b"},
]
TIMES: list[dict[str, Any]] = [{"timeout_seconds": 59}, {"timeout_seconds": 31 * 86400}]
NUMBERS: list[dict[str, Any]] = [{"retry_seconds": 3601}, {"page_port": 80}, {"retries": -1}, {"at_once": 0}]


def test_unusable_variables_and_settings_are_refused_as_stored() -> None:
    problems = [(str(variables), wrong_variables(variables)) for variables in (*VARIABLES, *MANY)]
    chosen = (*PROGRAMS, *TIMES, *NUMBERS)
    problems += [(str(settings), problems_of(JobSettings(**settings))) for settings in chosen]
    blocks = [f"> {given[:60]}\n{wrong.path} {wrong.code}: {wrong.message}" for given, (wrong,) in problems]
    assert_golden("words-of-job-settings", "\n".join(blocks), ending="txt")


def test_failed_run_is_retried_after_wait_with_frozen_settings(shop: Shop) -> None:
    job = launched(shop, command="first", retries=1)
    run = job.runs.get()
    ended(run)
    jobs.edit(
        job.pk, title="Train", environment=shop.job, tier=shop.tier, settings=JobSettings(command="second"), now=NOW
    )
    assert "The next attempt follows 30 s later." in fresh(run).words
    assert run.next_attempt_at == NOW + timedelta(seconds=30)
    assert not jobs_due(NOW + timedelta(seconds=29))
    assert jobs_due(NOW + timedelta(seconds=30)) == {job.pk: job.owner_id}
    (id,) = advance_all({job.pk}, now=NOW + timedelta(seconds=30))
    second = Execution.objects.get(pk=id)
    assert (second.run, second.attempt, id) == (run, 2, attempt_id(job.pk, 1, 2))
    assert parse_spec(second).job.command == "first"  # type: ignore[union-attr]
    assert advance_all({job.pk}, now=NOW + timedelta(seconds=60)) == []
    ended(run)
    advance(job.pk, now=LATER)
    assert (fresh(run).outcome, run.words) == ("failed", "Attempt 2 of 2 failed: Exit code 1.")
    assert run.ended_at == LATER


def test_sweep_stores_all_runs_and_launches_up_to_parallelism(shop: Shop) -> None:
    job = launched(shop, at_once=2)
    ended(job.runs.get(), State.SUCCEEDED)
    runs = jobs.start_sweep(job.pk, [{"lr": str(number)} for number in range(5)], by="alice", now=NOW)
    assert [run.number for run in runs] == [2, 3, 4, 5, 6]
    assert {run.sweep for run in runs} == {"2"}
    assert Execution.objects.unsettled().filter(run__sweep=runs[0].sweep).count() == 2
    assert "at most 2 may be at once" in fresh(runs[2]).words
    ended(runs[1], State.SUCCEEDED)
    assert jobs_told(runs[1].attempts.values_list("pk", flat=True)) == {job.pk: job.owner_id}
    advance_all({job.pk}, now=NOW)
    assert runs[2].attempts.count() == 1 and not runs[3].attempts.exists()
    spec = parse_spec(runs[2].attempts.get()).job
    assert spec is not None and spec.parameters == {"lr": "2"}


def test_sweep_runs_are_admitted_in_order_of_numbers(shop: Shop) -> None:
    """Admission, positions and the queue's rows have one order: ids are as good as random."""
    job = launched(shop)
    ended(job.runs.get(), State.SUCCEEDED)
    jobs.start_sweep(job.pk, [{"lr": str(number)} for number in range(12)], by="alice", now=NOW)
    numbers = dict(Execution.objects.queued().values_list("pk", "run__number"))
    waiting = snapshot.peek(Execution.objects.all()[0].data_plane_id, now=NOW).snapshot
    expected = list(range(2, 14))
    assert [numbers[id] for id in quota.admit(waiting).admitted] == expected
    assert [numbers[id] for id in quota.order(waiting)] == expected
    assert [numbers[id] for id in sorted(numbers, reverse=True)] != expected != [numbers[id] for id in sorted(numbers)]


def test_a_wrong_row_refuses_the_whole_sweep(shop: Shop) -> None:
    job = launched(shop)
    wrong: list[list[dict[str, str]]] = [[], [{}] * 1001, [{"lr": "1"}, {"HOME": "x"}]]
    for rows in wrong:
        with pytest.raises(Rejected):
            jobs.start_sweep(job.pk, rows, by="alice", now=NOW)
    assert job.runs.count() == 1


def test_a_run_starts_after_another_has_succeeded(shop: Shop) -> None:
    job = launched(shop)
    first = job.runs.get()
    second = start(job, after=first)
    assert second.words == "It starts when run 1 of Train has succeeded."
    ended(first, State.SUCCEEDED)
    assert advance_all({job.pk}, now=NOW) == [attempt_id(job.pk, 2, 1)]


def test_wait_of_a_former_release_is_shown_until_its_next_step(shop: Shop) -> None:
    job = launched(shop)
    second = start(job, after=job.runs.get())
    JobRun.objects.filter(pk=second.pk).update(reason="", reason_values={}, message="It waits.")
    import_module("grid.migrations.0042_wait_reasons").keep_texts(apps, None)
    assert fresh(second).words == "It waits."
    advance_all({job.pk}, now=NOW)
    assert (fresh(second).words, second.message) == ("It starts when run 1 of Train has succeeded.", "")


def test_a_run_of_another_project_is_not_waited_for(shop: Shop) -> None:
    job = launched(shop)
    other = type(shop.project).objects.start(id="other", name="Other", owner=shop.people.owner)
    request = shop.request(kind="job", environment=shop.job, project=other)
    with pytest.raises(Rejected) as refused:
        jobs.create(request, after=job.runs.get(), now=NOW, job_id="second")
    assert codes(refused) == [("after", "after")]


def test_full_queue_is_waited_for_but_archived_tier_fails(shop: Shop, configure: Any) -> None:
    configure(GLOBAL_QUEUE_LIMIT, 1)
    configure(MAXIMUM_EXECUTIONS_PER_USER, 1)
    job = launched(shop)
    start(job, now=NOW + timedelta(seconds=1))
    run = start(job, now=NOW + timedelta(seconds=2))
    assert run.words.endswith("It is tried again by itself.") and run.outcome == ""
    assert run.next_attempt_at == NOW + timedelta(seconds=32)
    HardwareTier.objects.update(is_archived=True)
    advance_all(jobs_due(LATER), now=LATER)
    assert (fresh(run).outcome, run.words) == (
        "not_started",
        "This hardware tier is no longer available; choose another.",
    )


def test_an_owner_who_left_starts_nothing_more(shop: Shop) -> None:
    job = launched(shop, retries=1)
    run = job.runs.get()
    ended(run)
    shop.project.memberships.filter(user=shop.people.owner).update(role="viewer")
    advance_all({job.pk}, now=LATER)
    assert fresh(run).outcome == "failed"
    assert "It was not tried again: Choose a project to which you contribute" in run.words


def test_stopping_all_ends_waiting_runs_and_stops_running_ones(shop: Shop) -> None:
    job = launched(shop, at_once=1, retries=2)
    first = job.runs.get()
    Execution.objects.update(state=State.RUNNING)
    waiting = start(job)
    assert jobs.stop_runs(job.pk, by="bob", now=LATER) == 2
    assert (fresh(waiting).outcome, waiting.words) == ("stopped", "Stopped by bob before it started.")
    assert fresh(first).outcome == "" and Execution.objects.get().stop_requested_by == "bob"
    ended(first, State.STOPPED)
    advance_all({job.pk}, now=LATER)
    assert fresh(first).outcome == "stopped"


def test_upgrade_quotes_the_failure_that_a_run_waits_after(shop: Shop) -> None:
    job = launched(shop, retries=2)
    run = job.runs.get()
    values = {"number": 1, "most": 3, "message": "Exit code 1.", "seconds": 30}
    JobRun.objects.filter(pk=run.pk).update(reason="attempt_failed", reason_values=values)
    import_module("grid.migrations.0043_job_reasons").quote_failures(apps, None)
    assert fresh(run).words == "Attempt 1 of 3 failed: Exit code 1. The next attempt follows 30 s later."


def test_stopping_a_run_between_its_attempts_ends_it(shop: Shop) -> None:
    job = launched(shop, retries=2)
    run = job.runs.get()
    ended(run)
    advance_all({job.pk}, now=NOW)
    assert jobs.stop_runs(job.pk, by="alice", now=NOW, number=1) == 1
    assert fresh(run).words == "Stopped by alice before its next attempt."
    assert advance_all(all_jobs_due(LATER), now=LATER) == []


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 9))
def test_killed_controller_launches_the_second_attempt_once(shop: Shop, at: int, after: bool) -> None:
    job = launched(shop, retries=1, retry_seconds=1)
    run = job.runs.get()
    ended(run)

    @in_world
    async def killed() -> None:
        world = World(now=NOW + timedelta(seconds=5))
        controller = world.controller(Fault(at=at, after=after))
        for _ in range(3):
            try:
                await world.step(controller)
            except Killed:
                controller = world.controller()
            await world.step(world.controller())  # a second one that believes to lead

    killed()
    assert list(run.attempts.order_by("attempt").values_list("attempt", flat=True)) == [1, 2]
    assert fresh(run).outcome == ""


def test_run_of_interrupted_process_is_resumed_by_next_poll(shop: Shop) -> None:
    job = launched(shop)
    (run,) = make_runs(job, record_of(job), [{}], by="alice", now=NOW)
    assert jobs_due(NOW) == all_jobs_due(NOW) == {job.pk: job.owner_id}
    assert advance_all({job.pk}, now=NOW) == [attempt_id(job.pk, 2, 1)]
    assert fresh(run).attempts.count() == 1


def test_runs_are_deleted_after_executions_unless_waited_for(shop: Shop, configure: Any) -> None:
    configure(EXECUTION_RETENTION, 1)
    job = launched(shop)
    first = job.runs.get()
    waiting = start(job, after=first)
    ended(first, State.SUCCEEDED)
    JobRun.objects.filter(pk=first.pk).update(outcome="succeeded", ended_at=NOW)
    later = NOW + timedelta(days=2)
    assert retention.drop_runs(later, 100) == 0, "its attempt is there"
    Execution.objects.all().delete()
    assert retention.drop_runs(later, 100) == 0, "another waits for it"
    JobRun.objects.filter(pk=waiting.pk).update(outcome="stopped", ended_at=NOW)
    assert retention.drop_runs(later, 100) == 2
    assert Job.objects.get().runs_made == 2


def change_everything(shop: Shop, job: Job) -> None:
    """An admin edits the environment and the tier, and the owner the job."""
    shop.job.image, shop.job.command, shop.job.variables = "python:4", ["other"], {"NEW": "1"}
    shop.job.name = "Other"
    shop.job.save()
    settings = JobSettings(command="second", variables={"SEED": "2"}, folder="other", retries=3)
    jobs.edit(job.pk, title="Renamed", environment=shop.job, tier=shop.tier, settings=settings, now=NOW)


def ran(run: JobRun, image_id: str = "") -> Execution:
    """The run's first attempt has failed on this image."""
    ended(run, State.FAILED)
    execution = run.attempts.get(attempt=1)
    Execution.objects.filter(pk=execution.pk).update(image_id=image_id)
    return execution


def asked(execution: Execution) -> tuple[object, object]:
    """What it runs with, without the numbers of run and attempt."""
    job = {name: value for name, value in execution.spec["job"].items() if name not in ("run", "attempt")}
    return execution.spec["environment"], job


def test_relaunched_run_has_its_original_values(shop: Shop) -> None:
    job = launched(shop, command="first", variables={"SEED": "1"}, folder="training")
    run = start(job, parameters={"lr": "1"})
    first = ran(run)
    change_everything(shop, job)
    again = jobs.start_again(run.pk, by="alice", now=LATER)
    assert asked(again.attempts.get()) == asked(first)
    assert start(job).attempts.get().spec["environment"]["image"] == "python:4"


def test_a_retry_of_a_repeated_run_has_them_too(shop: Shop) -> None:
    job = launched(shop, retries=1, retry_seconds=1)
    run = job.runs.get()
    first = ran(run)
    again = jobs.start_again(run.pk, by="alice", now=LATER)
    change_everything(shop, job)
    ended(again, State.FAILED)
    advance_all({job.pk}, now=LATER)
    advance_all({job.pk}, now=LATER.replace(year=LATER.year + 1))
    assert asked(again.attempts.get(attempt=2)) == asked(first)


def test_environment_archived_since_is_not_launched_again(shop: Shop) -> None:
    run = launched(shop).runs.get()
    ran(run)
    shop.job.is_archived = True
    shop.job.save()
    with pytest.raises(Rejected, match="no longer available"):
        jobs.start_again(run.pk, by="alice", now=LATER)


@pytest.mark.parametrize(
    ("image_id", "image"),
    [
        (f"docker.io/library/python@{DIGEST}", f"docker.io/library/python@{DIGEST}"),
        (f"docker-pullable://registry:5000/team/python@{DIGEST}", f"registry:5000/team/python@{DIGEST}"),
        (DIGEST, "python:3.11"),
        ("", "python:3.11"),
        (f"a b@{DIGEST}", "python:3.11"),
        (f"evil://x@{DIGEST}", "python:3.11"),
        (f"python@{DIGEST}0", "python:3.11"),
    ],
)
def test_only_name_with_digest_replaces_the_image(shop: Shop, image_id: str, image: str) -> None:
    spec = shop.launch(kind="job", environment=shop.job).spec
    spec["environment"]["image"] = "python:3.11"
    environment = environment_by_digest(spec, image_id)
    assert environment is not None and environment.image == image
