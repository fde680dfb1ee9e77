"""Why a pod has no node: what keeps it off each node, computed from the objects and put into one sentence and a small table."""

from grid.diagnosis.placement.alike import NodeKinds
from grid.diagnosis.placement.explain import explain_placement
from grid.diagnosis.placement.surroundings import SchedulingContext

__all__ = ["NodeKinds", "SchedulingContext", "explain_placement"]
