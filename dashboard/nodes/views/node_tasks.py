"""What operators do to a node: each after a page that says what it means. The controller carries it out."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.executions.pages.execution_pods import execution_of
from dashboard.nodes.pages.node import TASKS
from dashboard.nodes.viewmodels.node import cordon_sentences, drain_page
from dashboard.nodes.viewmodels.node_marks import MarkFacts, mark_lines, mark_preview
from dashboard.shell.access import may_operate
from dashboard.shell.views.fetching import TIMEOUT_SECONDS, problem_of
from grid.core.errors import GridError, Rejected
from grid.core.translation import gettext as _
from grid.core.workqueue import in_slices
from grid.diagnosis.nodeshapes import NodeShape, ShapeTally
from grid.kube.objects import Node, Pod
from grid.kube.resources import DISRUPTION_BUDGETS, PODS
from grid.kube.wholelist import read_all, read_chunks
from grid.models import HardwareTier, NodeTask, User
from grid.models.nodetask import REASON_LONGEST
from grid.nodes import nodetasks
from grid.nodes.drain import DisruptionBudget, EvictedData, drain_plan
from grid.nodes.nodemarks import EFFECTS, Mark, NodePlace, fingerprint, is_platform, refusal, tiers_changed, with_mark
from grid.runtime import Runtime, get_runtime
from grid.runtime.executionrows import ExecutionRow
from grid.runtime.poolshapes import NODES_AT_ONCE
from grid.tiers.tierdoctor import TierRequest
from grid.tiers.tierrequests import sidecars, tier_request

_ASKED = {
    "cordon": _("{name} is being cordoned."),
    "uncordon": _("{name} is being uncordoned."),
    "drain": _("{name} is being drained."),
}


@require_http_methods(["GET", "HEAD", "POST"])
async def node_cordon(request: HttpRequest, name: str) -> HttpResponse:
    """Ask for a reason and have the node cordoned; or have a cordoned node uncordoned."""
    node = await node_for_operators(request, name)
    problem: str | None = None
    if request.method == "POST":
        action = request.POST.get("do", "")
        problem = await _ask(request, node, action if action in ("cordon", "uncordon") else "")
        if not problem:
            return redirect("node", name=name)
    cordon, is_draining = nodetasks.cordon_of(node), await sync_to_async(nodetasks.is_draining)(name)
    action = NodeTask.Action.UNCORDON if cordon or is_draining else NodeTask.Action.CORDON
    context = {
        "is_cordoned": action == NodeTask.Action.UNCORDON,
        "action": action.value,
        "verb": action.label,
        "sentences": cordon_sentences(cordon, len(get_runtime().pods.by("node", name)), is_draining=is_draining),
    }
    return await _shown(request, "cordon", name, problem, context)


@require_http_methods(["GET", "HEAD", "POST"])
async def node_drain(request: HttpRequest, name: str) -> HttpResponse:
    """Show what a drain of the node would evict and whose it is; have it drained."""
    node = await node_for_operators(request, name)
    problem: str | None = None
    if request.method == "POST":
        problem = await _ask(request, node, "drain")
        if not problem:
            return redirect("node", name=name)
    runtime = get_runtime()
    pods = runtime.pods.by("node", name)
    volumes, budgets, unread = await read_for_plan(runtime, name)
    plan = drain_page(drain_plan(pods, volumes, budgets), executions_of(runtime, pods))
    return await _shown(request, "drain", name, problem, {"plan": plan, "unread": unread})


async def _shown(
    request: HttpRequest, page: str, name: str, problem: str | None, context: dict[str, Any]
) -> HttpResponse:
    """Render a page about the node; `problem` says why what was posted is refused."""
    whole = {"name": name, "problem": problem, **context, **reason_field(request)}
    status = 422 if problem and request.method == "POST" else 200
    return await sync_to_async(render)(request, f"nodes/node_{page}.html", whole, status=status)


async def read_for_plan(runtime: Runtime, name: str) -> tuple[list[EvictedData], list[DisruptionBudget], str]:
    """Return the volumes of the node's pods and all disruption budgets, and why one of both is missing."""
    volumes: list[EvictedData] = []
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            async for chunk in read_chunks(runtime.api, PODS, EvictedData, field_selector=f"spec.nodeName={name}"):
                volumes += chunk
            return volumes, await read_all(runtime.api, DISRUPTION_BUDGETS, DisruptionBudget), ""
    except (GridError, TimeoutError) as error:
        return volumes, [], problem_of(error)


async def node_for_operators(request: HttpRequest, name: str) -> Node:
    """Return the node. Raise PermissionDenied for whoever may not act, whether there is such a node or not."""
    if not await sync_to_async(may_operate)(request.user):
        raise PermissionDenied(_("Only operators and admins can change nodes."))
    node = get_runtime().nodes.get(name)
    if node is None:
        raise Http404(_("There is no node named {name}. It may have been removed by the autoscaler.", name=name))
    return node


async def record(request: HttpRequest, ask: Callable[..., NodeTask], done: str) -> str | None:
    """Have `ask` record the request, say that it is `done`, and return None; or return why it is refused."""
    user = await request.auser()
    assert isinstance(user, User)
    try:
        await sync_to_async(ask)(by=user, reason=request.POST.get("reason", ""), now=timezone.now())
    except Rejected as rejected:
        return rejected.sentences
    TASKS.forget()
    messages.success(request, done)
    return None


async def _ask(request: HttpRequest, node: Node, action: str) -> str | None:
    done = _ASKED.get(action, "").format(name=node.metadata.name)
    return await record(request, partial(nodetasks.ask, node, action), done)


def reason_field(request: HttpRequest) -> dict[str, Any]:
    """Return what `shell/fragments/reason_field.html` shows."""
    return {"reason": request.POST.get("reason", "")[:REASON_LONGEST], "longest": REASON_LONGEST}


def executions_of(runtime: Runtime, pods: Iterable[Pod]) -> dict[str, ExecutionRow]:
    """Return the pods' executions by the pod's uid."""
    return {pod.metadata.uid: row for pod in pods if (row := execution_of(runtime, pod)) is not None}


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
            ask = partial(nodetasks.ask_mark, node, mark, looked_at=request.POST.get("looked_at", ""))
            done = _("{mark} is being added to {node}.") if mark.adds else _("{mark} is being removed from {node}.")
            problem = await record(request, ask, done.format(mark=mark, node=name))
            if not problem:
                return redirect("node", name=name)
    taints, labels = mark_lines(node)
    context = {
        "taints": taints,
        "labels": labels,
        "effects": EFFECTS,
        "preview": preview,
        "looked_at": fingerprint(node),
    }
    return await _shown(request, "mark", name, problem, context)


def _mark(request: HttpRequest) -> Mark | None:
    """Return the change that the address or the form is about; None for none."""
    given = request.POST if request.method == "POST" else request.GET
    action = given.get("do", "")[:10]
    key, value, effect = (given.get(field, "").strip()[:_LONGEST] for field in ("key", "value", "effect"))
    return Mark(action, key, value, effect if action in ("taint", "untaint") else "") if action else None


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
