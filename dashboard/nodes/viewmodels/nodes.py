"""Puts a node into words and numbers: its kind, its status, its requested and used resources."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from dashboard.shell.viewmodels.charts import Sparkline, usage_line
from dashboard.shell.viewmodels.format import percent
from dashboard.shell.viewmodels.live import ViewModel
from dashboard.shell.viewmodels.states import StatusLine
from grid.core.labels import INSTANCE_TYPE, NODE_POOL
from grid.core.quantity import format_bytes, format_cores
from grid.core.translation import gettext as _
from grid.diagnosis.nodetroubles import node_troubles
from grid.diagnosis.requests import Amounts, amounts, summary
from grid.diagnosis.resources import PODS, ResourceAmounts
from grid.kube.objects import Node
from grid.metrics.usage import Usage, UsageSample
from grid.nodes.nodemarks import is_platform

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_MEBIBYTE = 2**20
ShareKey = Literal["cpu", "memory", "gpus"]


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
    key: ShareKey = "memory"


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

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def by_age(self) -> tuple[datetime, str]:
        return self.node.metadata.creation_timestamp or _LONG_AGO, self.name

    @property
    def instance_type(self) -> str:
        return self.node.metadata.labels.get(INSTANCE_TYPE, "")

    @property
    def requested_percent(self) -> int:
        """The largest of the requested shares."""
        kinds = ("cpu", "memory", "gpus")
        return max(percent(getattr(self.requested, kind), getattr(self.allocatable, kind)) for kind in kinds)


def node_sums(node: Node, requested: ResourceAmounts, usage: Usage | None, *, pool_label: str = NODE_POOL) -> NodeSums:
    """Return the values of a node; `requested` is what the pods that hold it request, as a `NodeRoom` knows it."""
    return NodeSums(
        node=node,
        pool=node.metadata.labels.get(pool_label, ""),
        is_platform=is_platform(node, pool_label),
        status=node_status(node),
        pod_count=requested.get(PODS, 0),
        requested=summary(requested),
        allocatable=amounts(node.status.allocatable),
        used=None if usage is None else Amounts(usage.cpu_millicores, usage.memory_bytes),
    )


def node_status(node: Node) -> StatusLine:
    """Return the worst of the node's conditions in words, or "Ready"."""
    ready = {condition.type: condition for condition in node.status.conditions}.get("Ready")
    note = ", ".join(words for _condition, words in node_troubles(node))
    if ready is None:
        return StatusLine("wait", _("Joining"), _("it has not reported yet"))
    if ready.status == "Unknown":
        return StatusLine("problem", _("Lost"), ready.message.rstrip(".") or _("its kubelet no longer reports"))
    if ready.status != "True":
        return StatusLine("wait", _("Not ready"), "; ".join(filter(None, [ready.message.rstrip("."), note])))
    if note:
        return StatusLine("problem", _("In trouble"), note)
    if node.spec.unschedulable:
        return StatusLine("neutral", _("Ready"), _("closed for new pods (cordoned)"))
    return StatusLine("ok", _("Ready"))


def shares(
    requested: Amounts, allocatable: Amounts, used: Amounts | None, recent: Sequence[UsageSample] = ()
) -> tuple[Share, ...]:
    """Return the shares of CPU and memory, and of GPUs where there are some. `recent` is drawn while the usage is known."""

    def share(name: str, key: ShareKey, words: Callable[[int], str], unit: int = 1, column: str = "") -> Share:
        """`column` of the samples, counted in `unit`, is what was used; "" for what is not measured."""
        asked, whole = getattr(requested, key), getattr(allocatable, key)
        requests = Share(name, words(asked), words(whole), percent(asked, whole), key=key)
        if used is None or not column:
            return requests
        taken = getattr(used, key)
        line = usage_line(
            name, [(sample.minute, getattr(sample, column)) for sample in recent], whole // unit, taken // unit
        )
        return msgspec.structs.replace(requests, used=words(taken), used_percent=percent(taken, whole), line=line)

    measured = (
        share(_("CPU"), "cpu", format_cores, column="cpu_millicores"),
        share(_("Memory"), "memory", format_bytes, _MEBIBYTE, "memory_mebibytes"),
    )
    return (*measured, share(_("GPUs"), "gpus", str)) if allocatable.gpus or requested.gpus else measured
