"""What operators do to nodes, each after a page that says what it means, and the controller carries out; and the limits of node pools, set
here where the autoscaler takes them, which is the embedded cluster's, told where elsewhere."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

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
from dashboard.nodes.viewmodels.pool_limits import MOST_NODES, Limits, PricedTier, parse_limits, preview
from dashboard.shell.access import may_observe, may_operate, user_of
from dashboard.shell.views.fetching import TIMEOUT_SECONDS, problem_of
from grid.core.errors import Conflict, GridError, NotAllowed, NotFound, Rejected
from grid.core.translation import gettext as _
from grid.core.wording import one_line
from grid.core.workqueue import in_slices
from grid.diagnosis.nodeshapes import NodeShape, PoolShapes, ShapeTally
from grid.kube.listing import read_all, read_chunks
from grid.kube.objects import Node, Pod
from grid.kube.pools import NodeGroup
from grid.kube.resources import DISRUPTION_BUDGETS, PODS
from grid.models import AuditEntry, HardwareTier, NodeTask, User
from grid.models.dataplane import LOCAL
from grid.models.platform import REASON_LONGEST
from grid.nodes import nodetasks
from grid.nodes.drain import DisruptionBudget, EvictedData, drain_plan
from grid.nodes.nodemarks import EFFECTS, Mark, NodePlace, fingerprint, is_platform, refusal, tiers_changed, with_mark
from grid.runtime import Runtime, get_runtime
from grid.runtime.caches import NODES_AT_ONCE, pool_shapes
from grid.runtime.executionrows import ExecutionRow
from grid.tiers.tierdoctor import TierRequest
from grid.tiers.tierrequests import sidecars, tier_request

_ASKED = {
    "cordon": _("{name} is being cordoned."),
    "uncordon": _("{name} is being uncordoned."),
    "drain": _("{name} is being drained."),
}
_LONGEST = 400  # beyond any key or value; such a text is refused with a sentence


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
    user = await sync_to_async(user_of)(request)
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
    return {"reason": request.POST.get("reason", "")[:REASON_LONGEST], "longest": REASON_LONGEST}


def executions_of(runtime: Runtime, pods: Iterable[Pod]) -> dict[str, ExecutionRow]:
    return {pod.metadata.uid: row for pod in pods if (row := execution_of(runtime, pod)) is not None}


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


@require_http_methods(["GET", "HEAD", "POST"])
async def pool_limits(request: HttpRequest, name: str) -> HttpResponse:
    """Show the pool's limits; with others, what they would do; have them set where the autoscaler takes them."""
    may_act = await sync_to_async(may_operate)(request.user)
    if not await sync_to_async(may_observe)(request.user) or (request.method == "POST" and not may_act):
        raise PermissionDenied(_("Only operators and admins can change node pools."))
    runtime = get_runtime()
    group = runtime.groups.by_pool().get(name)
    if group is None:
        raise Http404(_("The autoscaler knows no node pool named {name}.", name=name))
    is_taken, unknown = await _is_taken(runtime)
    limits, problem = _typed(request, group) if is_taken else (None, "")
    if request.method == "POST" and limits is not None:
        problem = await _set(request, runtime, group, limits)
        if not problem:
            numbers = {"minimum": limits.minimum, "maximum": limits.maximum}
            done = _("{name} has from {minimum} to {maximum} nodes within seconds.", name=name, **numbers)
            messages.success(request, done)
            return redirect("infrastructure")
    context = {
        "name": name,
        "group": group,
        "was": Limits(group.minimum, group.maximum),
        "is_taken": is_taken,
        "unknown": unknown,
        "may_act": may_act,
        "limits": limits,
        "consequences": [*preview(group, limits, *await _pool_facts(runtime, name))] if limits is not None else (),
        "problem": problem,
        "most": MOST_NODES,
        **reason_field(request),
    }
    status = 422 if request.method == "POST" else 200
    return await sync_to_async(render)(request, "nodes/pool_limits.html", context, status=status)


def _typed(request: HttpRequest, group: NodeGroup) -> tuple[Limits | None, str]:
    """Return the limits that the address or the form is about, and what is wrong with them."""
    given = request.POST if request.method == "POST" else request.GET
    if request.method != "POST" and "minimum" not in given:
        return None, ""
    limits, problem = parse_limits(given.get("minimum", ""), given.get("maximum", ""))
    if limits == Limits(group.minimum, group.maximum):
        return None, _("The pool has these limits already.")
    return limits, problem


async def _pool_facts(runtime: Runtime, name: str) -> tuple[PoolShapes, Sequence[PricedTier], int]:
    shapes = await pool_shapes(runtime.data_planes[LOCAL], only=name)
    tiers = await sync_to_async(_priced_tiers)(name)
    return shapes.get(name, PoolShapes(name)), tiers, runtime.pods.counts("awaited_pool").get(name, 0)


def _priced_tiers(pool: str) -> Sequence[PricedTier]:
    containers = sidecars()
    tiers = HardwareTier.objects.filter(is_archived=False, node_pool=pool)
    return [PricedTier(tier.name, tier_request(tier, containers), tier.cost_per_hour) for tier in tiers]


async def _is_taken(runtime: Runtime) -> tuple[bool, str]:
    """Return whether the cluster's autoscaler takes limits from here, and why that is not known."""
    try:
        await runtime.api.ask_sandbox("GET", "pools")
    except (NotFound, NotAllowed):
        return False, ""
    except GridError as error:
        return False, problem_of(error)
    return True, ""


async def _set(request: HttpRequest, runtime: Runtime, group: NodeGroup, limits: Limits) -> str:
    """Set the limits, with an audit entry, and return "", or why it was not done."""
    user = await sync_to_async(user_of)(request)
    reason = one_line(request.POST.get("reason", ""))
    if not reason or len(reason) > REASON_LONGEST:
        return _("Say why in at most {longest} characters: the audit log keeps it.", longest=REASON_LONGEST)
    was = Limits(group.minimum, group.maximum)
    if request.POST.get("was", "") != str(was):
        return _("The pool's limits have changed since this page was loaded. Look again at the preview.")
    changes = {"minimum": [was.minimum, limits.minimum], "maximum": [was.maximum, limits.maximum]}
    # Before it is done: the autoscaler cannot be part of the transaction, and what was done must not be missing.
    await sync_to_async(_write)(user, group.name, {**changes, "reason": ["", reason]})
    body = {"minimum": limits.minimum, "maximum": limits.maximum, "was": [was.minimum, was.maximum]}
    try:
        await runtime.api.ask_sandbox("PATCH", f"pools/{quote(group.name, safe='')}", body)
        return ""
    except Conflict as error:
        problem = _("{error} Look again at the preview.", error=error)
    except GridError as error:
        problem = _("Nothing was changed: {error}", error=error)
    await sync_to_async(_write)(user, group.name, {"not done": ["", problem]})
    return problem


def _write(user: User, pool: str, changes: dict[str, Any]) -> None:
    changed = {name: values for name, values in changes.items() if values[0] != values[1]}
    about = {"object_type": "nodepool", "object_id": pool[:200], "object_name": pool[:200]}
    who = {"actor": user, "actor_name": user.get_username()}
    AuditEntry.objects.create(action=AuditEntry.Action.CHANGED, changes=changed, **about, **who)
