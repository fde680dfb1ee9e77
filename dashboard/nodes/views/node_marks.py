"""Changing a node's taints and labels: a page with what it has, then one that says what the change would do. The controller does it."""

from collections.abc import Mapping, Sequence

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.executions.pages.execution_pods import execution_of
from dashboard.nodes.pages.node import TASKS
from dashboard.nodes.viewmodels.node_marks import MarkFacts, mark_lines, mark_preview
from dashboard.nodes.views.node_tasks import node_for_operators, read_for_plan
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.core.workqueue import in_slices
from grid.diagnosis.nodeshapes import NodeShape, ShapeTally
from grid.kube.objects import Node
from grid.models import HardwareTier, User
from grid.models.nodetask import REASON_LONGEST
from grid.nodes import nodetasks
from grid.nodes.nodemarks import EFFECTS, Mark, NodePlace, fingerprint, is_platform, refusal, tiers_changed, with_mark
from grid.runtime import Runtime, get_runtime
from grid.runtime.poolshapes import NODES_AT_ONCE
from grid.tiers.tierdoctor import TierRequest
from grid.tiers.tierrequests import sidecars, tier_request

_LONGEST = 400  # beyond any key or value; such a text is refused with a sentence


@require_http_methods(["GET", "HEAD", "POST"])
async def node_mark(request: HttpRequest, name: str) -> HttpResponse:
    """Show the node's taints and labels; with one to add or remove, what that would do; have it done."""
    node = await node_for_operators(request, name)
    mark = _mark(request)
    problem: str | None = None
    preview = None
    if mark is not None:
        preview = mark_preview(mark, await _facts(get_runtime(), node, mark), pool_label=settings.NODE_POOL_LABEL)
        problem = preview.refusal
    elif request.method == "POST":
        problem = _("Choose what to add or remove.")
    if request.method == "POST" and mark is not None and not problem:
        problem = await _ask(request, node, mark)
        if not problem:
            return redirect("node", name=name)
    taints, labels = mark_lines(node)
    context = {
        "name": name,
        "taints": taints,
        "labels": labels,
        "effects": EFFECTS,
        "preview": preview,
        "problem": problem,
        "looked_at": fingerprint(node),
        "reason": request.POST.get("reason", "")[:REASON_LONGEST],
        "longest": REASON_LONGEST,
    }
    status = 422 if problem and request.method == "POST" else 200
    return await sync_to_async(render)(request, "nodes/node_mark.html", context, status=status)


def _mark(request: HttpRequest) -> Mark | None:
    """Return the change that the address or the form is about; None for none."""
    given = request.POST if request.method == "POST" else request.GET
    action = given.get("do", "")
    if not action:
        return None
    key, value, effect = (given.get(field, "").strip()[:_LONGEST] for field in ("key", "value", "effect"))
    return Mark(action[:10], key, value, effect if action in ("taint", "untaint") else "")


async def _ask(request: HttpRequest, node: Node, mark: Mark) -> str | None:
    """Record the request and return None, or why it is refused."""
    user = await request.auser()
    assert isinstance(user, User)
    reason, looked_at = request.POST.get("reason", ""), request.POST.get("looked_at", "")
    try:
        await sync_to_async(nodetasks.ask_mark)(
            node, mark, looked_at=looked_at, by=user, reason=reason, now=timezone.now()
        )
    except Rejected as rejected:
        return rejected.sentences
    TASKS.forget()
    named = {"mark": mark, "node": node.metadata.name}
    messages.success(
        request,
        _("{mark} is being added to {node}.", **named)
        if mark.adds
        else _("{mark} is being removed from {node}.", **named),
    )
    return None


async def _facts(runtime: Runtime, node: Node, mark: Mark) -> MarkFacts:
    name = node.metadata.name
    pods = runtime.pods.by("node", name)
    rows = {pod.metadata.uid: row for pod in pods if (row := execution_of(runtime, pod)) is not None}
    if refusal(mark, node):
        return MarkFacts(node, pods, rows)
    evicts = mark.effect == "NoExecute" and mark.adds
    volumes, budgets, unread = await read_for_plan(runtime, name) if evicts else ([], [], "")
    before, after = _place(runtime, node), _place(runtime, with_mark(node, mark))
    others = {pool: await _others(runtime, pool, name) for pool in {before.pool, after.pool} if pool}
    lost, gained = tiers_changed(await sync_to_async(_tiers)(), others, before, after)
    return MarkFacts(node, pods, rows, volumes, budgets, unread, lost, gained)


def _place(runtime: Runtime, node: Node) -> NodePlace:
    tally = ShapeTally()
    tally.count(node, runtime.room.own(node.metadata.name))
    label = settings.NODE_POOL_LABEL
    pool = "" if is_platform(node, label) else node.metadata.labels.get(label, "")
    return NodePlace(pool, tally.shapes()[0])


async def _others(runtime: Runtime, pool: str, name: str) -> Sequence[NodeShape]:
    """Return the shapes of the pool's nodes without the one of this name."""
    tally = ShapeTally()
    async for one in in_slices(runtime.nodes.by("pool", pool), NODES_AT_ONCE):
        if one.metadata.name != name:
            tally.count(one, runtime.room.own(one.metadata.name))
    return tally.shapes()


def _tiers() -> Mapping[str, TierRequest]:
    beside = sidecars()
    return {one.name: tier_request(one, beside) for one in HardwareTier.objects.filter(is_archived=False)}
