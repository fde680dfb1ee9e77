"""Tags of the page frame: navigation by role, theme, icons."""

from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from typing import Any, NamedTuple

from django import template
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.template import Context
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.shell.access import PERMISSIONS, Permission, Role, role_of
from dashboard.shell.script_texts import script_texts_url
from dashboard.shell.viewmodels.saved_views import TableView, table_view
from dashboard.shell.viewmodels.states import ROLE_TITLES
from grid.core.translation import gettext as _
from grid.runtime import has_sandbox

register = template.Library()

# Sections, and in each by the URL names of the links their titles, required permissions, and other words by which the palette finds
# them. A link's icon has its URL's name.
_Links = Mapping[str, tuple[str, Permission | None, str]]
_SECTIONS: Sequence[tuple[str, _Links]] = (
    (_("Work"), {
        "home": (_("Home"), None, _("start")),
        "executions": (_("Executions"), None, _("running jobs")),
        "queue": (_("Queue"), None, _("waiting position slots")),
        "workspaces": (_("Workspaces"), None, _("notebooks resume")),
        "jobs": (_("Jobs"), None, _("runs sweeps batch")),
        "launch": (_("Launch"), None, _("start new")),
        "projects": (_("Projects"), None, _("members")),
    }),
    (_("Operate"), {
        "overview": (_("Overview"), Permission.OBSERVE, _("health nodes")),
        "infrastructure": (_("Infrastructure"), Permission.OBSERVE, _("nodes pods cluster")),
        "startup": (_("Start-up times"), Permission.OBSERVE, _("slow cold image pull p99")),
        "service-levels": (_("Service levels"), Permission.OBSERVE, _("slo objective error budget burn rate")),
        "platform-health": (_("Platform health"), Permission.OBSERVE, _("dns scheduler incidents versions outage")),
        "alerts": (_("Alerts"), Permission.OBSERVE, _("firing alertmanager prometheus runbook")),
        "rush": (_("Rush planner"), Permission.OPERATE, _("warm places course prepull image schedule")),
        "announcements": (_("Announcements"), Permission.OPERATE, _("banner maintenance message")),
    }),
    (_("Administer"), {
        "tiers": (_("Tiers"), Permission.ADMINISTER, _("hardware")),
        "environments": (_("Environments"), Permission.ADMINISTER, _("images")),
        "knowledge": (_("Knowledge base"), Permission.OBSERVE, _("log lines findings errors")),
        "people": (_("People"), Permission.ADMINISTER, _("users invite roles")),
        "logins": (_("Logins"), Permission.ADMINISTER, _("locked unlock")),
        "usage-of-everybody": (_("Usage"), Permission.OBSERVE, _("everybody cost gpu hours")),
        "audit-log": (_("Audit log"), Permission.READ_AUDIT, _("who did what changes history")),
        "configuration": (_("Configuration"), Permission.ADMINISTER, _("settings")),
    }),
)  # fmt: skip
# Pages that answer one question share a link, that of the first which a person may open, and lead to each other. The name is the link's
# where there are several.
_GROUPS: Sequence[tuple[str, Sequence[str]]] = (
    (_("Executions"), ("executions", "queue")),
    (_("Infrastructure"), ("infrastructure", "rush")),
    (_("Health"), ("platform-health", "service-levels", "alerts", "startup", "knowledge")),
    (_("People"), ("people", "logins", "usage-of-everybody", "audit-log")),
)
LINKS = {name: link for _title, links in _SECTIONS for name, link in links.items()}
PAGE_TITLES = {name: title for name, (title, _permission, _words) in LINKS.items()}
# (value, title)
THEMES = (("auto", _("System")), ("light", _("Light")), ("dark", _("Dark")))


class NavigationLink(NamedTuple):
    name: str
    url: str
    title: str
    is_current: bool


@register.simple_tag(takes_context=True)
def navigation(context: Context) -> list[tuple[str, list[NavigationLink]]]:
    """Return links to the pages that the user may open, in sections, with the current one marked; a group of pages has one."""
    request = context.get("request")
    user = getattr(request, "user", AnonymousUser())
    if request is None or not user.is_authenticated:
        return []
    granted = PERMISSIONS[role_in(context)] | {None}
    tried_out = {name: (title, permission, "") for name, title, permission in demonstrated()}
    groups = {names[0]: (title, names) for title, names in _groups(granted)}
    led = {name for _title, names in groups.values() for name in names[1:]}
    sections = []
    for section, links in (*_SECTIONS, (_("Try out"), tried_out)):
        shown = {name: title for name, (title, needed, _w) in links.items() if needed in granted and name not in led}
        parts = [(name, *groups.get(name, (title, (name,)))) for name, title in shown.items()]
        sections.append((section, [_link(name, title, names, request.path) for name, title, names in parts]))
    return [(section, links) for section, links in sections if links]


@register.simple_tag(takes_context=True)
def beside_this_page(context: Context) -> list[NavigationLink]:
    """Return links to the pages of the group that the page is in, with its own; [] when it is in none, or the user may open no other."""
    request: Any = context["request"]
    if not request.user.is_authenticated:
        return []
    for _title, names in _groups(PERMISSIONS[role_in(context)] | {None}):
        if request.path in map(reverse, names):
            return [_link(name, PAGE_TITLES[name], (name,), request.path) for name in names]
    return []


def _groups(granted: AbstractSet[Permission | None]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the title of each group of which the person may open several pages, and these pages."""
    for title, names in _GROUPS:
        allowed = [name for name in names if LINKS[name][1] in granted]
        if len(allowed) > 1:
            yield title, allowed


def demonstrated() -> Sequence[tuple[str, str, Permission]]:
    """Return the names, titles and permissions of the pages of the demonstration: the simulation needs the embedded cluster."""
    pages = (("demonstration", _("Demonstration")), ("components", _("Components")))
    shown = pages if has_sandbox() else pages[1:]
    return [(name, title, Permission.ADMINISTER) for name, title in shown] if settings.DEMO else []


def role_in(context: Context) -> Role:
    """Return the role of the page's user, read from the database once for the whole page."""
    request: Any = context["request"]
    if not hasattr(request, "role_in_frame"):
        request.role_in_frame = role_of(context.get("viewer") or request.user)
    return request.role_in_frame  # type: ignore[no-any-return]


@register.simple_tag(takes_context=True)
def theme(context: Context) -> str:
    """Return the chosen theme, or "auto", which follows the system, without a valid choice."""
    request: Any = context.get("request")
    chosen = request.COOKIES.get("theme", "") if request is not None else ""
    return chosen if chosen in dict(THEMES) else "auto"


@register.simple_tag(takes_context=True)
def view_of_table(context: Context, table: str) -> TableView:
    return table_view(table, context["request"].COOKIES)


register.simple_tag(lambda: THEMES, name="themes")


@register.simple_tag(takes_context=True)
def role_name(context: Context) -> str:
    return ROLE_TITLES[role_in(context)]


register.simple_tag(script_texts_url)


@register.simple_tag
def icon(name: str) -> SafeString:
    """Return a picture from `static/icons.svg`, which says nothing that the words beside it do not."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>', static("icons.svg"), name)


def _link(name: str, title: str, names: Sequence[str], path: str) -> NavigationLink:
    """Return the link to the page of that name, which is current on all pages below those of `names`."""
    urls = [reverse(each) for each in names]
    return NavigationLink(name, reverse(name), title, path in urls or (name != "home" and path.startswith(tuple(urls))))
