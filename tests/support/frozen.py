"""What an execution's launch has frozen, for tests that make rows without a launch, or damage them."""

from typing import Any

from django.db.models import QuerySet

from grid.executions.spec import pod_columns, tier_spec
from grid.models import Execution, HardwareTier


def on_tier(tier: HardwareTier) -> dict[str, Any]:
    """Return the columns that say of an execution that it was launched on this tier."""
    return {"tier": tier, "data_plane_id": tier.data_plane_id, **pod_columns(tier_spec(tier))}


def write_frozen(execution: Execution, **columns: Any) -> None:
    """Write what the product only writes at launch, as somebody at the database's own prompt would; the given object follows."""
    QuerySet(Execution).filter(pk=execution.pk).update(**columns)
    execution.refresh_from_db()
