"""Executions: the list, an execution's page, its logs, and stopping it.

An execution that the user may not see is 404, like one that does not exist.
"""

import asyncio
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.executions.history import ended_choices, ended_page
from dashboard.executions.kinds import PAGE_PARTS, face_of
from dashboard.executions.pages.execution import EXECUTION, ExecutionView, execution_fragments, person, present_head
from dashboard.executions.pages.executions import EXECUTIONS, rows_to_choose_from
from dashboard.executions.records import read_record
from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.executions.viewmodels.execution_actions import left_sentence
from dashboard.executions.viewmodels.executions import choices
from dashboard.executions.viewmodels.executions_view import TROUBLE, ExecutionsView, bounds, filter_chips
from dashboard.executions.viewmodels.timeline import lifecycle_text
from dashboard.logs.viewmodels.log import LogView
from dashboard.logs.views.logs import COMPONENT, execution_log_file, execution_log_view, late_log_view, log_answer
from dashboard.shell.access import Viewer, may_operate, may_see_execution, viewer_of
from dashboard.shell.exports import note_export_of
from dashboard.shell.viewmodels.states import ACTIVE_STATES, ENDED_STATES, KINDS
from dashboard.shell.views.live import live_page
from dashboard.shell.views.saved_views import opened_with_default
from grid.core.translation import gettext as _
from grid.database.changefeed import Change
from grid.runtime import Runtime, get_runtime

TABS = {"": _("What happened"), "events": _("Kubernetes events")}  # of the history
_LOG_SECONDS = 2.0  # that the page waits for its log; who asks for the log waits as long as the cluster takes


@require_safe
async def executions(request: HttpRequest) -> HttpResponse:
    asked = request.GET.dict()
    view = ExecutionsView.parse(asked)
    if not asked or asked == {"show": "ended"}:
        answer = await opened_with_default(request, view.show or "executions")
        if answer is not None:
            return answer
    viewer = await current_viewer(request)
    context: dict[str, Any] = {
        "kinds": KINDS,
        "problems": dict(bounds(view).problems),
        "tabs": {"": _("Running and waiting"), "ended": _("Ended")},
        "tab": view.show,
    }
    if view.show == "ended":
        page, offered = await sync_to_async(ended_page)(viewer, view), await sync_to_async(ended_choices)(viewer, view)
        context |= {"view": view, "page": page, "choices": offered, "states": ENDED_STATES}
        context |= {
            "chips": filter_chips(view, offered, ENDED_STATES),
            "newer": view.query(after=page.newer, before="") if page.newer else "",
            "older": view.query(before=page.older, after="") if page.older else "",
            "now": get_runtime().clock(),
        }
        ended = await sync_to_async(render)(request, "executions/executions_ended.html", context)
        ended["HX-Push-Url"] = request.path + view.query()
        return ended
    context["choices"] = choices(rows_to_choose_from(get_runtime(), viewer), view)
    context["states"] = {**ACTIVE_STATES, TROUBLE: _("In trouble")}
    context["chips"] = filter_chips(view, context["choices"], context["states"])
    query = QueryDict(view.query().removeprefix("?"))  # without the empty fields that a form sends along
    answer = await live_page(request, EXECUTIONS, "executions/executions.html", query=query, context=context)
    # The filter's script shows this as the page's URL.
    answer["HX-Push-Url"] = request.path + view.query()
    return answer


@require_safe
async def execution(request: HttpRequest, id: str) -> HttpResponse:
    """Show an execution: live while it is active and for an hour longer, then as stored, because it no longer changes."""
    runtime = get_runtime()
    before = runtime.executions.get(id)
    viewer, record = await seen(request, id)
    if runtime.executions.get(id) is None and not record.is_final:
        await runtime.executions.read_changes([Change(execution=id)])  # it was launched a moment ago
    who = person(viewer, record)
    asked = request.GET.get("tab", "")
    tab = asked if asked in TABS else ""
    context: dict[str, Any] = {"record": record, "tabs": TABS, "tab": tab, "person": who}
    context["logs_more"] = may_operate(viewer) and not record.is_final
    parts = [part(request, record, tab) for part in PAGE_PARTS]
    if who.may_read:
        parts.append(_log_part(request, runtime, record, None if asked == "log" else _LOG_SECONDS))
    for part in await asyncio.gather(*parts):
        context |= part
    context |= await sync_to_async(face_of(record.kind).context)(record, who)
    if runtime.executions.get(id) is not None:
        query = QueryDict(urlencode({"id": id, "tab": tab} if tab else {"id": id}))
        EXECUTION.remember(runtime, id, record, before)
        return await live_page(request, EXECUTION, "executions/execution.html", query=query, context=context)
    now = runtime.clock()
    context |= {"now": now, "fragments": execution_fragments(runtime, record, who, ExecutionView(id, tab), now)}
    return await sync_to_async(render)(request, "executions/execution.html", context)


async def _log_part(
    request: HttpRequest, runtime: Runtime, record: ExecutionRecord, seconds: float | None
) -> dict[str, LogView]:
    """Return the log as it came within so many seconds; after that a page without its lines, which its script fetches."""
    try:
        async with asyncio.timeout(seconds):
            return {"log": await execution_log_view(request, runtime, record)}
    except TimeoutError:
        return {"log": late_log_view(request, record)}


@require_safe
async def execution_log(request: HttpRequest, id: str) -> HttpResponseBase:
    """Return the log as a part of the page, with `?part=rows` its lines alone, or with `?download=1` as a text file."""
    viewer, record = await seen(request, id)
    if not person(viewer, record).may_read:
        hidden = {"log": LogView(is_hidden=True, problem=left_sentence(record))}
        return await sync_to_async(render)(request, COMPONENT, hidden, status=403)
    if request.GET.get("download") == "1":
        answer = await execution_log_file(request, get_runtime(), record)
        if answer.status_code == 200:
            await sync_to_async(note_export_of)(request, id, f"{record.object_name}.log")
        return answer
    return await log_answer(request, await execution_log_view(request, get_runtime(), record))


@require_safe
async def execution_lifecycle(request: HttpRequest, id: str) -> HttpResponse:
    viewer, record = await seen(request, id)
    reader, runtime = person(viewer, record), get_runtime()
    present = present_head(runtime, record, reader, runtime.clock())
    text = lifecycle_text(record, to_owner=reader.is_owner, may_read=reader.may_read, present=present)
    name = f"{record.object_name}-lifecycle.log"
    await sync_to_async(note_export_of)(request, id, name)
    disposition = f'attachment; filename="{name}"'
    return HttpResponse(text, content_type="text/plain; charset=utf-8", headers={"Content-Disposition": disposition})


async def current_viewer(request: HttpRequest) -> Viewer:
    viewer = await sync_to_async(viewer_of)(await request.auser())
    if viewer is None:
        raise PermissionDenied(_("You have no access to this page."))
    return viewer


async def seen(request: HttpRequest, execution_id: str) -> tuple[Viewer, ExecutionRecord]:
    viewer = await current_viewer(request)
    record = await sync_to_async(read_record)(execution_id)
    if record is None or not may_see_execution(viewer, record):
        raise Http404(EXECUTION.refusal)
    return viewer, record
