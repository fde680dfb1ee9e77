"""Reads what became of the project's files in Git around an execution."""

from dashboard.executions.viewmodels.run_files import RunFilesRecord
from grid.models import Execution, RunFiles


def run_files_record(execution: Execution) -> RunFilesRecord | None:
    """Return it; None where the project's files were a volume at launch, which needs no query."""
    files = (execution.spec or {}).get("files")
    if not isinstance(files, dict):
        return None
    asked = files.get("commit") or files.get("branch") or "main"
    found = RunFiles.objects.filter(execution=execution.pk).first() or RunFiles()
    return RunFilesRecord(
        project_id=execution.project_id,
        name=execution.object_name,
        asked=str(asked),
        is_reported=found.pk is not None,
        began=found.began,
        ended=found.ended,
        branch=found.branch,
        kept=found.kept,
        problem=found.problem,
        left_out=found.left_out,
        left_out_names=found.left_out_names,
        results_files=found.results_files,
        results_bytes=found.results_bytes,
        results_problem=found.results_problem,
        results_kept=found.results_kept,
    )
