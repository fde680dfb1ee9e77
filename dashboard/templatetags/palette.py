"""Tags of the command palette's dialogs, which every page has."""

from dataclasses import dataclass

from django import template
from django.template import Context
from django.urls import reverse

from dashboard.access import may_observe

register = template.Library()


@dataclass(frozen=True, slots=True)
class GoKey:
    """A page that the key opens after "g"."""

    key: str
    title: str
    url: str


@register.simple_tag(takes_context=True)
def go_keys(context: Context) -> list[GoKey]:
    # A live page has looked up its viewer already.
    viewer = context.get("viewer") or context["user"]
    places = [("h", "home", "Home"), ("e", "executions", "Executions"), ("l", "launch", "Launch")]
    if may_observe(viewer):
        places.append(("i", "infrastructure", "Infrastructure"))
    return [GoKey(key, title, reverse(route)) for key, route, title in places]
