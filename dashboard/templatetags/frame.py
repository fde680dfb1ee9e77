"""Tags of the page frame: navigation by role, theme."""

from dataclasses import dataclass
from typing import Any

from django import template
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.template import Context
from django.urls import NoReverseMatch, reverse

from dashboard.access import PERMISSIONS, Permission, role_of
from grid.runtime import has_sandbox

register = template.Library()

# Each link's URL name, title and required permission.
_PLACES = (
    ("executions", "Executions", None),
    ("launch", "Launch", None),
    ("infrastructure", "Infrastructure", Permission.OBSERVE),
    ("tiers", "Tiers", Permission.ADMINISTER),
    ("environments", "Environments", Permission.ADMINISTER),
    ("projects", "Projects", Permission.ADMINISTER),
    ("logins", "Logins", Permission.ADMINISTER),
    ("configuration", "Configuration", Permission.ADMINISTER),
)
_DEMONSTRATION = ("demonstration", "Demonstration", Permission.ADMINISTER)
THEMES = ("auto", "light", "dark")


@dataclass(frozen=True, slots=True)
class NavigationLink:
    url: str
    title: str
    is_current: bool


@register.simple_tag(takes_context=True)
def places(context: Context) -> list[NavigationLink]:
    """Return links to the pages that the user may open, with the current one marked."""
    request = context.get("request")
    user = getattr(request, "user", AnonymousUser())
    if request is None or not user.is_authenticated:
        return []
    granted = PERMISSIONS[role_of(user)]
    found: list[NavigationLink] = []
    for name, title, permission in (*_PLACES, _DEMONSTRATION) if settings.DEMO and has_sandbox() else _PLACES:
        url = _address(name)
        if url and (permission is None or permission in granted):
            found.append(NavigationLink(url, title, is_current=request.path == url or request.path.startswith(url)))
    return found


@register.simple_tag(takes_context=True)
def theme(context: Context) -> str:
    """Return the chosen theme, or "auto", which follows the system, without a valid choice."""
    request: Any = context.get("request")
    chosen = request.COOKIES.get("theme", "") if request is not None else ""
    return chosen if chosen in THEMES else "auto"


def _address(name: str) -> str:
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""
