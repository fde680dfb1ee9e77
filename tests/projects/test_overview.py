"""The pages of a project: what everybody in it runs and has run, for its members and those who see everything, and for nobody else."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.jobs.job_records import latest_runs_of
from dashboard.jobs.viewmodels.jobs import ProjectRun
from dashboard.projects.viewmodels.overview import RunningExecution, run_rows, spent_words, tabs_for
from dashboard.shell.viewmodels.states import StatusLine
from grid.models import Execution, Job, JobRun, Project, State, User
from tests.conftest import People, client_of
from tests.executions.executing import make_environment, make_execution, make_project
from tests.jobs.conftest import launch_job
from tests.jobs.test_job_rows import ENDED, HOSTILE, NOW, RUNNING, SWEEP
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden

OVERVIEW = "/projects/churn/"
SETTINGS = "/projects/churn/settings/"
ACTIVE = [
    RunningExecution(
        id="e1",
        name=f"Explore {HOSTILE}",
        kind="Workspace",
        status=StatusLine("ok", "Running"),
        username="alice",
        tier="Small",
        since=MOMENT,
    ),
    RunningExecution(
        id="e2",
        name="job-e2",
        kind="Job",
        status=StatusLine("wait", "Queued", "Waiting for a free slot."),
        username="bob",
        tier="GPU",
        since=NOW,
    ),
]
RUNS = [
    ProjectRun("j1", f"Train {HOSTILE}", "alice", RUNNING),
    ProjectRun("j2", "Search", "bob", SWEEP),
    ProjectRun("j1", f"Train {HOSTILE}", "alice", ENDED),
    ProjectRun("j1", f"Train {HOSTILE}", "alice", replace(RUNNING, number=5, attempts=())),
]


def shown(user: User, path: str = OVERVIEW) -> str:
    return client_of(user).get(path).content.decode()


def sweep_of(job: Job, *, runs: int) -> None:
    """Add a sweep to the job, as if it had just been requested."""
    first, now = JobRun.objects.get(job=job), timezone.now()
    for number in range(2, runs + 2):
        JobRun.objects.create(
            job=job, number=number, sweep="2", settings=first.settings, requested_by="alice", requested_at=now
        )
    Job.objects.filter(pk=job.pk).update(runs_made=runs + 1, launched_at=now)


def test_tables_look_as_stored() -> None:
    for name, rows in (("active", ACTIVE), ("runs", run_rows(RUNS, NOW))):
        context = {"rows": rows, "label": "Rows", "now": NOW}
        assert_golden(f"project-{name}", render_to_string(f"projects/fragments/{name}_table.html", context))


def test_files_and_settings_are_tabs_of_those_who_may_open_them() -> None:
    assert [*tabs_for(may_browse=False, may_manage=False)] == ["project", "project-member"]
    everything = ["project", "project-files", "project-member", "project-settings"]
    assert [*tabs_for(may_browse=True, may_manage=True)] == everything


def test_spending_without_a_budget_is_summed() -> None:
    assert spent_words({date(2026, 3, 1): Decimal("1.5"), date(2026, 3, 2): Decimal(2)}) == "$3.50 this month"


@pytest.mark.django_db
class TestOverview:
    @pytest.fixture
    def project(self, people: People) -> Project:
        """With a job of the owner and a workspace of the team-mate."""
        project = make_project(people.owner, people.teammate)
        make_environment(kind="job", port=None)  # of both
        launch_job(people)
        make_execution(people.teammate, project, title="Explore")
        return project

    @pytest.mark.parametrize("who", ["owner", "teammate", "operator", "admin"])
    def test_members_and_observers_see_what_everybody_runs(self, people: People, project: Project, who: str) -> None:
        page = shown(getattr(people, who))
        active, runs = page.split('id="runs-title"')
        assert "Explore" in active and "Train" in active
        assert "Run 1" in runs and "Train" in runs
        assert "bob" in runs.split('id="people-title"')[1]
        assert "$0.00 this month" in runs
        assert (f'href="{SETTINGS}"' in page) == (who in ("owner", "admin"))

    @pytest.mark.parametrize("path", [OVERVIEW, SETTINGS, "/projects/churn/members/"])
    def test_stranger_does_not_learn_of_the_project(self, people: People, project: Project, path: str) -> None:
        assert client_of(people.stranger).get(path).status_code == 404

    def test_ended_and_other_projects_executions_are_left_out(self, people: People, project: Project) -> None:
        Execution.objects.filter(title="Explore").update(state=State.STOPPED, ended_at=MOMENT, settled_at=MOMENT)
        make_execution(people.teammate, make_project(people.teammate, id="other", name="Other"), title="Elsewhere")
        page = shown(people.owner)
        assert "Explore" not in page and "Elsewhere" not in page

    def test_sweep_is_one_line(self, people: People, project: Project) -> None:
        job = Job.objects.get()
        sweep_of(job, runs=3)
        lines = run_rows(latest_runs_of(project.pk, 8, timezone.now(), people.owner.pk), timezone.now())
        assert [line.run for line in lines] == ["Sweep, 3 runs", "Run 1"]
        assert f"/jobs/{job.pk}/?sweep=2" in shown(people.teammate)

    def test_number_of_queries_does_not_grow_with_rows(self, people: People, project: Project) -> None:
        def queries() -> int:
            with CaptureQueriesContext(connection) as captured:
                assert client.get(OVERVIEW).status_code == 200
            return len(captured)

        client = client_of(people.owner)
        client.get(OVERVIEW)
        few = queries()
        for title in ("Second", "Third"):
            sweep_of(launch_job(people, title), runs=2)
            make_execution(people.teammate, project, title=title)
        assert queries() == few + 1, "one more counts the runs of all sweeps"

    def test_form_that_was_opened_before_is_still_saved(self, people: People, project: Project) -> None:
        answer = client_of(people.owner).post(OVERVIEW, {"name": "Retention"})
        assert (answer.status_code, answer["Location"]) == (302, SETTINGS)
        project.refresh_from_db()
        assert project.name == "Retention"

    def test_archived_project_says_so_and_offers_no_launch(self, people: People, project: Project) -> None:
        assert "/launch/?project=churn" in shown(people.teammate)
        Project.objects.update(is_archived=True)
        page = shown(people.teammate)
        assert "nobody can launch in it" in page
        assert "/launch/?project=churn" not in page
