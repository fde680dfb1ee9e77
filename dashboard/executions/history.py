"""Reads ended executions from the database, newest first, synchronously; the cost does not grow with their number.

Pages are keyset pages: a page begins where the previous one ended, and an index finds that place, so nothing is counted or skipped.
PostgreSQL's trigram index finds a text anywhere in the history; any other filter searches a bounded number of executions at a time and
says how far back it has searched.
"""

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce

from django.db import connection
from django.db.models import Model, Q, QuerySet, Value
from django.db.models.functions import Concat

from dashboard.executions.records import visible_executions
from dashboard.executions.viewmodels.executions_view import Choices, ExecutionsView, offered
from dashboard.shell.access import Viewer, may_observe
from grid.core.regexes import Expression
from grid.database.threads import planned_for_values
from grid.models import Execution, HardwareTier, Membership, Project, State, User
from grid.models.environment import Kind

PER_PAGE = 50
SEARCHED = 4000
LATEST_SEARCHED = 2000
_CHOICES_FROM = 1000
_OWN_TEXT = ("title", "id", "message", "node_name")  # the columns of the trigram index
_OBJECT_NAME = Concat("kind", Value("-"), "id")
_OTHER_TEXT = ("kind", "state", "owner__username", "project__name", "tier__name")
# Which characters beyond ASCII count as letters depends on the database's locale.
_HAS_TRIGRAM = Expression(r"[A-Za-z0-9]{3}")
_MOST_NAMES = 100  # of users and projects that match a text; with more, the index is not worth using


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """The place of an execution in the history: by its end, then by id, whose characters databases and Python sort alike."""

    ended_at: datetime
    id: str

    def __str__(self) -> str:
        return f"{self.ended_at.isoformat()}~{self.id}"

    @classmethod
    def parse(cls, text: str) -> "Position | None":
        """Parse the text that `str` wrote; None when it is invalid."""
        at, _, id = text.partition("~")
        try:
            moment = datetime.fromisoformat(at)
            # A time at the end of the calendar may have no equivalent in UTC, and databases cannot compare it.
            return cls(moment.astimezone(UTC), id) if moment.tzinfo is not None and id else None
        except (ValueError, OverflowError):
            return None


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A page of ended executions; `older` and `newer` begin the next pages, and a filter has not searched beyond `searched_to`, if set."""

    rows: Sequence[Execution]
    older: str = ""
    newer: str = ""
    searched_to: datetime | None = None


@planned_for_values()
def ended_page(viewer: Viewer, view: ExecutionsView, *, searched: int = SEARCHED) -> HistoryPage:
    """Return the page that the view's `before` or `after` names, or the newest page. A filter searches about `searched` executions."""
    after, before = Position.parse(view.after), Position.parse(view.before)
    if after:
        rows, further = _read(viewer, view, after, searched, towards_newer=True)
        if further is not None:
            rows.reverse()
            # Just after this one, so that the older executions begin with this execution itself.
            older = _position(rows[-1]) if rows else Position(after.ended_at, f"{after.id}0")
            return HistoryPage(rows, str(older), str(further), further.ended_at if len(rows) < PER_PAGE else None)
        before = None  # less than a page is newer, so the newest page shows all of it
    rows, further = _read(viewer, view, before, searched)
    newer = str(_position(rows[0]) if rows else before) if before else ""
    return HistoryPage(rows, str(further or ""), newer, further.ended_at if further and len(rows) < PER_PAGE else None)


@planned_for_values()
def latest_ended(
    viewer: Viewer, words: Iterable[str], *, searched: int = LATEST_SEARCHED, most: int = PER_PAGE
) -> list[Execution]:
    """Return the latest ended executions with each word in their names; of those not `searched`, only one that the last word identifies."""
    words = list(words)
    wanted = reduce(operator.and_, (_any_of(("title", "object"), word) for word in words), Q())

    def shown(rows: QuerySet[Execution]) -> QuerySet[Execution]:
        fitting = rows.annotate(object=_OBJECT_NAME).filter(wanted).select_related("owner")
        return fitting.only("kind", "title", "state", "ended_at", "owner__username")

    id = words[-1].rpartition("-")[2] if words else ""
    rows = {row.pk: row for row in shown(visible_executions(viewer).filter(pk=id, ended_at__isnull=False))}
    sources = list(_sources(viewer, ExecutionsView(show="ended")))
    each = max(PER_PAGE, searched // len(sources))
    for source in sources:
        line = source.order_by("-ended_at", "-pk")
        latest = shown(line)
        for oldest in line.values_list("ended_at", flat=True)[each - 1 : each]:
            latest = latest.filter(ended_at__gte=oldest)
        rows |= {row.pk: row for row in latest[:most]}
    return sorted(rows.values(), key=_position, reverse=True)[:most]


def ended_choices(viewer: Viewer, view: ExecutionsView) -> Choices:
    """Return what the filter of ended executions offers, taken from the latest ones."""
    tiers, users, projects = dict[str, str](), dict[str, str](), dict[str, str]()
    sources = list(_sources(viewer, ExecutionsView(show="ended")))
    each = max(PER_PAGE, _CHOICES_FROM // len(sources))
    for source in sources:
        names = source.values_list("tier_id", "tier__name", "owner__username", "project_id", "project__name")
        for tier, tier_name, user, project, project_name in names.order_by("-ended_at", "-pk")[:each]:
            tiers[tier], users[user], projects[project] = tier_name, user, project_name
    return Choices(
        offered(tiers.items(), view.tier), offered(users.items(), view.user), offered(projects.items(), view.project)
    )


def _read(
    viewer: Viewer, view: ExecutionsView, start: Position | None, searched: int, *, towards_newer: bool = False
) -> tuple[list[Execution], Position | None]:
    """Return at most a page from `start` on, in reading order, and the position to read on from; None when there is nothing more."""
    wanted, is_indexed = _wanted(view)
    order = ("ended_at", "pk") if towards_newer else ("-ended_at", "-pk")
    known: dict[str, Execution] = {}
    limits: list[Position] = []
    sources = list(_sources(viewer, view))
    each = max(PER_PAGE, searched // len(sources))
    for source in sources:
        line = _from(source, start, towards_newer).order_by(*order)
        rows = line.filter(wanted)
        if wanted and not is_indexed:
            for last in line.only("ended_at")[each - 1 : each]:
                limits.append(_position(last))
                rows = rows.filter(**{"ended_at__lte" if towards_newer else "ended_at__gte": last.ended_at})
        joined = rows.select_related("owner", "project", "tier").defer("spec")
        known |= {row.pk: row for row in joined[: PER_PAGE + 1]}

    nearest = (min if towards_newer else max)(limits, default=None)
    rows_in_order = sorted(known.values(), key=_position, reverse=not towards_newer)
    if nearest is not None:
        # Beyond `nearest` at least one source was not searched: showing another source's rows there would hide the gap.
        is_reached = operator.le if towards_newer else operator.ge
        rows_in_order = [row for row in rows_in_order if is_reached(_position(row), nearest)]
    page = rows_in_order[:PER_PAGE]
    return page, _position(page[-1]) if len(rows_in_order) > PER_PAGE else nearest


def _sources(viewer: Viewer, view: ExecutionsView) -> Iterator[QuerySet[Execution]]:
    """Yield the ended executions that the viewer may see, in parts that each have an index ordered by the time of the end."""
    ended = Execution.objects.filter(ended_at__isnull=False)
    if may_observe(viewer):
        if view.project:
            yield ended.filter(project=view.project)
        elif view.user:
            yield ended.filter(owner=User.objects.filter(username=view.user).values_list("pk", flat=True).first() or 0)
        else:
            yield ended
        return
    yield ended.filter(owner=viewer.id)
    for project in Membership.objects.filter(user=viewer.id).values_list("project", flat=True):
        if view.project in ("", project):
            yield ended.filter(project=project)


def _wanted(view: ExecutionsView) -> tuple[Q, bool]:
    named = {"kind": view.kind, "tier": view.tier, "project": view.project, "state": view.status}
    exact = {**named, "owner__username": view.user}
    wanted = Q(**{name: value for name, value in exact.items() if value})
    if view.node:
        wanted &= Q(node_name__icontains=view.node)
    if not view.text:
        return wanted, False
    # With another filter too, many of the index's matches might be read before enough rows pass that filter.
    has_index = connection.vendor == "postgresql" and _HAS_TRIGRAM.search(view.text) is not None
    indexed = _found_by_index(view.text) if has_index and not wanted else None
    return wanted & (indexed or _any_of((*_OWN_TEXT, *_OTHER_TEXT), view.text)), indexed is not None


def _found_by_index(text: str) -> Q | None:
    """Return the text's condition over indexed columns only; None when it matches a kind, a state, a tier or too many names."""
    lower = text.lower()
    if any(lower in value for value in (*Kind.values, *State.values)) or _named(HardwareTier, name__icontains=text):
        return None
    owners, projects = _named(User, username__icontains=text), _named(Project, name__icontains=text)
    if len(owners) + len(projects) > _MOST_NAMES:
        return None
    in_names = (Q(**{name: ids}) for name, ids in (("owner__in", owners), ("project__in", projects)) if ids)
    return reduce(operator.or_, in_names, _any_of(_OWN_TEXT, text))


def _named(model: type[Model], **text: str) -> list[object]:
    return list(model._default_manager.filter(**text).values_list("pk", flat=True)[: _MOST_NAMES + 1])


def _any_of(columns: Iterable[str], text: str) -> Q:
    return reduce(operator.or_, (Q(**{f"{column}__icontains": text}) for column in columns), Q())


def _from(source: QuerySet[Execution], start: Position | None, towards_newer: bool) -> QuerySet[Execution]:
    if start is None:
        return source
    # The index serves the first condition; the second leaves out the start itself and rows on its other side.
    if towards_newer:
        return source.filter(ended_at__gte=start.ended_at).exclude(ended_at=start.ended_at, pk__lte=start.id)
    return source.filter(ended_at__lte=start.ended_at).exclude(ended_at=start.ended_at, pk__gte=start.id)


def _position(row: Execution) -> Position:
    assert row.ended_at is not None, "only ended ones are read here"
    return Position(row.ended_at, row.pk)
