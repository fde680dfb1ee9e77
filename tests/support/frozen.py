"""What an execution's launch has frozen, for tests that make rows without a launch, or damage them."""

from typing import Any

from django.db.models import QuerySet

from grid.models import Execution


def write_frozen(execution: Execution, **columns: Any) -> None:
    """Write what the product only writes at launch, as somebody at the database's own prompt would; the given object follows."""
    QuerySet(Execution).filter(pk=execution.pk).update(**columns)
    execution.refresh_from_db()
