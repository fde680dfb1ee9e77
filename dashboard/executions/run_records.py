"""Reads the place of an execution among the attempts of its run."""

from django.urls import reverse

from dashboard.executions.viewmodels.run_place import RunPlace, SiblingAttempt
from grid.core.errors import Rejected
from grid.core.reasons import Reader
from grid.diagnosis.exits import code_words
from grid.jobs.jobsettings import read_record
from grid.models import Execution


def run_place(execution: Execution) -> RunPlace | None:
    """Return which run and attempt it is; None for what has no run. One query more, for an execution with a run."""
    run = execution.run
    if run is None:
        return None
    try:
        most = read_record(run.settings.record).job.retries + 1
    except Rejected:
        most = execution.attempt
    rows = Execution.objects.filter(run=run).exclude(pk=execution.pk).order_by("run", "attempt")
    reader = Reader(execution.owner.get_username(), is_owner=False)
    columns = rows.only("attempt", "state", "reason", "reason_values", "message")
    others = tuple(SiblingAttempt(one.pk, one.attempt, one.state, one.words(reader)) for one in columns)
    job = run.job
    is_there = job.deleted_at is None
    return RunPlace(
        execution_id=execution.pk,
        job_id=job.pk if is_there else "",
        job_name=str(job),
        number=run.number,
        attempt=execution.attempt,
        most_attempts=most,
        parameters=tuple(run.parameters.items()),
        others=others,
        message=run.message,
        exit_words="" if execution.exit_code is None else code_words(execution.exit_code),
        again=reverse("job-again", args=[job.pk, run.number]) if is_there else "",
    )
