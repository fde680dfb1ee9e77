"""Puts a node into words and numbers: its kind, its status, its requested and used resources."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from dashboard.shell.viewmodels.format import percent
from dashboard.shell.viewmodels.live import ViewModel
from dashboard.shell.viewmodels.sparklines import Sparkline, usage_line
from dashboard.shell.viewmodels.states import StatusLine
from grid.core.labels import INSTANCE_TYPE, NODE_POOL, PLATFORM_NODE, PLATFORM_POOL
from grid.core.quantity import format_bytes, format_cores
from grid.core.translation import gettext as _
from grid.diagnosis.requests import Amounts, amounts, summary
from grid.diagnosis.resources import PODS, ResourceAmounts
from grid.kube.objects import Node
from grid.metrics.usage import Usage, UsageSample

_MEBIBYTE = 2**20
_PRESSURES = {
    "MemoryPressure": _("low on memory"),
    "DiskPressure": _("low on disk"),
    "PIDPressure": _("too many processes"),
    "NetworkUnavailable": _("network not set up"),
}


class Share(ViewModel, frozen=True, gc=False):
    """One resource of a node or a pool: the requested and used parts of allocatable; `used` is "" without metrics. `line` is what a node
    used over the last half hour."""

    name: str
    requested: str
    allocatable: str
    requested_percent: int
    used: str = ""
    used_percent: int = 0
    line: Sparkline | None = None
    key: Literal["cpu", "memory", "gpus"] = "memory"


class NodeSums(msgspec.Struct, frozen=True, gc=False):
    """A node's values for rows, pools and sorting, computed once for each change."""

    node: Node
    pool: str
    is_platform: bool
    status: StatusLine
    pod_count: int
    requested: Amounts
    allocatable: Amounts
    used: Amounts | None


def node_sums(node: Node, requested: ResourceAmounts, usage: Usage | None, *, pool_label: str = NODE_POOL) -> NodeSums:
    """Return the values of a node; `requested` is what the pods that hold it request, as a `NodeRoom` knows it."""
    pool = node.metadata.labels.get(pool_label, "")
    return NodeSums(
        node=node,
        pool=pool,
        is_platform=node.metadata.labels.get(PLATFORM_NODE) == "true" or pool == PLATFORM_POOL,
        status=node_status(node),
        pod_count=requested.get(PODS, 0),
        requested=summary(requested),
        allocatable=amounts(node.status.allocatable),
        used=None if usage is None else Amounts(usage.cpu_millicores, usage.memory_bytes),
    )


def node_status(node: Node) -> StatusLine:
    """Return the worst of the node's conditions in words, or "Ready"."""
    conditions = {condition.type: condition for condition in node.status.conditions}
    ready = conditions.get("Ready")
    troubles = [words for name, words in _PRESSURES.items() if name in conditions and conditions[name].status == "True"]
    note = ", ".join(troubles)
    if ready is None:
        return StatusLine("wait", _("Joining"), _("it has not reported yet"))
    if ready.status == "Unknown":
        return StatusLine("problem", _("Lost"), ready.message.rstrip(".") or _("its kubelet no longer reports"))
    if ready.status != "True":
        return StatusLine("wait", _("Not ready"), "; ".join(filter(None, [ready.message.rstrip("."), note])))
    if troubles:
        return StatusLine("problem", _("In trouble"), note)
    if node.spec.unschedulable:
        return StatusLine("neutral", _("Ready"), _("closed for new pods (cordoned)"))
    return StatusLine("ok", _("Ready"))


def instance_type(node: Node) -> str:
    return node.metadata.labels.get(INSTANCE_TYPE, "")


def created_at(node: Node) -> datetime | None:
    return node.metadata.creation_timestamp


def shares(
    requested: Amounts, allocatable: Amounts, used: Amounts | None, recent: Sequence[UsageSample] = ()
) -> tuple[Share, ...]:
    """Return the shares of CPU and memory, and of GPUs where there are some. `recent` is drawn while the usage is known."""
    cpu = memory = None
    if used is not None:
        cpu = usage_line(_("CPU"), [(one.minute, one.cpu_millicores) for one in recent], allocatable.cpu, used.cpu)
        mebibytes = [(one.minute, one.memory_mebibytes) for one in recent]
        memory = usage_line(_("Memory"), mebibytes, allocatable.memory // _MEBIBYTE, used.memory // _MEBIBYTE)
    found = [
        Share(
            _("CPU"),
            format_cores(requested.cpu),
            format_cores(allocatable.cpu),
            percent(requested.cpu, allocatable.cpu),
            "" if used is None else format_cores(used.cpu),
            0 if used is None else percent(used.cpu, allocatable.cpu),
            cpu,
            key="cpu",
        ),
        Share(
            _("Memory"),
            format_bytes(requested.memory),
            format_bytes(allocatable.memory),
            percent(requested.memory, allocatable.memory),
            "" if used is None else format_bytes(used.memory),
            0 if used is None else percent(used.memory, allocatable.memory),
            memory,
        ),
    ]
    if allocatable.gpus or requested.gpus:
        gpus = percent(requested.gpus, allocatable.gpus)
        found.append(Share(_("GPUs"), str(requested.gpus), str(allocatable.gpus), gpus, key="gpus"))
    return tuple(found)
