"""The bell of the page frame."""

from typing import Any

from django import template
from django.db import DatabaseError
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from dashboard.notifications.records import unread_count
from dashboard.notifications.viewmodel import bell_fragments
from dashboard.shell.fragments import render_fragment

register = template.Library()


@register.simple_tag(takes_context=True)
def bell(context: template.Context, id: str) -> SafeString:
    """Return the bell with the unread number, read once for the whole page; without it when the database does not answer."""
    request: Any = context["request"]
    if not hasattr(request, "bells_in_frame"):
        try:
            unread = unread_count(request.user.pk)
        except DatabaseError:
            unread = 0
        request.bells_in_frame = {fragment.id: fragment for fragment in bell_fragments(unread)}
    return mark_safe(render_fragment(request.bells_in_frame[id], now=timezone.now()))
