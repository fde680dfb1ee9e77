"""Reads which executions and schedules use a stored secret; synchronously."""

from typing import Any

from dashboard.viewmodels.secret_uses import SecretUses
from grid.models import Execution, Schedule, State, StoredSecret
from grid.models.execution import object_name_of


def uses_of(secret: StoredSecret) -> SecretUses:
    """Return the uses of a secret: executions name those that they were launched with, schedules get what applies at each run."""
    scope: dict[str, Any] = {}
    if secret.owner_id is not None:
        scope["owner"] = secret.owner_id
    if secret.project_id is not None:
        scope["project"] = secret.project_id
    active = Execution.objects.unsettled().filter(ended_at__isnull=True, **scope).order_by("requested_at", "pk")
    queued: list[str] = []
    running: list[str] = []
    for id, kind, title, state, secrets in active.values_list("pk", "kind", "title", "state", "spec__secrets"):
        if any(one["id"] == secret.pk for one in secrets or ()):
            (queued if state == State.QUEUED else running).append(title or object_name_of(kind, id))
    schedules = Schedule.objects.filter(next_at__isnull=False, **{f"job__{name}": of for name, of in scope.items()})
    return SecretUses(queued, running, schedules.filter(job__deleted_at__isnull=True).count())
