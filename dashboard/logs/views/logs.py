"""The log viewer of executions and pods: the page's log, newer and earlier lines for its script, and the download."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse

from dashboard.logs.viewmodels import log_lines
from dashboard.logs.viewmodels.log import (
    ALL,
    MAIN_CONTAINER,
    MERGED_PODS,
    LogElsewhere,
    LoggedExecution,
    LogQuery,
    LogSource,
    LogView,
    all_source,
    log_source,
    why_no_log,
)
from dashboard.shell.views.fetching import TIMEOUT_SECONDS, problem_of
from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis import logfindings
from grid.edge import textwork
from grid.executions.apply import LOG_BYTES, LOG_LINES
from grid.kube.objects import Pod
from grid.models import ExecutionLog, ShippedLog
from grid.runtime import Runtime

COMPONENT = "logs/fragments/log.html"
_ROWS = "logs/fragments/log_rows.html"
_INCOMPLETE = _("The log is not complete.")
_AT_ONCE = 6
_BATCH_BYTES = 64 * 1024
_NEW_LINES = 2000  # per pod, of what was written since the last request
_ROW_BYTES = 32  # of text that take as long as an empty row
_TOO_LONG = _(
    "This log is too long to be searched here within {seconds:.0f} seconds. Download it and search in the file.",
    seconds=TIMEOUT_SECONDS,
)
# Kubernetes knows no "before": more and more of the end is read, until it reaches back far enough. None is the whole log.
_DEPTHS = (log_lines.PAGE_LINES + 1, 4 * log_lines.PAGE_LINES, 20 * log_lines.PAGE_LINES, None)


@dataclass(frozen=True, slots=True)
class LogLines:
    """The lines of one page; `has_earlier` says whether there are lines before them."""

    lines: tuple[log_lines.RawLine, ...] = ()
    has_earlier: bool = False
    has_gap: bool = False  # more was written since the last request than is shown
    problem: str = ""
    note: str = ""
    newest: tuple[tuple[str, log_lines.LogPosition], ...] = ()  # how far each pod was read


def final_log(execution_id: str) -> str:
    """Return the end of the log, which was stored when the pod was removed; "" when there is none."""
    return ExecutionLog.objects.filter(pk=execution_id).values_list("text", flat=True).first() or ""


def lost_lines(execution_id: str) -> int:
    """Return how many lines of the execution's log are missing at the log receiver."""
    return ShippedLog.objects.filter(pk=execution_id).values_list("lost", flat=True).first() or 0


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
    if record.is_final and any(place.stamp for place in log_lines.parse_cursor(asked.before or asked.after).values()):
        return replace(view, problem=_("The pod has ended. Reload this page to see what was kept of its log."))
    if kept := await sync_to_async(final_log)(record.id):
        return await _with_lines(replace(view, source=None, scope=_kept_scope(kept)), await kept_lines(kept, asked))
    return replace(view, problem=lines.problem, is_live=not record.is_final, why_empty=why_no_log(record))


def late_log_view(request: HttpRequest, record: LoggedExecution) -> LogView:
    """Return the view of a log that takes long to come: its script goes on asking."""
    pages = reverse("execution", args=[record.id]), reverse("execution-log", args=[record.id])
    why = _("The cluster takes long to send the log. It appears here as soon as it comes.")
    return LogView(*pages, asked=LogQuery.parse(request.GET.dict()), is_live=True, why_empty=why)


async def _elsewhere(id: str) -> LogElsewhere | None:
    """Return where all lines are, as the setting's template says; None without one."""
    if not settings.LOG_LINK:
        return None
    url = settings.LOG_LINK.replace("{execution}", quote(id, safe=""))
    return LogElsewhere(settings.LOG_LINK_NAME, url, await sync_to_async(lost_lines)(id))


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
    source = execution_source(runtime, record, LogQuery.parse(request.GET.dict()))
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
    before, after = log_lines.parse_cursor(view.asked.before), log_lines.parse_cursor(view.asked.after)
    newest = max((place.stamp for place in after.values()), default="")
    source = view.source
    is_live = bool(source and source.is_live and not before)
    rows, problem = await read_rows(read, newest[:10])
    return replace(
        view,
        rows=rows,
        before=log_lines.cursor_text(log_lines.cursor_before(read.lines, before)) if read.has_earlier or after else "",
        after=log_lines.cursor_text(dict(read.newest) or after) if is_live else "",
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


async def read_lines(runtime: Runtime, source: LogSource, asked: LogQuery) -> LogLines:
    members = source.members[:MERGED_PODS]
    before, after = log_lines.parse_cursor(asked.before), log_lines.parse_cursor(asked.after)
    turn = asyncio.Semaphore(_AT_ONCE)

    async def of(member: str, pod: str) -> LogLines:
        reading = _Reading(runtime, replace(source, pod=pod), member, asked)
        async with turn:
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    if member in after:
                        return await reading.newer(after[member])
                    return await reading.older(log_lines.place_before(before, member))
            except textwork.TextWorkFailed as error:
                return LogLines(problem=_with_download(error))
            except TimeoutError as error:
                return LogLines(problem=_TOO_LONG if asked.is_filter else problem_of(error))
            except GridError as error:
                return LogLines(problem=problem_of(error))

    logs = await asyncio.gather(*(of(*member) for member in members))
    problems = [log.problem for log in logs if log.problem]
    if problems and len(problems) == len(logs):
        return LogLines(problem=problems[0])
    lines, notes = log_lines.merged([log.lines for log in logs]), []
    if problems:
        pods = plural(len(problems), "pod", "pods")
        notes.append(_("The logs of {pods} could not be fetched: {problem}", pods=pods, problem=problems[0]))
    if len(source.members) > len(members):
        few = _("Only {shown} of {total} pods are shown together, the newest ones; choose a pod to see its log.")
        notes.append(few.format(shown=len(members), total=len(source.members)))
    shown = log_lines.newest(lines, _NEW_LINES if after else log_lines.PAGE_LINES)
    is_cut = len(lines) > len(shown)
    return LogLines(
        lines=tuple(shown),
        has_earlier=any(log.has_earlier for log in logs) or is_cut,
        has_gap=bool(after) and (any(log.has_gap for log in logs) or is_cut),
        note=" ".join(notes),
        newest=(
            *((member, after[member]) for member, _ in members if member in after),
            *(place for log in logs for place in log.newest),
        ),
    )


async def kept_lines(text: str, asked: LogQuery) -> LogLines:
    before = log_lines.parse_cursor(asked.before).get("")
    try:
        lines, has_earlier = await textwork.workers.run(
            log_lines.kept_page, text, before, asked.q, asked.level, size=len(text) if asked.is_filter else 0
        )
    except textwork.TextWorkFailed as error:
        return LogLines(problem=_with_download(error))
    return LogLines(lines=tuple(lines), has_earlier=has_earlier)


async def read_rows(read: LogLines, day: str = "") -> tuple[list[log_lines.LogRow], str]:
    """Return the rows, or none and why they cannot be shown; `day` is that of the line before them."""
    size = sum(len(text) + _ROW_BYTES for _, _, text in read.lines)
    patterns = logfindings.in_force().patterns
    try:
        return await textwork.workers.run(log_lines.known_rows, patterns, read.lines, day, size=size), read.problem
    except textwork.TextWorkFailed as error:
        return [], _with_download(error)


def _with_download(error: textwork.TextWorkFailed) -> str:
    return _("{error} Download the log to read it.", error=error)


@dataclass(frozen=True, slots=True)
class _Reading:
    runtime: Runtime
    source: LogSource
    member: str
    asked: LogQuery

    async def older(self, before: log_lines.LogPosition | None) -> LogLines:
        """Return the last lines before the place, or of the whole log."""
        for depth in _DEPTHS:
            read = log_lines.PodLines(self.member, before=before)
            await self._read(read, tail_lines=depth)
            lines = read.lines()
            is_whole = depth is None or read.taken < depth
            hidden = before.count if before else 0
            if is_whole or (len(lines) == log_lines.PAGE_LINES and read.passed - hidden > log_lines.PAGE_LINES):
                break
        newest = ((self.member, log_lines.LogPosition(read.latest)),) if read.latest else ()
        return LogLines(lines=tuple(lines), has_earlier=read.passed - hidden > len(lines), newest=newest)

    async def newer(self, after: log_lines.LogPosition) -> LogLines:
        read = log_lines.PodLines(self.member, keep=_NEW_LINES, after=after)
        since = f"{after.stamp[:19]}Z" if after.stamp else ""
        await self._read(read, tail_lines=_NEW_LINES, since=since)
        lines = read.lines()
        newest = ((self.member, log_lines.LogPosition(max(after.stamp, read.latest))),)
        has_gap = (read.taken >= _NEW_LINES and read.first > after.stamp) or read.passed > len(lines)
        return LogLines(lines=tuple(lines), has_gap=has_gap, newest=newest)

    async def _read(self, into: log_lines.PodLines, *, tail_lines: int | None, since: str = "") -> None:
        source = self.source
        chunks = self.runtime.api.logs(
            source.pod,
            namespace=source.namespace,
            container=source.container,
            tail_lines=tail_lines,
            previous=source.is_previous,
            timestamps=True,
            since=since,
        )
        batch, level = bytearray(), ""
        async for chunk in chunks:
            batch += chunk
            if len(batch) >= _BATCH_BYTES:
                level = await self._take(into, into.cut(bytes(batch)), level)
                batch.clear()
        level = await self._take(into, into.cut(bytes(batch)), level)
        await self._take(into, into.rest(), level)

    async def _take(self, into: log_lines.PodLines, lines: list[bytes], level: str) -> str:
        """Take the lines in that the filter lets pass; return the level of the last line, of which `level` was the one before."""
        if not self.asked.is_filter:
            into.take(lines)
            return level
        size = sum(len(line) + _ROW_BYTES for line in lines)
        matching, level = await textwork.workers.run(
            log_lines.matching_lines, lines, self.asked.q, self.asked.level, level, size=size
        )
        into.take(lines, matching)
        return level
