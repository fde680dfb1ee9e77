"""Reads which executions and schedules use a stored secret; synchronously."""

from typing import Any

from dashboard.secrets.viewmodel import SecretUses
from grid.executions.progress import CREATED
from grid.jobs.jobrows import waiting_runs
from grid.models import Execution, Schedule, State, StoredSecret
from grid.models.execution import object_name_of


def uses_of(secret: StoredSecret) -> SecretUses:
    """Return the uses of a secret: executions name those they were launched with, runs and schedules get what applies to each launch."""
    holders = {"owner": secret.owner_id, "project": secret.project_id}
    scope: dict[str, Any] = {name: holder for name, holder in holders.items() if holder is not None}
    active = Execution.objects.unsettled().filter(ended_at__isnull=True, **scope).order_by("requested_at", "pk")
    queued: list[str] = []
    running: list[str] = []
    columns = ("pk", "kind", "title", "state", "reason", "spec__secrets")
    for id, kind, title, state, reason, secrets in active.values_list(*columns):
        if any(launched["id"] == secret.pk for launched in secrets or ()):
            # The values are read when its objects are created.
            needs_it = state == State.QUEUED or (state == State.DEPLOYING and reason != CREATED)
            (queued if needs_it else running).append(title or object_name_of(kind, id))
    of_jobs = {f"job__{name}": of for name, of in scope.items()}
    schedules = Schedule.objects.filter(next_at__isnull=False, job__deleted_at__isnull=True, **of_jobs)
    return SecretUses(queued, running, schedules.count(), waiting_runs().filter(**of_jobs).count())
