"""Reads what the attempts of runs were launched with from the database, synchronously."""

from dashboard.jobs.viewmodels.ran_with import NOT_LAUNCHED, RanWith, launch_facts
from grid.environments.revisions import other_revision
from grid.executions.spec import parse_spec
from grid.models import Environment, Execution


def ran_with(execution_id: str) -> RanWith | None:
    """Return what an execution was launched with, and what the kubelet told of it; None when there is none, or it can no longer be read."""
    execution = Execution.objects.filter(pk=execution_id).first()
    if execution is None:
        return None
    try:
        return RanWith(parse_spec(execution), execution)
    except ValueError:
        return None


def deprecated_since(ran: RanWith) -> str:
    """Return a sentence when the environment's revision that ran is deprecated now, with the current one; "" otherwise."""
    environment = Environment.objects.filter(pk=ran.spec.environment.id).first()
    if environment is None:
        return ""
    sentence, is_deprecated = other_revision(environment, ran.spec.environment.revision)
    return sentence if is_deprecated else ""


def launched_with(execution_id: str) -> dict[str, str]:
    """Return the facts of an attempt for a comparison; an empty id is that of a run that was not launched yet."""
    ran = ran_with(execution_id) if execution_id else None
    return launch_facts(ran) if ran else dict(NOT_LAUNCHED)
