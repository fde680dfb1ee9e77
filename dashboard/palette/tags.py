"""Tags of the command palette's dialogs, which every page has."""

from dataclasses import dataclass

from django import template
from django.urls import reverse

from dashboard.shell.access import PERMISSIONS, Permission
from dashboard.shell.tags.frame import PAGE_TITLES, role_in
from grid.core.translation import gettext as _

register = template.Library()

# The keys after "g" of pages by their URL names.
_KEYS = {"home": "h", "executions": "e", "queue": "q", "workspaces": "w", "jobs": "j", "launch": "l"}
_OBSERVERS_KEYS = {"overview": "o", "infrastructure": "i"}


@dataclass(frozen=True, slots=True)
class Shortcut:
    """Keys of one tuple are pressed together, and `between` joins the tuples; one that opens a page has its URL, and the key after g."""

    title: str
    keys: tuple[tuple[str, ...], ...]
    between: str = "or"
    url: str = ""
    go: str = ""


@register.simple_tag(takes_context=True)
def shortcuts(context: template.Context) -> list[Shortcut]:
    keys = _KEYS | (_OBSERVERS_KEYS if Permission.OBSERVE in PERMISSIONS[role_in(context)] else {})
    return [
        Shortcut(_("Search"), (("/",), ("Ctrl", "K"))),
        *(Shortcut(PAGE_TITLES[page], (("g",), (key,)), "then", reverse(page), key) for page, key in keys.items()),
        Shortcut(_("Next row of a table"), (("j",),)),
        Shortcut(_("Previous row"), (("k",),)),
        Shortcut(_("Open the row"), (("Enter",),)),
        Shortcut(_("This list"), (("?",),)),
    ]
