"""The Executions page: one row for each active pod of an execution, and one for each execution that has no pod yet; pure.

The list is kept in order while it changes (`window`), and only the rows of the page that is shown are put into words. A cluster's pods
stay together below their execution, whatever the sort.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from dashboard.executions.viewmodels.execution_filter import sorting
from dashboard.executions.viewmodels.execution_groups import Group
from dashboard.executions.viewmodels.execution_lines import REGION
from dashboard.executions.viewmodels.executions_view import Choices, ExecutionsView, offered
from dashboard.shell.viewmodels.listing import EmptyState, Paging, Progress, none_so_far, unfinished
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.window import OrderedWindow, Page
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.runtime.executionrows import ExecutionRow

ROWS_PER_PAGE = 200
PAGING = "executions-paging"


def window_of(view: ExecutionsView) -> OrderedWindow[Group]:
    """Return an empty list in the view's order."""
    sort_key, is_reversed = sorting(view)
    return OrderedWindow(sort_key=sort_key, is_reversed=is_reversed, height=len)


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
        empty = EmptyState(
            _("No execution matches."), _("Clear the filter to see all that you may see."), is_filtered=True
        )
        if not view.is_filtered:
            empty = EmptyState(_("Nothing is running or waiting."), _("Launch something, or see ended executions."))
        rows = [Fragment("executions-none", "executions/fragments/executions_none.html", empty, region=REGION)]
    return [*rows, _paging(window, page, view)]


def _paging(window: OrderedWindow[Group], page: Page[Group], view: ExecutionsView) -> Fragment:
    sentence = plural(len(window), "execution", "executions")
    if window.rows != len(window):
        sentence += f", {plural(window.rows, 'row', 'rows')}"
    if page.number > 1 or page.has_next:
        sentence = _("{first:,} to {last:,} of {total}", first=page.before + 1, last=page.end, total=sentence)
    paging = Paging(
        sentence,
        previous=_link(view, page.number - 1) if page.number > 1 else "",
        next=_link(view, page.number + 1) if page.has_next else "",
    )
    return Fragment(PAGING, "shell/fragments/paging.html", paging)


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
