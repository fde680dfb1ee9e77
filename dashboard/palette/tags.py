"""Tags of the command palette's dialogs, which every page has."""

from dataclasses import dataclass

from django import template
from django.template import Context
from django.urls import reverse

from dashboard.shell.access import PERMISSIONS, Permission
from dashboard.shell.tags.frame import role_in
from grid.core.translation import gettext as _

register = template.Library()

# The key after "g", the page's URL name and title, and the permission that it needs.
_PLACES = (
    ("h", "home", _("Home"), None),
    ("e", "executions", _("Executions"), None),
    ("q", "queue", _("Queue"), None),
    ("w", "workspaces", _("Workspaces"), None),
    ("j", "jobs", _("Jobs"), None),
    ("l", "launch", _("Launch"), None),
    ("o", "overview", _("Overview"), Permission.OBSERVE),
    ("i", "infrastructure", _("Infrastructure"), Permission.OBSERVE),
)


@dataclass(frozen=True, slots=True)
class Shortcut:
    """What keys do: those of one tuple are pressed together, and `between` joins the tuples. One that opens a page has its URL, and the
    key to press after "g"."""

    title: str
    keys: tuple[tuple[str, ...], ...]
    between: str = "or"
    url: str = ""
    go: str = ""


@register.simple_tag(takes_context=True)
def shortcuts(context: Context) -> list[Shortcut]:
    """Return all keyboard shortcuts, with the pages that the user may open."""
    granted = PERMISSIONS[role_in(context)]
    places = [(key, route, title) for key, route, title, needed in _PLACES if needed is None or needed in granted]
    return [
        Shortcut(_("Search"), (("/",), ("Ctrl", "K"))),
        *(Shortcut(title, (("g",), (key,)), "then", reverse(route), key) for key, route, title in places),
        Shortcut(_("Next row of a table"), (("j",),)),
        Shortcut(_("Previous row"), (("k",),)),
        Shortcut(_("Open the row"), (("Enter",),)),
        Shortcut(_("This list"), (("?",),)),
    ]
