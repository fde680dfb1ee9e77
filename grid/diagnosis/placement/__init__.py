"""Why a pod has no node: what keeps it off each node, computed from the objects and put into one sentence and a small table."""

from grid.diagnosis.placement.explain import Outlook, explain_placement, outlook_of
from grid.diagnosis.placement.surroundings import NodeKinds, SchedulingContext

__all__ = ["NodeKinds", "Outlook", "SchedulingContext", "explain_placement", "outlook_of"]
