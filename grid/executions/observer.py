"""What other rooms do beside each reconcile of an execution: usage, start-up times, metrics, logs."""

from grid.executions.ledger import LedgerRecord
from grid.executions.lifecycle import Transition
from grid.kube.objects import Pod
from grid.models import StartUp


class ReconcileObserver:
    """Observes the reconciles of one term of leadership. A room overrides what it needs; the controller hands them to the reconciler."""

    async def observe(self, row: LedgerRecord, *, has_new_events: bool) -> None:
        """Record what has changed since the last reconcile. Raise GridError for what a retry may resolve: the reconcile is repeated."""

    async def pod_ends(self, row: LedgerRecord, pod: Pod) -> None:
        """Read what is left of a pod that is to go, or whose program has ended. Raise GridError while a retry may still read it."""

    async def start_record(self, row: LedgerRecord, change: Transition, pod: Pod | None) -> StartUp | None:
        """Return the record of the start that the change ends, to be written with it; None for other changes."""
        return None

    def forget(self, execution_id: str) -> None:
        """Drop what is remembered of an execution that is settled."""
