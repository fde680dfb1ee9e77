"""Changing a node's taints and labels: a page with what it has, then one that says what the change would do. The controller does it."""

from collections.abc import Mapping, Sequence
from functools import partial

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard.nodes.viewmodels.node_marks import MarkFacts, mark_lines, mark_preview
from dashboard.nodes.views.node_tasks import executions_of, node_for_operators, read_for_plan, reason_field, record
from grid.core.translation import gettext as _
from grid.core.workqueue import in_slices
from grid.diagnosis.nodeshapes import NodeShape, ShapeTally
from grid.kube.objects import Node
from grid.models import HardwareTier
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
    problem, preview = (_("Choose what to add or remove.") if request.method == "POST" else None), None
    if mark is not None:
        preview = mark_preview(mark, await _facts(get_runtime(), node, mark), pool_label=settings.NODE_POOL_LABEL)
        problem = preview.refusal
        if request.method == "POST" and not problem:
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
        **reason_field(request),
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
    ask = partial(nodetasks.ask_mark, node, mark, looked_at=request.POST.get("looked_at", ""))
    done = _("{mark} is being added to {node}.") if mark.adds else _("{mark} is being removed from {node}.")
    return await record(request, ask, done.format(mark=mark, node=node.metadata.name))


async def _facts(runtime: Runtime, node: Node, mark: Mark) -> MarkFacts:
    name = node.metadata.name
    pods = runtime.pods.by("node", name)
    rows = executions_of(runtime, pods)
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
    async for node in in_slices(runtime.nodes.by("pool", pool), NODES_AT_ONCE):
        if node.metadata.name != name:
            tally.count(node, runtime.room.own(node.metadata.name))
    return tally.shapes()


def _tiers() -> Mapping[str, TierRequest]:
    containers = sidecars()
    return {tier.name: tier_request(tier, containers) for tier in HardwareTier.objects.filter(is_archived=False)}
