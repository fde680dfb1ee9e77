"""Why an execution is in its state, in words for whoever reads them: what is stored speaks to its owner; pure."""

from grid.queue.quota import about_owner
from grid.runtime.executions import ExecutionRow


def message_of(row: ExecutionRow | None, *, to_owner: bool) -> str:
    """Return the stored cause, told about the owner unless it is told to the owner; "" when there is none."""
    if row is None:
        return ""
    return row.message if to_owner or not row.message else about_owner(row.message, row.owner_username)
