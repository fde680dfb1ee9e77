"""A node pool's minimum and maximum: set here where the autoscaler takes them, which is the embedded cluster's; told where elsewhere."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard.nodes.viewmodels.pool_limits import MOST_NODES, Limits, PricedTier, parse_limits, preview
from dashboard.nodes.views.node_tasks import reason_field
from dashboard.shell.access import may_observe, may_operate
from dashboard.shell.views.fetching import problem_of
from grid.core.errors import Conflict, GridError, NotAllowed, NotFound
from grid.core.translation import gettext as _
from grid.core.wording import one_line
from grid.diagnosis.nodeshapes import PoolShapes
from grid.kube.pools import NodeGroup
from grid.models import AuditEntry, HardwareTier, User
from grid.models.dataplane import LOCAL
from grid.models.nodetask import REASON_LONGEST
from grid.runtime import Runtime, get_runtime
from grid.runtime.poolshapes import pool_shapes
from grid.tiers.tierrequests import sidecars, tier_request


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
        "consequences": [*preview(group, limits, *await _facts(runtime, name))] if limits is not None else (),
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


async def _facts(runtime: Runtime, name: str) -> tuple[PoolShapes, Sequence[PricedTier], int]:
    shapes = await pool_shapes(runtime.data_planes[LOCAL], only=name)
    tiers = await sync_to_async(_tiers)(name)
    return shapes.get(name, PoolShapes(name)), tiers, runtime.pods.counts("awaited_pool").get(name, 0)


def _tiers(pool: str) -> Sequence[PricedTier]:
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
    user = await request.auser()
    assert isinstance(user, User)
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
    except Conflict as error:
        problem = _("{error} Look again at the preview.", error=error)
    except GridError as error:
        problem = _("Nothing was changed: {error}", error=error)
    else:
        return ""
    await sync_to_async(_write)(user, group.name, {"not done": ["", problem]})
    return problem


def _write(user: User, pool: str, changes: dict[str, Any]) -> None:
    changed = {name: values for name, values in changes.items() if values[0] != values[1]}
    about = {"object_type": "nodepool", "object_id": pool[:200], "object_name": pool[:200]}
    who = {"actor": user, "actor_name": user.get_username()}
    AuditEntry.objects.create(action=AuditEntry.Action.CHANGED, changes=changed, **about, **who)
