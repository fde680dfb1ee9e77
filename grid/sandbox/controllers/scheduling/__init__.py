"""The default scheduler's rules, as pure functions of plain data: which node takes a pod, or why none does."""

from grid.sandbox.controllers.scheduling.decision import SchedulingDecision, decide, schedule
from grid.sandbox.controllers.scheduling.snapshot import NodeState, Snapshot, build_snapshot

__all__ = ["NodeState", "SchedulingDecision", "Snapshot", "build_snapshot", "decide", "schedule"]
