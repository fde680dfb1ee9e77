"""Home's order: what runs, workspaces to resume, what needs its owner, what has ended; and the runs of one job as one card."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard.home.viewmodels.my_executions import MyExecutions, my_executions, needs_owner
from dashboard.home.viewmodels.work_items import work_items
from dashboard.shell.fragments import render_fragment
from dashboard.shell.viewmodels.states import StatusLine, state_status
from dashboard.workspaces.viewmodels.workspaces import WorkspaceExecution, WorkspaceRecord
from grid.jobs.jobs import start_sweep
from grid.models import Execution, State
from grid.runtime import Runtime
from grid.runtime.executionrows import ExecutionRow
from tests.conftest import People, client_of
from tests.executions.executing import ROW, make_execution, make_project, make_workspace, read_executions
from tests.jobs.conftest import launch_job
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden

NOW = MOMENT + timedelta(minutes=30)
JOB = replace(
    ROW, kind="job", title="Train", environment_name="Script", object_name="job-r1", job_id="j1", run_number=1
)
STOPPED = WorkspaceRecord(
    id="w3", name="Churn", title="Churn", owner_id=1, owner_username="alice", project_id="churn", project_name="Churn",
    project_roles={1: "owner"}, environment_name="JupyterLab", tier_name="Small", created_at=MOMENT,
    launched_at=MOMENT, latest=WorkspaceExecution("e3", "stopped", NOW, ""),
)  # fmt: skip


def run(number: int, state: str = "running", minute: int = 0, **fields: Any) -> ExecutionRow:
    at = MOMENT + timedelta(minutes=minute)
    return replace(JOB, id=f"r{number}-{minute}", run_number=number, state=state, requested_at=at, **fields)


def status(row: ExecutionRow) -> tuple[StatusLine, str]:
    return state_status(row.state, message=row.message)


def cards(*rows: ExecutionRow, workspaces: tuple[WorkspaceRecord, ...] = ()) -> MyExecutions:
    shown = my_executions(rows, workspaces, status, NOW).context
    assert isinstance(shown, MyExecutions)
    return shown


def test_runs_of_one_job_are_one_item_and_other_jobs_stay_apart() -> None:
    rows = [*(run(number, minute=number) for number in range(1, 9)), run(1, job_id="j2"), replace(ROW, id="alone")]
    assert [len(item.rows) for item in work_items(rows)] == [8, 1, 1]


def test_run_is_its_latest_attempt() -> None:
    (item,) = work_items([run(1, "failed", 1), run(1, "running", 2), run(2, "succeeded", 1)])
    assert [(row.run_number, row.state) for row in item.rows] == [(1, "running"), (2, "succeeded")]
    assert not item.has_failed


def test_clusters_of_several_runs_go_with_them() -> None:
    cluster = replace(ROW, id="c1", kind="cluster", framework="dask", attached_to="r1-0")
    assert [len(item.rows) for item in work_items([run(1), run(2), cluster])] == [2]
    assert [len(item.rows) for item in work_items([run(1), cluster])] == [1, 1], "one run's cluster has its own card"


def test_sections_follow_what_runs() -> None:
    failed = replace(ROW, id="e2", kind="job", title="Broken", state="failed", requested_at=NOW)
    done = replace(ROW, id="e4", kind="job", title="Done", state="succeeded")
    lately = replace(STOPPED, id="w4", name="Crashed", latest=WorkspaceExecution("e5", "failed", NOW, "Out of memory."))
    shown = cards(replace(ROW, title="Explore"), failed, done, workspaces=(STOPPED, lately))
    names = [[card.name for card in cards] for cards in (shown.active, shown.stopped, shown.troubled, shown.ended)]
    assert names == [["Explore"], ["Churn"], ["Broken", "Crashed"], ["Done"]]
    assert {card.button for card in (*shown.stopped, shown.troubled[1])} == {"resume"}


def test_sweep_leaves_room_for_everything_else() -> None:
    sweep = [run(number, minute=number) for number in range(1, 41)]
    explore = replace(ROW, id="e9", title="Explore", requested_at=MOMENT)
    shown = cards(*sweep, explore, workspaces=(STOPPED,))
    assert [(card.name, card.runs) for card in shown.active] == [("Train", "40 runs: 40 running"), ("Explore", "")]
    assert [card.name for card in shown.stopped] == ["Churn"]
    assert not shown.more


def test_what_runs_is_not_pushed_out_by_newer_launches_that_wait() -> None:
    waiting = [replace(ROW, id=f"q{n}", state="queued", requested_at=NOW + timedelta(minutes=n)) for n in range(9)]
    shown = cards(*waiting, replace(ROW, title="Explore"))
    assert [card.name for card in shown.active][-1] == "Explore"
    assert shown.more


def test_job_that_still_runs_counts_what_failed_and_is_shown_once() -> None:
    shown = cards(run(1, "failed", 1), run(2, "running", 2), run(3, "queued", 3))
    assert [card.runs for card in shown.active] == ["3 runs: 1 queued, 1 running, 1 failed"]
    assert shown.active[0].status.word == "Running"
    assert shown.troubled == ()


def test_ended_job_with_a_failure_needs_its_owner() -> None:
    shown = cards(run(1, "failed", 1, message="Out of memory."), run(2, "succeeded", 2))
    assert [(card.job_id, card.status.note) for card in shown.troubled] == [("j1", "Out of memory.")]
    assert shown.ended == ()


@pytest.mark.parametrize(
    ("workspace", "needs"),
    [
        (STOPPED, False),
        (replace(STOPPED, latest=None), False),
        (replace(STOPPED, latest=WorkspaceExecution("e3", "error", NOW, "")), True),
        (replace(STOPPED, latest=WorkspaceExecution("e3", "failed", NOW - timedelta(days=1), "")), False),
        (replace(STOPPED, latest=WorkspaceExecution("e3", "error", MOMENT, "", is_settled=False)), True),
        (replace(STOPPED, restart_problem="The tier is gone."), True),
        (replace(STOPPED, restart_problem="The tier is gone.", is_restarting=True), False),
    ],
)
def test_workspace_needs_owner_after_recent_failure(workspace: WorkspaceRecord, needs: bool) -> None:
    assert needs_owner(workspace, NOW) is needs


def test_home_with_a_sweep_looks_as_stored() -> None:
    rows = [
        run(1, "failed", 1),
        run(2, "running", 2),
        run(3, "queued", 3),
        run(1, "failed", 4, job_id="j2", title="<b>"),
    ]
    fragment = my_executions([*rows, run(2, "succeeded", 5, job_id="j2", title="<b>")], [STOPPED], status, NOW)
    assert_golden("my-executions-sweep", render_fragment(fragment, now=NOW))


@pytest.mark.usefixtures("runtime")
@pytest.mark.django_db(transaction=True)
def test_sweep_is_one_card_for_its_owner_and_none_for_others(people: People, runtime: Runtime) -> None:
    job = launch_job(people)
    start_sweep(job.pk, [{"SEED": str(seed)} for seed in range(8)], by=people.owner.username, now=timezone.now())
    assert Execution.objects.filter(run__job=job).count() == 9
    read_executions(runtime)
    home = client_of(people.owner).get("/").content.decode()
    assert home.count(f'href="/jobs/{job.pk}/"') == 1
    assert "9 runs: 9 queued" in home
    for other in (people.teammate, people.stranger):
        assert job.pk not in client_of(other).get("/").content.decode()


@pytest.mark.usefixtures("runtime")
@pytest.mark.django_db(transaction=True)
def test_running_workspace_stands_before_stopped_and_failed_ones(people: People, runtime: Runtime) -> None:
    project = make_project(people.owner, people.teammate)
    make_workspace(people.owner, project, title="Asleep")
    make_execution(people.owner, project, state=State.FAILED, kind="job", title="Broken", ended_at=runtime.clock())
    make_execution(people.owner, project, title="Busy")
    read_executions(runtime)
    home = client_of(people.owner).get("/").content.decode()
    assert home.index("Busy") < home.index("Asleep") < home.index("Needs you") < home.index("Broken")
