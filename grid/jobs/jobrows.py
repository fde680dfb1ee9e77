"""Makes the rows of jobs and of their runs, and the spec of an attempt. The caller holds the transaction, and the lock of a stored job."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import Exists, OuterRef, QuerySet

from grid.core.errors import Problem
from grid.core.translation import gettext as _
from grid.executions.launchrequest import JobSettings, LaunchRequest, RunAttempt, StoredRows
from grid.executions.podkind import PodKind
from grid.executions.spec import JobSpec, launched_revision
from grid.jobs.jobsettings import RunRecord, problems_of, settings_of
from grid.models import Environment, Execution, HardwareTier, Job, JobRun, RunSettings

_ID_LENGTH = 12


def attempt_id(job_id: str, run: int, attempt: int) -> str:
    """Return the id of an attempt's execution: always the same, so it is launched once. A job has the id of its first execution."""
    if run == attempt == 1:
        return job_id
    return hashlib.sha256(f"attempt {attempt} of run {run} of {job_id}".encode()).hexdigest()[:_ID_LENGTH]


def waiting_runs() -> QuerySet[JobRun]:
    """Return the open runs of all jobs that have no execution yet, or wait for their next attempt."""
    return JobRun.objects.filter(~Exists(Execution.objects.unsettled().filter(run=OuterRef("pk"))), outcome="")


def make_first_run(request: LaunchRequest, *, id: str, now: datetime, after: JobRun | None = None) -> JobRun:
    """Store the job of a valid request, with its first run."""
    job = Job.objects.create(
        id=id,
        title=request.title.strip(),
        owner=request.owner,
        project=request.project,
        environment=request.environment,
        tier=request.tier,
        cluster=request.cluster.as_stored if request.cluster else None,
        created_at=now,
        launched_at=now,
        **msgspec.structs.asdict(request.job),
    )
    record = record_with(job, request.environment, request.tier, request.job)
    return make_runs(job, record, [{}], by=request.owner.get_username(), now=now, after=after)[0]


def record_of(job: Job) -> RunRecord:
    """Return the record of a run that is asked for now, with all that is stored of the job."""
    return record_with(job, job.environment, job.tier, settings_of(job))


def record_with(job: Job, environment: Environment, tier: HardwareTier, settings: JobSettings) -> RunRecord:
    """Return the record of a run of the job with another environment, tier and settings."""
    rows: dict[str, Any] = {"environment": environment.pk, "environment_name": environment.name}
    rows |= {"tier": tier.pk, "tier_name": tier.name}
    return RunRecord(title=str(job), cluster=job.cluster, job=settings, **rows)


def make_runs(
    job: Job,
    record: RunRecord,
    rows: Sequence[Mapping[str, str]],
    *,
    by: str,
    now: datetime,
    is_sweep: bool = False,
    after: JobRun | None = None,
    request_key: str = "",
) -> list[JobRun]:
    """Store a run for each row of parameters, in their order; they are due at once. A sweep has the number of its first run as id.
    `request_key` is of the form that asked for them: the database takes it once."""
    settings = _stored_settings(job, record)
    first = job.runs_made + 1
    sweep = str(first) if is_sweep else ""
    runs = JobRun.objects.bulk_create(
        JobRun(
            job=job,
            number=number,
            parameters=dict(parameters),
            settings=settings,
            request_key=request_key if number == first else "",
            sweep=sweep,
            after=after,
            requested_at=now,
            requested_by=by,
            next_attempt_at=now,
        )
        for number, parameters in enumerate(rows, first)
    )
    job.runs_made += len(runs)
    job.launched_at = max(now, job.launched_at)
    job.save(update_fields=["runs_made", "launched_at"])
    return runs


def _stored_settings(job: Job, record: RunRecord) -> RunSettings:
    """Return the row with this record: the job's latest one when it says the same, else a new one. Those that no run has any more go."""
    stored: dict[str, Any] = msgspec.to_builtins(record)
    rows = RunSettings.objects.filter(job=job)
    latest = rows.order_by("-pk").first()
    if latest is not None and latest.record == stored:
        return latest
    rows.filter(~Exists(JobRun.objects.filter(settings=OuterRef("pk")))).delete()
    return RunSettings.objects.create(job=job, record=stored)


class JobKind(PodKind):
    restart_policy = "Never"
    is_ready_when_it_answers = False
    takes_cluster = True

    def own_problems(self, request: LaunchRequest, stored: StoredRows) -> Iterator[Problem]:
        yield from problems_of(request.job)
        if request.job.files_at and stored.project is not None and not stored.project.is_in_git:
            yield Problem("files_at", _("The files of this project are not in Git; leave this empty."), "files")

    def job_spec(self, execution: Execution, request: LaunchRequest) -> JobSpec:
        own: dict[str, Any] = {"job": execution.pk, "run": 1}
        if (attempt := request.attempt) is not None:
            run = attempt.run
            own = {"job": run.job_id, "run": run.number, "attempt": attempt.number, "parameters": dict(run.parameters)}
        shared = ("command", "variables", "folder", "files_at", "timeout_seconds")
        own |= {name: copy(getattr(request.job, name)) for name in shared}
        return JobSpec(**own, page_port=request.job.page_port or 0)

    def store(self, execution: Execution, request: LaunchRequest) -> None:
        """Make it an attempt of its run; a job that is launched first is created with its first run."""
        attempt = request.attempt or RunAttempt(make_first_run(request, id=execution.pk, now=execution.requested_at), 1)
        execution.run, execution.attempt = attempt.run, attempt.number
        revision, jobs = launched_revision(execution), Job.objects.filter(pk=attempt.run.job_id)
        jobs.exclude(environment_revision=revision).update(environment_revision=revision)
