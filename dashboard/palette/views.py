"""The command palette: a page with a search form, and the list of options of the dialog that its script opens on any page.

Active executions and nodes come from the runtime's caches, as lists that its event loop has copied; all else from the database, by queries
whose cost does not grow with the history.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar
from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet, Value
from django.db.models.functions import Concat
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.executions.history import latest_ended
from dashboard.executions.pages.execution import person
from dashboard.executions.viewmodels.execution import OPENED_KINDS
from dashboard.palette.viewmodel import (
    PaletteGroup,
    PaletteItem,
    PaletteQuery,
    PaletteResults,
    hint,
    in_order,
    results_sentence,
)
from dashboard.shell.access import (
    PERMISSIONS,
    Permission,
    Viewer,
    may_administer,
    may_observe,
    may_see_execution,
    viewer_of,
)
from dashboard.shell.tags.frame import LINKS, demonstrated
from dashboard.shell.viewmodels.saved_views import VIEWED_TABLES
from dashboard.shell.viewmodels.states import state_word
from grid.configuration import REGISTRY
from grid.configuration.setting import Setting
from grid.core.translation import gettext as _, ngettext
from grid.kube.objects import Node
from grid.models import Environment, Execution, HardwareTier, Job, Project, SavedView, State, Workspace
from grid.models.environment import KIND_WORDS
from grid.runtime import Runtime, get_runtime
from grid.runtime.executionrows import ExecutionRow

_Row = TypeVar("_Row", bound=Model)
_Owned = TypeVar("_Owned", Workspace, Job)
_Catalogued = TypeVar("_Catalogued", HardwareTier, Environment)

_OPEN, _LOG, _STOP = "open", "log", "stop"
_VERBS = {_OPEN: _("Open {title}"), _LOG: _("Log of {title}"), _STOP: _("Stop {title}")}
LENGTH = 100  # of a text
_READ = 200  # rows of a table before they are ranked
# Each page's URL name, title, other words for it, and required permission: what the frame has a link to, and further pages.
_PAGES = (
    *((name, title, words, permission) for name, (title, permission, words) in LINKS.items()),
    ("api-checks", _("API checks"), _("kubernetes contract upgrade conformance rights"), Permission.OBSERVE),
    ("usage", _("Your usage"), _("cost hours"), None),
    ("help", _("Help"), _("glossary guides shortcuts"), None),
    ("notifications", _("Notifications"), _("messages unread bell"), None),
    ("account", _("Your account"), _("profile email sessions"), None),
    ("secrets", _("Your secrets"), _("variables keys passwords tokens"), None),
    ("password", _("Change your password"), "", None),
)
# Other words for the pages of the demonstration, which `frame.demonstrated` names.
_DEMONSTRATION_WORDS = {"demonstration": _("simulated failures"), "components": _("design")}
_THEMES = {
    "dark": _("Change the theme to dark"),
    "light": _("Change the theme to light"),
    "auto": _("Change the theme to the system’s"),
}
_ADDED = {"tier-new": _("Add a tier"), "environment-new": _("Add an environment"), "project-new": _("Add a project")}


@require_safe
async def palette(request: HttpRequest) -> HttpResponse:
    """Show what `q` finds, as a page, or with `?options=1` as the dialog's options; copies of the caches are searched in a thread."""
    viewer = await sync_to_async(viewer_of)(await request.auser())
    if viewer is None:
        raise PermissionDenied(_("You have no access to this page."))
    text = request.GET.get("q", "").replace("\x00", "")[:LENGTH].strip()
    results = await sync_to_async(find)(viewer, text, copied_caches(get_runtime(), viewer, text))
    template = "fragments/palette_options" if request.GET.get("options") == "1" else "palette"
    return await sync_to_async(render)(request, f"palette/{template}.html", {"results": results})


@dataclass(frozen=True, slots=True)
class PaletteCaches:  # which another thread may read
    executions: Sequence[ExecutionRow]
    nodes: Sequence[Node]


def copied_caches(runtime: Runtime, viewer: Viewer, text: str) -> PaletteCaches:
    """Copy, on the event loop, what is searched for this user; without a text only the user's own executions."""
    if not text:
        return PaletteCaches(list(runtime.executions.of_owner(viewer.id)), [])
    if may_observe(viewer):
        return PaletteCaches(list(runtime.executions.values()), list(runtime.nodes.values()))
    return PaletteCaches(list(runtime.executions.seen_by(viewer.id)), [])


def find(viewer: Viewer, text: str, caches: PaletteCaches) -> PaletteResults:
    """Return what the text finds; without a text, where the user can go and the user's own executions."""
    query = PaletteQuery(text)
    actions = query.group(_("Actions"), _actions(viewer), lambda item: item.title, lambda item: item, most=10)
    places = [_pages(viewer, query), actions]
    active = _active(viewer, query, caches.executions)
    if not text:
        return PaletteResults(text, hint(_kinds(viewer)), in_order([active, *places]))
    groups = [
        *places,
        active,
        _execution_actions(viewer, query, caches.executions),
        *_stored(viewer, query),
        _nodes(query, caches.nodes),
    ]
    if may_administer(viewer):
        groups.append(_settings(query))
    ordered = in_order([*groups, _ended(viewer, query)])
    return PaletteResults(text, results_sentence(text, ordered), [*ordered, _further(text)])


def _kinds(viewer: Viewer) -> list[str]:
    kinds = [ngettext("workspace", "workspaces", 1), ngettext("job", "jobs", 1), _("project"), _("saved view")]
    if may_observe(viewer):
        kinds.append(ngettext("node", "nodes", 1))
    if may_administer(viewer):
        kinds += [_("tier"), _("environment"), ngettext("setting", "settings", 1)]
    return [*kinds, _("page"), _("action")]


def _pages(viewer: Viewer, query: PaletteQuery) -> PaletteGroup:
    granted = PERMISSIONS[viewer.role]
    shown = ((name, title, _DEMONSTRATION_WORDS[name], needed) for name, title, needed in demonstrated())
    pages = (*_PAGES, *shown)
    return query.group(
        _("Pages"),
        (page for page in pages if page[3] is None or page[3] in granted),
        lambda page: f"{page[1]} {page[2]}",
        lambda page: PaletteItem(page[1], url=reverse(page[0])),
        most=len(pages),
    )


def _actions(viewer: Viewer) -> Iterator[PaletteItem]:
    yield from (PaletteItem(words.launch, url=f"{reverse('launch')}?kind={kind}") for kind, words in KIND_WORDS.items())
    if may_administer(viewer):
        yield from (PaletteItem(title, url=reverse(route)) for route, title in _ADDED.items())
    yield from (PaletteItem(title, theme=theme) for theme, title in _THEMES.items())


def _active(viewer: Viewer, query: PaletteQuery, rows: Iterable[ExecutionRow]) -> PaletteGroup:
    sees_all = may_observe(viewer)
    return query.group(
        _("Executions"),
        (row for row in rows if row.ended_at is None and (sees_all or may_see_execution(viewer, row))),
        lambda row: f"{row.title} {row.object_name}",
        lambda row: PaletteItem(
            row.title or row.object_name,
            f"{state_word(row.state)} · {row.owner_username} · {row.project_name}",
            reverse("execution", args=[row.id]),
        ),
        order=lambda row: -row.requested_at.timestamp(),
    )


def _execution_actions(viewer: Viewer, query: PaletteQuery, rows: Iterable[ExecutionRow]) -> PaletteGroup:
    """Return what the user may do with active executions, when a typed word begins one of the verbs."""
    words = tuple(word for word in query.words if len(word) > 1)
    verbs = {verb for verb, title in _VERBS.items() if title.lower().startswith(words)}
    pairs = ((verb, row) for row in rows if verbs and row.ended_at is None for verb in _allowed(viewer, row) & verbs)
    return query.group(
        _("Actions on executions"),
        pairs,
        lambda pair: f"{_VERBS[pair[0]].format(title=pair[1].title)} {pair[1].object_name}",
        lambda pair: _action_on(*pair),
        order=lambda pair: (-pair[1].requested_at.timestamp(), _VERBS[pair[0]]),
    )


def _allowed(viewer: Viewer, row: ExecutionRow) -> set[str]:
    if not may_see_execution(viewer, row):
        return set()
    who = person(viewer, row)
    allowed = {
        _OPEN: who.may_open and row.kind in OPENED_KINDS and row.state == State.RUNNING,
        _LOG: who.may_read,
        _STOP: who.may_stop and row.state not in (State.STOPPING, State.FINISHING),
    }
    return {verb for verb, may in allowed.items() if may}


def _action_on(verb: str, row: ExecutionRow) -> PaletteItem:
    title = _VERBS[verb].format(title=row.title or row.object_name)
    note = f"{state_word(row.state)} · {row.owner_username}"
    if verb == _OPEN:
        return PaletteItem(title, note, opens=reverse("execution-open", args=[row.id]))
    if verb == _STOP:
        return PaletteItem(title, note, reverse("execution-stop", args=[row.id]), asks=True)
    return PaletteItem(title, note, f"{reverse('execution', args=[row.id])}?tab=log#log")


def _ended(viewer: Viewer, query: PaletteQuery) -> PaletteGroup:
    def shown(row: Execution) -> PaletteItem:
        note = f"{state_word(row.state)} {row.ended_at:%Y-%m-%d %H:%M} UTC · {row.owner.get_username()}"
        return PaletteItem(str(row), note, reverse("execution", args=[row.pk]))

    rows = latest_ended(viewer, query.words)
    return query.group(_("Ended executions"), rows, lambda row: f"{row.title} {row.object_name}", shown)


def _stored(viewer: Viewer, query: PaletteQuery) -> Iterator[PaletteGroup]:
    yield _owned(_("Workspaces"), Workspace.objects.all(), "workspace", viewer, query)
    yield _owned(_("Jobs"), Job.objects.all(), "job", viewer, query)
    views = SavedView.objects.filter(user=viewer.id, table__in=VIEWED_TABLES)
    yield query.group(
        _("Saved views"),
        _with_words(views, query, "name"),
        lambda row: row.name,
        lambda row: PaletteItem(row.name, VIEWED_TABLES[row.table].title, reverse("view-open", args=[row.pk])),
    )
    is_admin = may_administer(viewer)
    projects = Project.objects.all() if may_observe(viewer) else Project.objects.filter(memberships__user=viewer.id)
    yield query.group(
        _("Projects"),
        _with_words(projects, query, "name", "pk"),
        lambda row: f"{row.name} {row.pk}",
        lambda row: _catalogue_item(row, "project"),
    )
    if is_admin:
        yield _catalogue(_("Tiers"), HardwareTier.objects.all(), "tier", query)
        yield _catalogue(_("Environments"), Environment.objects.all(), "environment", query)


def _owned(title: str, rows: QuerySet[_Owned], kind: str, viewer: Viewer, query: PaletteQuery) -> PaletteGroup:
    own = rows.filter(owner=viewer.id, deleted_at__isnull=True).select_related("project")
    return query.group(
        title,
        _with_words(own.annotate(object=Concat(Value(f"{kind}-"), "pk")), query, "title", "object"),
        lambda row: f"{row.title} {kind}-{row.pk}",
        lambda row: PaletteItem(str(row), row.project.name, reverse(kind, args=[row.pk])),
    )


def _catalogue(title: str, rows: QuerySet[_Catalogued], route: str, query: PaletteQuery) -> PaletteGroup:
    return query.group(
        title,
        _with_words(rows, query, "name", "pk"),
        lambda row: f"{row.name} {row.pk}",
        lambda row: _catalogue_item(row, route),
    )


def _catalogue_item(row: Project | HardwareTier | Environment, route: str) -> PaletteItem:
    note = _("{id} · archived", id=row.pk) if row.is_archived else row.pk
    return PaletteItem(row.name, note, reverse(route, args=[row.pk]))


def _nodes(query: PaletteQuery, nodes: Iterable[Node]) -> PaletteGroup:
    def shown(node: Node) -> PaletteItem:
        pool = node.metadata.labels.get(settings.NODE_POOL_LABEL, "")
        return PaletteItem(node.metadata.name, pool, reverse("node", args=[node.metadata.name]))

    name = attrgetter("metadata.name")
    return query.group(_("Nodes"), nodes, name, shown, order=name)


def _settings(query: PaletteQuery) -> PaletteGroup:
    def shown(setting: Setting) -> PaletteItem:
        address = f"{reverse('configuration')}#value-{setting.key}"
        return PaletteItem(setting.title, setting.key.rpartition(".")[2], address)

    return query.group(_("Settings"), REGISTRY.values(), lambda setting: f"{setting.title} {setting.key}", shown)


def _further(text: str) -> PaletteGroup:
    def searched(**view: str) -> str:
        return f"{reverse('executions')}?{urlencode({**view, 'text': text})}"

    note = _("in any column")
    return PaletteGroup(
        _("Search further"),
        (
            PaletteItem(_("Active executions with “{text}”", text=text), note, searched()),
            PaletteItem(_("All ended executions with “{text}”", text=text), note, searched(show="ended")),
        ),
    )


def _with_words(rows: QuerySet[_Row], query: PaletteQuery, *columns: str) -> QuerySet[_Row]:
    for word in query.words:
        rows = rows.filter(Q.create([(f"{column}__icontains", word) for column in columns], connector=Q.OR))
    return rows[:_READ]
