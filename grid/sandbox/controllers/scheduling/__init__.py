"""Which node a pod goes to, and why it goes to none: the default scheduler's rules as pure functions of plain data."""

from grid.sandbox.controllers.scheduling.decision import SchedulingDecision, decide, schedule
from grid.sandbox.controllers.scheduling.snapshot import NodeState, Snapshot, build_snapshot

__all__ = ["NodeState", "SchedulingDecision", "Snapshot", "build_snapshot", "decide", "schedule"]
