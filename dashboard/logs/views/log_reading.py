"""Reads a page of lines from the logs of one or several pods: the newest ones, those before a place, or those after it."""

import asyncio
from dataclasses import dataclass, replace

from dashboard.logs.viewmodels.log import MERGED_PODS, LogQuery, LogSource
from dashboard.logs.viewmodels.log_lines import (
    PAGE_LINES,
    LogPosition,
    LogRow,
    PodLines,
    RawLine,
    kept_page,
    known_rows,
    matching_lines,
    merged,
    newest,
    parse_cursor,
    place_before,
)
from dashboard.shell.views.fetching import TIMEOUT_SECONDS, problem_of
from grid.core.errors import GridError
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis import logfindings
from grid.edge import textwork
from grid.edge.textwork import TextWorkFailed
from grid.runtime import Runtime

_AT_ONCE = 6
_BATCH_BYTES = 64 * 1024
_NEW_LINES = 2000  # per pod, of what was written since the last request
_ROW_BYTES = 32  # of text that take as long as an empty row
_TOO_LONG = _(
    "This log is too long to be searched here within {seconds:.0f} seconds. Download it and search in the file.",
    seconds=TIMEOUT_SECONDS,
)
# Kubernetes knows no "before": more and more of the end is read, until it reaches back far enough. None is the whole log.
_DEPTHS = (PAGE_LINES + 1, 4 * PAGE_LINES, 20 * PAGE_LINES, None)


@dataclass(frozen=True, slots=True)
class LogLines:
    """The lines of one page; `has_earlier` says whether there are lines before them."""

    lines: tuple[RawLine, ...] = ()
    has_earlier: bool = False
    has_gap: bool = False  # more was written since the last request than is shown
    problem: str = ""
    note: str = ""
    newest: tuple[tuple[str, LogPosition], ...] = ()  # how far each pod was read


async def read_lines(runtime: Runtime, source: LogSource, asked: LogQuery) -> LogLines:
    members = source.members[:MERGED_PODS]
    before, after = parse_cursor(asked.before), parse_cursor(asked.after)
    turn = asyncio.Semaphore(_AT_ONCE)

    async def of(member: str, pod: str) -> LogLines:
        reading = _Reading(runtime, replace(source, pod=pod), member, asked)
        async with turn:
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    if member in after:
                        return await reading.newer(after[member])
                    return await reading.older(place_before(before, member))
            except TextWorkFailed as error:
                return LogLines(problem=_with_download(error))
            except TimeoutError as error:
                return LogLines(problem=_TOO_LONG if asked.is_filter else problem_of(error))
            except GridError as error:
                return LogLines(problem=problem_of(error))

    logs = await asyncio.gather(*(of(*member) for member in members))
    problems = [log.problem for log in logs if log.problem]
    if problems and len(problems) == len(logs):
        return LogLines(problem=problems[0])
    lines, notes = merged([log.lines for log in logs]), []
    if problems:
        pods = plural(len(problems), "pod", "pods")
        notes.append(_("The logs of {pods} could not be fetched: {problem}", pods=pods, problem=problems[0]))
    if len(source.members) > len(members):
        few = _("Only {shown} of {total} pods are shown together, the newest ones; choose a pod to see its log.")
        notes.append(few.format(shown=len(members), total=len(source.members)))
    shown = newest(lines, _NEW_LINES if after else PAGE_LINES)
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
    """Return a page of a stored log, which has no timestamps."""
    before = parse_cursor(asked.before).get("")
    try:
        lines, has_earlier = await textwork.workers.run(
            kept_page, text, before, asked.q, asked.level, size=len(text) if asked.is_filter else 0
        )
    except TextWorkFailed as error:
        return LogLines(problem=_with_download(error))
    return LogLines(lines=tuple(lines), has_earlier=has_earlier)


async def read_rows(read: LogLines, day: str = "") -> tuple[list[LogRow], str]:
    """Return the rows, or none and why they cannot be shown; `day` is that of the line before them."""
    size = sum(len(text) + _ROW_BYTES for _, _, text in read.lines)
    patterns = logfindings.in_force().patterns
    try:
        return await textwork.workers.run(known_rows, patterns, read.lines, day, size=size), read.problem
    except TextWorkFailed as error:
        return [], _with_download(error)


def _with_download(error: TextWorkFailed) -> str:
    return _("{error} Download the log to read it.", error=error)


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads one container's log."""

    runtime: Runtime
    source: LogSource
    member: str
    asked: LogQuery

    async def older(self, before: LogPosition | None) -> LogLines:
        """Return the last lines before the place, or of the whole log."""
        for depth in _DEPTHS:
            read = PodLines(self.member, before=before)
            await self._read(read, tail_lines=depth)
            lines = read.lines()
            is_whole = depth is None or read.taken < depth
            hidden = before.count if before else 0
            if is_whole or (len(lines) == PAGE_LINES and read.passed - hidden > PAGE_LINES):
                break
        newest = ((self.member, LogPosition(read.latest)),) if read.latest else ()
        return LogLines(lines=tuple(lines), has_earlier=read.passed - hidden > len(lines), newest=newest)

    async def newer(self, after: LogPosition) -> LogLines:
        read = PodLines(self.member, keep=_NEW_LINES, after=after)
        since = f"{after.stamp[:19]}Z" if after.stamp else ""
        await self._read(read, tail_lines=_NEW_LINES, since=since)
        lines = read.lines()
        newest = ((self.member, LogPosition(max(after.stamp, read.latest))),)
        has_gap = (read.taken >= _NEW_LINES and read.first > after.stamp) or read.passed > len(lines)
        return LogLines(lines=tuple(lines), has_gap=has_gap, newest=newest)

    async def _read(self, into: PodLines, *, tail_lines: int | None, since: str = "") -> None:
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

    async def _take(self, into: PodLines, lines: list[bytes], level: str) -> str:
        """Take the lines in that the filter lets pass; return the level of the last line, of which `level` was the one before."""
        if not self.asked.is_filter:
            into.take(lines)
            return level
        size = sum(len(line) + _ROW_BYTES for line in lines)
        matching, level = await textwork.workers.run(
            matching_lines, lines, self.asked.q, self.asked.level, level, size=size
        )
        into.take(lines, matching)
        return level
