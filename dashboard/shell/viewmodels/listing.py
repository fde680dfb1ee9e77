"""The common parts of pages: the paging line and the empty state of lists, and the question before something is done; pure."""

from collections.abc import Sequence
from typing import Literal

from dashboard.shell.viewmodels.live import Fragment, ViewModel
from grid.core.translation import gettext as _
from grid.core.wording import plural


class Paging(ViewModel, frozen=True, gc=False):
    """The paging line: which rows of how many are shown, and links to the neighboring pages; for `shell/fragments/paging.html`."""

    sentence: str
    previous: str = ""
    next: str = ""


class EmptyState(ViewModel, frozen=True, gc=False):
    """The text of an empty list, with advice; for `shell/fragments/empty_row.html` and `shell/fragments/empty_item.html`."""

    headline: str
    advice: str
    is_filtered: bool = False  # a filter hides what there is


class Progress(ViewModel, frozen=True, gc=False):
    """How far a list is that is not whole yet. `total` is the number of objects to look at; None until it is known."""

    looked_at: int = 0
    total: int | None = None


class Unfinished(ViewModel, frozen=True, gc=False):
    """The line that stands in place of the paging line until the list is whole; `reload` is the page's own link."""

    sentence: str
    reload: str


def unfinished(
    id: str, kind: Literal["execution", "node"], progress: Progress, *, matches: int, reload: str
) -> Fragment:
    """Return the line of a list of executions or nodes, of which so many match so far."""
    count = progress.total or 0
    if kind == "node":
        sentence, total = _("Still reading the nodes; this list is not complete yet."), plural(count, "node", "nodes")
    else:
        sentence = _("Still reading the executions; this list is not complete yet.")
        total = plural(count, "execution", "executions")
    if progress.total is not None:
        numbers = {"looked_at": progress.looked_at, "total": total, "found": matches}
        sentence = _("Looked at {looked_at:,} of {total} so far and found {found:,}.", **numbers)
    return Fragment(id, "shell/fragments/unfinished.html", Unfinished(sentence, reload))


def none_so_far(id: str, region: str) -> Fragment:
    empty = EmptyState(_("None found so far."), _("The rest is still being searched."))
    return Fragment(id, "shell/fragments/empty_row.html", empty, region=region)


class FilterChip(ViewModel, frozen=True, gc=False):
    """One condition of a filter in words, and the query string of the page without it."""

    words: str
    without: str


class Confirmation(ViewModel, frozen=True, gc=False):
    """What `shell/question.html` asks, as a page and as a dialog. `title` has {subject} in it; `fields` are sent with the answer."""

    title: str
    subject: str
    sentences: Sequence[str]
    action_url: str
    answer: str
    keep_url: str
    keep: str = _("Keep it")
    fields: Sequence[tuple[str, str]] = ()
    is_danger: bool = True

    @property
    def before(self) -> str:
        return self.title.partition("{subject}")[0]

    @property
    def after(self) -> str:
        return self.title.partition("{subject}")[2]
