"""The announcements of the page frame."""

from typing import Any

from django import template
from django.db import DatabaseError
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from dashboard.announcements.records import announcements_for
from dashboard.announcements.viewmodel import banners_fragment
from dashboard.shell.fragments import render_fragment

register = template.Library()


@register.simple_tag(takes_context=True)
def announcements(context: template.Context) -> SafeString:
    """Return what everybody is told now and the page's user has not hidden; nothing when the database does not answer."""
    request: Any = context["request"]
    now = timezone.now()
    try:
        records = announcements_for(request.user.pk, now)
    except DatabaseError:
        records = []
    return mark_safe(render_fragment(banners_fragment(records, now), now=now))
