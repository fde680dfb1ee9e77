"""The Executions page: one row for each active pod of an execution, and one for each execution that has no pod yet; pure.

Filtering and sorting use cheap facts; a status is computed only where a filter needs it. The list is kept in order while it changes
(`window`), and only the rows of the page that is shown are put into words. A cluster's pods stay together below their execution.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from typing import Any

from dashboard.executions.viewmodels.execution_groups import REGION, Entry, Group
from dashboard.executions.viewmodels.executions_view import TROUBLE, Bounds, Choices, ExecutionsView, bounds, offered
from dashboard.shell.viewmodels.listing import EmptyState, Paging, Progress, none_so_far, unfinished
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import KINDS, STATES, StatusLine
from dashboard.shell.viewmodels.window import OrderedWindow, Page
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.requests import Amounts
from grid.runtime.executionrows import ExecutionRow

StatusOf = Callable[[Entry], StatusLine]
_Test = Callable[[Entry, datetime], bool]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STATE_ORDER = {state: place for place, state in enumerate(STATES)}


class GroupFilter:
    """A view's filter, for all lists that have it. `status_of` returns an entry's status in words, for filters that need it."""

    def __init__(self, view: ExecutionsView, status_of: StatusOf) -> None:
        limits = bounds(view)
        self._chosen = [(value_of, wanted) for wanted, value_of in _chosen(view) if wanted]
        self._text = view.text.lower()
        cheap = list(_cheap_tests(view, limits))
        dear: list[_Test] = (
            [lambda entry, now: status_of(entry).severity == "problem"] if view.status == TROUBLE else []
        )
        self._fits = [*cheap, *dear]
        self._fits_with_text = [*cheap, _mentions(self._text, status_of), *dear]
        # A text and "in trouble" depend on statuses, some of which change with time alone.
        self.looks_at_statuses = bool(view.text) or view.status == TROUBLE
        self.looks_at_ages = limits.age is not None
        self._last: tuple[Group | None, datetime, Group | None] = None, _EPOCH, None

    def narrowed(self, group: Group, now: datetime) -> Group | None:
        """Return the group with its matching entries only; None without any."""
        asked, then, answer = self._last
        if group is not asked or now != then:  # each list asks about a changed group, one after the other
            answer = self._narrowed(group, now)
            self._last = group, now, answer
        return answer

    def _narrowed(self, group: Group, now: datetime) -> Group | None:
        for value_of, wanted in self._chosen:
            if value_of(group.head) != wanted:
                return None
        tests = self._fits
        if self._text and self._text not in _shared_words(group.head):
            tests = self._fits_with_text
        kept: Sequence[Entry] = group.entries
        for fits in tests:
            kept = [entry for entry in kept if fits(entry, now)]
        if len(kept) == len(group.entries):
            return group
        return Group(group.head, tuple(kept), group.has_head) if kept else None


def _cheap_tests(view: ExecutionsView, limits: Bounds) -> Iterator[_Test]:
    """Yield what the view asks of an entry without its status, what is computed fastest first."""
    node, status = view.node.lower(), view.status
    if node:
        yield lambda entry, now: node in entry.node.lower()
    if status and status != TROUBLE:
        yield lambda entry, now: entry.state == status
    if limits.age is not None or limits.restarts is not None:
        yield partial(_is_old_enough, limits)
    if limits.cpu is not None or limits.memory is not None or limits.gpus is not None:
        yield partial(_asks_for, Amounts(limits.cpu or 0, limits.memory or 0, limits.gpus or 0))


def _is_old_enough(limits: Bounds, entry: Entry, now: datetime) -> bool:
    if limits.age is not None and now - (entry.since or now) < limits.age:
        return False
    return limits.restarts is None or entry.restarts >= limits.restarts


def _asks_for(least: Amounts, entry: Entry, now: datetime) -> bool:
    asked = entry.requests
    return asked.cpu >= least.cpu and asked.memory >= least.memory and asked.gpus >= least.gpus


def _shared_words(head: Entry) -> str:
    tier = "" if head.row and head.row.head_tier_name else head.tier
    words = (head.name, head.execution_id, KINDS.get(head.kind, head.kind), tier, head.user, head.project)
    return " ".join(words).lower()


def _mentions(text: str, status_of: StatusOf) -> _Test:
    """Return a test for the text in an entry's own words. Cheap ones are searched first, so that a status is seldom computed."""
    states = {state for state, word in STATES.items() if text in word.lower()}

    def mentions(entry: Entry, now: datetime) -> bool:
        pod, row = entry.pod, entry.row
        if pod is not None and (text in pod.metadata.name.lower() or text in pod.spec.node_name.lower()):
            return True
        if row is not None and row.head_tier_name and text in entry.tier.lower():
            return True
        return (bool(states) and entry.state in states) or text in status_of(entry).note.lower()

    return mentions


def _chosen(view: ExecutionsView) -> Iterable[tuple[str, Callable[[Entry], str]]]:
    """Return what is the same for all entries of a group: the wanted value, "" for any, and how to find an entry's."""
    return (
        (view.kind, lambda entry: entry.kind),
        (view.tier, lambda entry: entry.row.tier_id if entry.row else entry.tier),
        (view.user, lambda entry: entry.user),
        (view.project, lambda entry: entry.row.project_id if entry.row else entry.project),
    )


class _SortKey:
    """The key of one order, for all lists that have it; it remembers the last, because a changed group is put into one after the other."""

    def __init__(self, sort: str, is_reversed: bool) -> None:
        self._column, self._direction = _SORT_KEYS[sort], 1 if is_reversed else -1
        self._last: tuple[Group | None, Any] = None, None

    def __call__(self, group: Group) -> Any:
        last, key = self._last
        if last is not group:
            key = self._column(group), self._direction * _seconds(group.head.since), group.head.name
            self._last = group, key
        return key


_sort_key = cache(_SortKey)


def _seconds(moment: datetime | None) -> float:
    return (moment - _EPOCH).total_seconds() if moment else 0.0


def _largest(of: Callable[[Entry], Any]) -> Callable[[Group], Any]:
    return lambda group: max(of(entry) for entry in group.entries)


_SORT_KEYS: dict[str, Callable[[Group], Any]] = {
    "name": lambda group: group.head.name.lower(),
    "kind": lambda group: group.head.kind,
    "tier": lambda group: group.head.tier.lower(),
    "user": lambda group: group.head.user.lower(),
    "project": lambda group: group.head.project.lower(),
    "status": lambda group: _STATE_ORDER.get(group.head.state, len(_STATE_ORDER)),
    "node": _largest(lambda entry: entry.node),
    "age": lambda group: _seconds(group.since),
    "restarts": _largest(lambda entry: entry.restarts),
    "cpu": lambda group: sum(entry.requests.cpu for entry in group.entries),
    "memory": lambda group: sum(entry.requests.memory for entry in group.entries),
    "gpus": lambda group: sum(entry.requests.gpus for entry in group.entries),
}


ROWS_PER_PAGE = 200
PAGING = "executions-paging"


def window_of(view: ExecutionsView) -> OrderedWindow[Group]:
    """Return an empty list in the view's order, in which equal groups come newest first in both directions."""
    is_reversed = view.descending if view.sort != "age" else not view.descending
    return OrderedWindow(sort_key=_sort_key(view.sort, is_reversed), is_reversed=is_reversed, height=len)


def page_fragments(
    window: OrderedWindow[Group],
    page: Page[Group],
    view: ExecutionsView,
    rows: Sequence[Fragment],
    progress: Progress | None = None,
) -> list[Fragment]:
    """Return the page's rows for its region, or what stands in their place, and the paging line; with `progress` the list is not whole."""
    if progress is not None:
        line = unfinished(PAGING, "execution", progress, matches=len(window), reload=view.query())
        return [*(rows or [none_so_far("executions-none", REGION)]), line]
    if not rows:
        empty = EmptyState(_("Nothing is running or waiting."), _("Launch something, or see ended executions."))
        if view.is_filtered:
            empty = EmptyState(_("No execution matches."), _("Clear the filter to see all that you may see."), True)
        rows = [Fragment("executions-none", "executions/fragments/executions_none.html", empty, region=REGION)]
    sentence = plural(len(window), "execution", "executions")
    if window.rows != len(window):
        sentence += f", {plural(window.rows, 'row', 'rows')}"
    if page.number > 1 or page.has_next:
        sentence = _("{first:,} to {last:,} of {total}", first=page.before + 1, last=page.end, total=sentence)
    previous = _link(view, page.number - 1) if page.number > 1 else ""
    paging = Paging(sentence, previous, _link(view, page.number + 1) if page.has_next else "")
    return [*rows, Fragment(PAGING, "shell/fragments/paging.html", paging)]


# Each open page asks with each update, and encoding takes as long as twenty rows that are known.
@lru_cache(maxsize=5000)
def _link(view: ExecutionsView, number: int) -> str:
    return view.query(page=number)


def choices(rows: Iterable[ExecutionRow], view: ExecutionsView) -> Choices:
    """Return the choices of the filter's lists: each tier, user and project of the rows."""
    rows = list(rows)
    return Choices(
        tiers=offered(((row.tier_id, row.tier_name) for row in rows), view.tier),
        users=offered(((row.owner_username, row.owner_username) for row in rows), view.user),
        projects=offered(((row.project_id, row.project_name) for row in rows), view.project),
    )
