"""What operators do to a node: each after a page that says what it means. The controller carries it out."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.executions.pages.execution_pods import execution_of
from dashboard.nodes.pages.node import TASKS
from dashboard.nodes.viewmodels.node_drain import drain_page
from dashboard.nodes.viewmodels.node_tasks import cordon_sentences
from dashboard.shell.access import may_operate
from dashboard.shell.views.fetching import TIMEOUT_SECONDS, problem_of
from grid.core.errors import GridError, Rejected
from grid.core.translation import gettext as _
from grid.kube.objects import Node, Pod
from grid.kube.resources import DISRUPTION_BUDGETS, PODS
from grid.kube.wholelist import read_all, read_chunks
from grid.models import NodeTask, User
from grid.models.nodetask import REASON_LONGEST
from grid.nodes import nodetasks
from grid.nodes.drain import DisruptionBudget, EvictedData, drain_plan
from grid.runtime import Runtime, get_runtime
from grid.runtime.executionrows import ExecutionRow

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
        "name": name,
        "is_cordoned": action == NodeTask.Action.UNCORDON,
        "action": action.value,
        "verb": action.label,
        "sentences": cordon_sentences(cordon, len(get_runtime().pods.by("node", name)), is_draining=is_draining),
        "problem": problem,
        **reason_field(request),
    }
    status = 422 if problem else 200
    return await sync_to_async(render)(request, "nodes/node_cordon.html", context, status=status)


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
    context = {
        "name": name,
        "plan": drain_page(drain_plan(pods, volumes, budgets), executions_of(runtime, pods)),
        "unread": unread,
        "problem": problem,
        **reason_field(request),
    }
    status = 422 if problem else 200
    return await sync_to_async(render)(request, "nodes/node_drain.html", context, status=status)


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
