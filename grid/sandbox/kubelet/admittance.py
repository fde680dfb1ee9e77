"""The kubelet's own check of a pod that was given to its node: whether it fits beside those that are there. Pure.

The scheduler only gives what fits, but a pod may name its node itself. As by a real kubelet, one that does not fit fails at once and
for good, with the first resource that is missing as the reason.
"""

from collections.abc import Mapping, Sequence

from grid.sandbox.controllers.podresources import PODS, Amounts, add, amounts
from grid.sandbox.kubelet.podstatus import PodVerdict

_FIRST = ("cpu", "memory", "ephemeral-storage")


def refusal(wanted: Amounts, allocatable: Mapping[str, str], present: Sequence[Amounts]) -> PodVerdict | None:
    """Return why the node refuses a pod that wants these amounts beside the present pods', or None.

    What the node does not offer at all is ignored, as a kubelet does with devices that it does not know.
    """
    offered = amounts(allocatable)
    used: Amounts = {}
    for other in present:
        add(used, other)
    count = len(present)
    if PODS in offered and count + 1 > offered[PODS]:
        return _out_of(PODS, 1, count, offered[PODS])
    wanted = {name: amount for name, amount in wanted.items() if name in offered}
    for name, amount in wanted.items():
        free = max(0, offered[name] - used.get(name, 0))
        if name not in _FIRST and amount > free:  # devices are asked for first
            problem = f"Allocate failed due to requested number of devices unavailable for {name}."
            message = f"{problem} Requested: {amount}, Available: {free}, which is unexpected"
            return PodVerdict("Failed", "UnexpectedAdmissionError", message)
    for name in _FIRST:
        if name in wanted and wanted[name] > offered[name] - used.get(name, 0):
            return _out_of(name, wanted[name], used.get(name, 0), offered[name])
    return None


def _out_of(resource: str, requested: int, used: int, capacity: int) -> PodVerdict:
    message = (
        f"Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
    )
    return PodVerdict("Failed", f"OutOf{resource}", message)
