"""Reads a page of lines from the logs of one or several pods: the newest ones, those before a place, or those after it."""

import asyncio
from dataclasses import dataclass, replace

from dashboard.viewmodels.log import MERGED_PODS, LogQuery, LogSource
from dashboard.viewmodels.log_lines import (
    PAGE_LINES,
    Cursor,
    LineFilter,
    LogPosition,
    PodLines,
    RawLine,
    line_filter,
    merged,
    parse_cursor,
    place_before,
)
from dashboard.views.fetching import TIMEOUT_SECONDS, problem_of
from grid.errors import GridError
from grid.runtime import Runtime
from grid.translation import gettext as _
from grid.wording import plural

_AT_ONCE = 6
_BATCH_BYTES = 64 * 1024
_NEW_LINES = 2000  # per pod, of what was written since the last request
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
    wanted = line_filter(asked.q, asked.level)
    turn = asyncio.Semaphore(_AT_ONCE)

    async def of(member: str, pod: str) -> LogLines:
        reading = _Reading(runtime, replace(source, pod=pod), member, wanted)
        async with turn:
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    if member in after:
                        return await reading.newer(after[member])
                    return await reading.older(place_before(before, member))
            except (GridError, TimeoutError) as error:
                return LogLines(problem=problem_of(error))

    found = await asyncio.gather(*(of(*member) for member in members))
    problems = [one.problem for one in found if one.problem]
    if problems and len(problems) == len(found):
        return LogLines(problem=problems[0])
    lines = merged([one.lines for one in found])
    notes = (
        [
            _(
                "The logs of {pods} could not be fetched: {problem}",
                pods=plural(len(problems), "pod", "pods"),
                problem=problems[0],
            )
        ]
        if problems
        else []
    )
    if len(source.members) > len(members):
        notes.append(
            _(
                "Only {shown} of {total} pods are shown together, the newest ones; choose a pod to see its log.",
                shown=len(members),
                total=len(source.members),
            )
        )
    most = _NEW_LINES if after else PAGE_LINES
    return LogLines(
        lines=tuple(lines[-most:]),
        has_earlier=any(one.has_earlier for one in found) or len(lines) > most,
        has_gap=bool(after) and (any(one.has_gap for one in found) or len(lines) > most),
        note=" ".join(notes),
        newest=(
            *((member, after[member]) for member, _ in members if member in after),
            *(place for one in found for place in one.newest),
        ),
    )


def kept_lines(text: str, asked: LogQuery) -> LogLines:
    """Return a page of a stored log, which has no timestamps."""
    before: Cursor = parse_cursor(asked.before)
    matches = line_filter(asked.q, asked.level)
    found = PodLines("", keep=PAGE_LINES, before=before.get(""), matches=matches, has_stamps=False)
    found.feed(text.encode())
    lines = found.lines()
    hidden = before[""].count if "" in before else 0
    return LogLines(lines=tuple(lines), has_earlier=found.passed - hidden > len(lines))


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads one container's log."""

    runtime: Runtime
    source: LogSource
    member: str
    matches: LineFilter | None

    async def older(self, before: LogPosition | None) -> LogLines:
        """Return the last lines before the place, or of the whole log."""
        for depth in _DEPTHS:
            found = PodLines(self.member, before=before, matches=self.matches)
            await self._read(found, tail_lines=depth)
            lines = found.lines()
            is_whole = depth is None or found.taken < depth
            hidden = before.count if before else 0
            if is_whole or (len(lines) == PAGE_LINES and found.passed - hidden > PAGE_LINES):
                break
        newest = ((self.member, LogPosition(found.latest)),) if found.latest else ()
        return LogLines(lines=tuple(lines), has_earlier=found.passed - hidden > len(lines), newest=newest)

    async def newer(self, after: LogPosition) -> LogLines:
        found = PodLines(self.member, keep=_NEW_LINES, after=after, matches=self.matches)
        since = f"{after.stamp[:19]}Z" if after.stamp else ""
        await self._read(found, tail_lines=_NEW_LINES, since=since)
        lines = found.lines()
        newest = ((self.member, LogPosition(max(after.stamp, found.latest))),)
        has_gap = found.taken >= _NEW_LINES and found.first > after.stamp
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
        batch = bytearray()
        async for chunk in chunks:
            batch += chunk
            if len(batch) >= _BATCH_BYTES:
                await self._take(into, bytes(batch))
                batch.clear()
        await self._take(into, bytes(batch))

    async def _take(self, into: PodLines, batch: bytes) -> None:
        if self.matches is None:
            into.feed(batch)
        else:  # words and levels of many lines take a while to look for
            await asyncio.to_thread(into.feed, batch)
