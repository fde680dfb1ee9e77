"""Creates, runs, sweeps, edits and deletes jobs. What happens to a run afterwards is decided in `jobruns`. Each is one transaction that
locks the job, so of two at the same moment the second sees what the first has done. The runs then take their next step in another; the
controller does that too, should this process end between the two."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import msgspec
from django.db import transaction

from grid.core.decoding import prepared
from grid.core.errors import Problem, Rejected
from grid.core.regexes import Expression
from grid.core.translation import gettext as _, ngettext
from grid.executions.launchrequest import JobSettings, LaunchRequest
from grid.executions.request import validate, wrong_title
from grid.executions.spec import EnvironmentSpec, ExecutionSpec
from grid.executions.stopping import REPLACED, request_stop
from grid.jobs.jobrows import make_first_run, make_runs, record_of, record_with
from grid.jobs.jobruns import advance_all, end_finished, end_run, launch_request, lock_job, replacement
from grid.jobs.jobsettings import PARAMETERS, RunRecord, read_record, wrong_variables
from grid.jobs.runsteps import EndStep
from grid.models import Environment, Execution, HardwareTier, Job, JobRun, Schedule
from grid.queue.snapshot import why_closed

MAXIMUM_ROWS = 1000  # of a sweep
MAXIMUM_SWEEP_BYTES = 5_000_000  # of all its parameters, which one transaction stores
DELETED, ACTIVE = "deleted", "active"
# How container runtimes name an image by its digest, which any node can pull again.
_BY_DIGEST = Expression(r"(?:docker-pullable://)?([a-z0-9._-]+(?::\d+)?(?:/[a-z0-9._-]+)*@sha256:[0-9a-f]{64})")


def create(request: LaunchRequest, *, after: JobRun, now: datetime, job_id: str) -> JobRun:
    """Create the job of a valid request. Its first run starts after another, and is validated again by then. Raise Rejected."""
    with transaction.atomic():
        if problems := _wrong_earlier(after, request.project.pk) or why_closed(after.job.project_id, now):
            raise Rejected(problems)
        run = make_first_run(request, id=job_id, now=now, after=after)
    # After the transaction that stored it, because a step may reach other jobs' runs too.
    advance_all([run.job_id], now=now)
    run.refresh_from_db()
    return run


def start(
    job_id: str,
    *,
    by: str,
    now: datetime,
    parameters: Mapping[str, str] | None = None,
    after: JobRun | None = None,
    record: RunRecord | None = None,
    request_key: str = "",
) -> JobRun:
    """Ask for a run, with the job's settings or those of a `record`. It is launched at once unless it has to wait, which it then says.
    Asked again with the same `request_key`, return the run that was made then. Raise Rejected with all problems."""
    run = _ask(job_id, [parameters or {}], by=by, now=now, after=after, record=record, request_key=request_key)[0]
    run.refresh_from_db()
    return run


def start_again(run_id: int, *, by: str, now: datetime, request_key: str = "") -> JobRun:
    """Ask for a run with all that an earlier run of the same job ran with, whatever was changed since. Raise Rejected with all problems.
    The environment is that of its latest attempt, and the image by its digest where that is known. The tier's size is that of today."""
    earlier = JobRun.objects.select_related("settings").get(pk=run_id)
    record = read_record(earlier.settings.record)
    attempts = Execution.objects.filter(run=earlier).order_by("-attempt")
    if (ran := attempts.values_list("spec", "image_id").first()) is not None:
        record = msgspec.structs.replace(record, pinned=environment_by_digest(*ran))
    return start(earlier.job_id, by=by, now=now, parameters=earlier.parameters, record=record, request_key=request_key)


def environment_by_digest(stored: object, image_id: str) -> EnvironmentSpec | None:
    """Return an earlier launch's environment, with the image by the digest that ran if it is known; None for a spec that cannot be read."""
    try:
        environment = msgspec.convert(stored, prepared(ExecutionSpec)).environment
    except msgspec.ValidationError:
        return None
    ran = _BY_DIGEST.fullmatch(image_id)
    return msgspec.structs.replace(environment, image=ran[1]) if ran else environment


def start_sweep(
    job_id: str, rows: Sequence[Mapping[str, str]], *, by: str, now: datetime, request_key: str = ""
) -> list[JobRun]:
    """Ask for a run for each row of parameters; with the same `request_key` again, return those made then. Raise Rejected for all."""
    return _ask(job_id, rows, by=by, now=now, request_key=request_key, is_sweep=True)


def _ask(
    job_id: str,
    rows: Sequence[Mapping[str, str]],
    *,
    by: str,
    now: datetime,
    request_key: str,
    after: JobRun | None = None,
    record: RunRecord | None = None,
    is_sweep: bool = False,
) -> list[JobRun]:
    """Store a run for each row of parameters, and move them on; return those that the same showing of a form has asked for before."""
    with transaction.atomic():
        job = locked(job_id)
        if known := _requested_before(job, request_key):
            return known
        record = record or record_of(job)
        problems = [
            *(_wrong_rows(rows) if is_sweep else wrong_variables(rows[0], path="parameters", words=PARAMETERS)),
            *validate(launch_request(job, record)),
            *(_wrong_earlier(after, job.project_id) if after else ()),
            *why_closed(job.project_id, now),
        ]
        if problems:
            raise Rejected(problems)
        runs = make_runs(job, record, rows, by=by, now=now, is_sweep=is_sweep, after=after, request_key=request_key)
    advance_all([job_id], now=now)
    return runs


def edit(
    job_id: str, *, title: str, environment: Environment, tier: HardwareTier, settings: JobSettings, now: datetime
) -> None:
    """Change what the job's later runs run with, and how many may be active at once from now on. Raise Rejected with all problems."""
    with transaction.atomic():
        job = locked(job_id)
        job.title = title.strip()
        record = record_with(job, environment, tier, settings)
        if problems := [*wrong_title(title), *validate(replace(launch_request(job, record), title=title.strip()))]:
            raise Rejected(problems)
        job.environment, job.tier = environment, tier
        for name in JobSettings.__struct_fields__:
            setattr(job, name, getattr(settings, name))
        job.save()
    advance_all([job_id], now=now)


def delete(job_id: str, *, now: datetime) -> None:
    """Hide a job, and delete its schedules; its runs stay in the history, and files untouched. Raise Rejected while a run is open."""
    with transaction.atomic():
        job = locked(job_id)
        if count := JobRun.objects.filter(job=job, outcome="").count():
            sentence = ngettext(
                "{count:,} run of it has not ended. Stop all runs first.",
                "{count:,} runs of it have not ended. Stop all runs first.",
                count,
            )
            raise Rejected([Problem("", sentence, ACTIVE)])
        Schedule.objects.filter(job=job).delete()
        job.deleted_at = now
        job.save(update_fields=["deleted_at"])


def stop_runs(job_id: str, *, by: str, now: datetime, sweep: str = "", number: int | None = None) -> int:
    """Stop all open runs of a job, or those of one sweep, or one run; return how many. Runs that wait end at once."""
    with transaction.atomic():
        job = lock_job(job_id)
        if job is None:
            return 0
        followers = end_finished(job, now=now)
        runs = JobRun.objects.filter(job=job, outcome="").order_by("number")
        if sweep:
            runs = runs.filter(sweep=sweep)
        if number is not None:
            runs = runs.filter(number=number)
        stopped = list(runs)
        for run in stopped:
            stop_run(run, by=by, now=now)
    advance_all([job_id, *followers], now=now)
    return len(stopped)


def stop_run(run: JobRun, *, by: str, now: datetime) -> None:
    """Stop an open run. The caller holds the lock of its job, has called `end_finished`, and moves the job's runs on afterwards."""
    attempt = Execution.objects.filter(run=run).order_by("-attempt").first()
    if attempt is not None and not attempt.is_final:
        request_stop(attempt, by=by, now=now, reason=REPLACED if run.replaced_by is not None else "")
        return
    reason, values = "stopped_between_attempts" if attempt else "stopped_before_start", {"by": by}
    if (later := replacement(run)) is not None:
        reason, values = "replaced_by_run", later
    end_run(run, EndStep(JobRun.Outcome.STOPPED, reason, values), now, by=by)


def _requested_before(job: Job, request_key: str) -> list[JobRun]:
    """Return what the same showing of a form has asked for: a run, or all runs of a sweep; [] for a new one."""
    first = JobRun.objects.filter(job=job, request_key=request_key).first() if request_key else None
    if first is None or not first.sweep:
        return [first] if first else []
    return list(JobRun.objects.filter(job=job, sweep=first.sweep).order_by("number"))


def _wrong_rows(rows: Sequence[Mapping[str, str]]) -> list[Problem]:
    if not 1 <= len(rows) <= MAXIMUM_ROWS:
        sentence = _("Use 1 to {most:,} lines of values; these are {count:,}.", most=MAXIMUM_ROWS, count=len(rows))
        return [Problem("table", sentence, "rows")]
    for number, row in enumerate(rows, 1):
        if problems := list(wrong_variables(row, path="table", words=PARAMETERS)):
            sentences = [
                _("Line {number} of the values: {problem}", number=number, problem=each.message) for each in problems
            ]
            return [replace(problem, message=sentence) for problem, sentence in zip(problems, sentences, strict=True)]
    sizes = (len(name) + len(value.encode()) for row in rows for name, value in row.items())
    size, most = sum(sizes), MAXIMUM_SWEEP_BYTES
    if size <= most:
        return []
    sentence = _("These parameters are {size:,} bytes together; use at most {most:,}. Put the longest into files.")
    return [Problem("table", sentence.format(size=size, most=most), "too_long")]


def _wrong_earlier(after: JobRun, project_id: str) -> list[Problem]:
    wrong = Problem("after", _("Choose a run of a job in the same project."), "after")
    return [wrong] if after.job.project_id != project_id else []


def locked(job_id: str) -> Job:
    """Return the job, locked until the transaction ends. Raise Rejected when it was deleted."""
    job = lock_job(job_id)
    if job is None or job.deleted_at is not None:
        raise Rejected([Problem("", _("This job was deleted."), DELETED)])
    return job
