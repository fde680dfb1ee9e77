"""How an attempt of a job's run is shown on the pages that all executions have."""

from typing import Any

from dashboard.executions.kinds import ExecutionKindFace
from dashboard.executions.viewmodels.execution import ExecutionRecord, Person
from dashboard.jobs.forms.jobs import JobPart
from dashboard.jobs.run_records import read_metrics
from grid.models.environment import Kind


def _context(record: ExecutionRecord, viewer: Person) -> dict[str, Any]:
    """Return the section of its run with what that has measured; nothing for who may not read it, and for a job that was launched without
    a run."""
    if record.run is None or not viewer.may_read:
        return {}
    return {"kind_section": "jobs/fragments/execution_section.html", "metrics": read_metrics(record.id)}


JOB = ExecutionKindFace(Kind.JOB, context=_context, section=JobPart)
