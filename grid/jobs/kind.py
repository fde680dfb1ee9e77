"""Jobs as a kind of executions: each is an attempt of a run of a job."""

from collections.abc import Iterator

from grid.core.errors import Problem
from grid.core.translation import gettext as _
from grid.executions.launchrequest import LaunchRequest, RunAttempt, StoredRows
from grid.executions.podkind import PodKind
from grid.executions.spec import JobSpec, launched_revision
from grid.jobs import jobrows
from grid.jobs.jobsettings import problems_of
from grid.models import Execution, Job


class JobKind(PodKind):
    restart_policy = "Never"
    is_ready_when_it_answers = False
    takes_cluster = True

    def own_problems(self, request: LaunchRequest, stored: StoredRows) -> Iterator[Problem]:
        yield from problems_of(request.job)
        if request.job.files_at and stored.project is not None and not stored.project.is_in_git:
            yield Problem("files_at", _("The files of this project are not in Git; leave this empty."), "files")

    def job_spec(self, execution: Execution, request: LaunchRequest) -> JobSpec:
        return jobrows.spec_of(execution.pk, request.job, request.attempt)

    def store(self, execution: Execution, request: LaunchRequest) -> None:
        """Make it an attempt of its run; a job that is launched first is created with its first run."""
        attempt = request.attempt
        if attempt is None:
            run = jobrows.make_first_run(request, id=execution.pk, now=execution.requested_at)
            attempt = RunAttempt(run, 1)
        execution.run, execution.attempt = attempt.run, attempt.number
        revision = launched_revision(execution)
        Job.objects.filter(pk=attempt.run.job_id).exclude(environment_revision=revision).update(
            environment_revision=revision
        )
