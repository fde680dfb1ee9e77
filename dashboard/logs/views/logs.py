"""The log viewer of executions and pods: the page's log, newer and earlier lines for its script, and the download."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard.logs.records import final_log, lost_lines
from dashboard.logs.viewmodels.log import (
    ALL,
    MAIN_CONTAINER,
    LogElsewhere,
    LoggedExecution,
    LogQuery,
    LogSource,
    LogView,
    all_source,
    elsewhere,
    log_source,
    why_no_log,
)
from dashboard.logs.viewmodels.log_lines import cursor_before, parse_cursor
from dashboard.logs.views.log_reading import LogLines, kept_lines, read_lines, read_rows
from dashboard.shell.views.fetching import TIMEOUT_SECONDS, problem_of
from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.executions.apply import LOG_BYTES, LOG_LINES
from grid.kube.objects import Pod
from grid.runtime import Runtime

COMPONENT = "logs/fragments/log.html"
_ROWS = "logs/fragments/log_rows.html"
_INCOMPLETE = _("The log is not complete.")


async def execution_log_view(request: HttpRequest, runtime: Runtime, record: LoggedExecution) -> LogView:
    """Return the log of the execution's pods while there are some, else the stored end of the log."""
    asked = LogQuery.parse(request.GET.dict())
    source = execution_source(runtime, record, asked)
    pages = reverse("execution", args=[record.id]), reverse("execution-log", args=[record.id])
    view = LogView(*pages, asked=asked, source=source, elsewhere=await _elsewhere(record.id))
    if source is not None and not source.has_started:
        return replace(view, is_live=source.is_live, why_empty=why_no_log(record))
    lines = await read_lines(runtime, source, asked) if source else LogLines()
    if source is not None and not (lines.problem and record.is_final):
        return await _with_lines(view, lines)
    # The pod is gone, or the watch has not said so yet.
    if record.is_final and any(place.stamp for place in parse_cursor(asked.before or asked.after).values()):
        return replace(view, problem=_("The pod has ended. Reload this page to see what was kept of its log."))
    if kept := await sync_to_async(final_log)(record.id):
        return await _with_lines(replace(view, source=None, scope=_kept_scope(kept)), await kept_lines(kept, asked))
    return replace(view, problem=lines.problem, is_live=not record.is_final, why_empty=why_no_log(record))


async def _elsewhere(id: str) -> LogElsewhere | None:
    lost = await sync_to_async(lost_lines)(id) if settings.LOG_LINK else 0
    return elsewhere(settings.LOG_LINK, settings.LOG_LINK_NAME, id, lost)


async def pod_log_view(request: HttpRequest, runtime: Runtime, namespace: str, name: str) -> LogView:
    asked = LogQuery.parse(request.GET.dict())
    source = pod_source(runtime, namespace, name, asked)
    pages = reverse("pod", args=[namespace, name]), reverse("pod-log", args=[namespace, name])
    view = LogView(*pages, asked=asked, source=source)
    if source is None:
        return replace(view, problem=_("The pod is gone from the cluster, and its log with it."))
    if not source.has_started:
        why = _("This container has not started yet. The log appears here as soon as it writes something.")
        return replace(view, is_live=source.is_live, why_empty=why)
    return await _with_lines(view, await read_lines(runtime, source, asked))


async def log_answer(request: HttpRequest, view: LogView) -> HttpResponse:
    """Return the lines alone, for the script, or the whole log as a part of a page."""
    template = _ROWS if request.GET.get("part") == "rows" else COMPONENT
    return await sync_to_async(render)(request, template, {"log": view})


def execution_source(runtime: Runtime, record: LoggedExecution, asked: LogQuery) -> LogSource | None:
    labelled = runtime.pods.by("execution", record.id)
    pods = [pod for pod in labelled if pod.metadata.namespace == settings.GRID_NAMESPACE]
    if not record.has_members:
        return log_source(pods, asked, main=record.object_name)
    together = all_source(pods)
    chosen = log_source([pod for pod in pods if pod.metadata.name == asked.pod], asked, main=asked.pod)
    return replace(chosen, pods=together.pods) if chosen and together else together


def pod_source(runtime: Runtime, namespace: str, name: str, asked: LogQuery) -> LogSource | None:
    pod: Pod | None = runtime.pods.get(f"{namespace}/{name}")
    return log_source([pod] if pod else [], asked, main=name)


async def execution_log_file(request: HttpRequest, runtime: Runtime, record: LoggedExecution) -> HttpResponseBase:
    """Return all that the cluster has, pod after pod, or else the stored end of the log."""
    asked = LogQuery.parse(request.GET.dict())
    source = execution_source(runtime, record, asked)
    if source is not None and source.has_started:
        answer = await log_file(runtime, source, record.object_name)
        if answer.status_code == 200 or not record.is_final:
            return answer
    if kept := await sync_to_async(final_log)(record.id):
        return _attached(HttpResponse(kept, content_type="text/plain; charset=utf-8"), record.object_name)
    return _refusal(why_no_log(record), 404)


async def log_file(runtime: Runtime, source: LogSource | None, name: str) -> HttpResponseBase:
    """Stream the logs as they come from the API server. One that fails at once is a sentence instead of a file."""
    if source is None or not source.has_started:
        return _refusal(_("There is no log yet, or the pod is gone."), 404)
    if source.pod == ALL:
        return _attached(_streamed(_one_after_the_other(runtime, source)), name)
    chunks = _chunks(runtime, source, source.pod)
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            first = await anext(chunks, b"")
    except (GridError, TimeoutError) as error:
        return _refusal(problem_of(error), 503)
    container = source.container if source.container != MAIN_CONTAINER else ""
    parts = (source.pod, container, "previous" if source.is_previous else "")
    return _attached(_streamed(_to_the_end(chunks, first)), "-".join(part for part in parts if part))


def _chunks(runtime: Runtime, source: LogSource, pod: str) -> AsyncIterator[bytes]:
    return runtime.api.logs(pod, namespace=source.namespace, container=source.container, previous=source.is_previous)


async def _one_after_the_other(runtime: Runtime, source: LogSource) -> AsyncIterator[bytes]:
    for number, (_unused, pod) in enumerate(source.members):
        heading = f"{'' if number == 0 else chr(10)}==> {pod} <==\n"
        async for chunk in _to_the_end(_chunks(runtime, source, pod), heading.encode()):
            yield chunk


async def _to_the_end(chunks: AsyncIterator[bytes], first: bytes) -> AsyncIterator[bytes]:
    """Yield all of a log. The status has been sent, so an error can only be said in the file."""
    yield first
    try:
        async for chunk in chunks:
            yield chunk
    except GridError as error:
        yield f"\n--- {_INCOMPLETE} {problem_of(error)} ---\n".encode()


def _streamed(chunks: AsyncIterator[bytes]) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(chunks, content_type="text/plain; charset=utf-8")
    # Django's gzip makes a file of its own of each chunk, of which browsers read the first and drop the rest.
    answer["Content-Encoding"] = "identity"
    return answer


async def _with_lines(view: LogView, read: LogLines) -> LogView:
    before, after = parse_cursor(view.asked.before), parse_cursor(view.asked.after)
    newest = max((place.stamp for place in after.values()), default="")
    source = view.source
    is_live = bool(source and source.is_live and not before)
    rows, problem = await read_rows(read, newest[:10])
    return replace(
        view,
        rows=rows,
        before=cursor_before(read.lines, before) if read.has_earlier or after else {},
        after=(dict(read.newest) or after) if is_live else {},
        is_live=is_live,
        seconds=max(2, len(source.members) // 4) if source else 2,  # each pod takes a request
        has_gap=read.has_gap,
        problem=problem,
        note=read.note,
    )


def _kept_scope(kept: str) -> str:
    is_cut = len(kept.encode()) > LOG_BYTES - 4 or kept.count("\n") >= LOG_LINES
    end = _("The whole log was kept.")
    if is_cut:
        kept_end = _("Only its end was kept: the last {log_bytes} KiB or {log_lines:,} lines.")
        end = kept_end.format(log_bytes=LOG_BYTES // 1024, log_lines=LOG_LINES)
    return _("The pod has ended. {end}", end=end)


def _attached(answer: HttpResponseBase, name: str) -> HttpResponseBase:
    answer["Content-Disposition"] = f'attachment; filename="{name}.log"'
    return answer


def _refusal(sentence: str, status: int) -> HttpResponse:
    return HttpResponse(f"{sentence}\n", content_type="text/plain; charset=utf-8", status=status)
