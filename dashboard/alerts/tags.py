"""The line about critical alerts in the page frame."""

from django import template
from django.db import DatabaseError
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from dashboard.alerts.page import critical_alerts
from dashboard.alerts.viewmodel import critical_fragment
from dashboard.shell.access import PERMISSIONS, Permission
from dashboard.shell.fragments import render_fragment
from dashboard.shell.tags.frame import role_in

register = template.Library()


@register.simple_tag(takes_context=True)
def alert_lines(context: template.Context) -> SafeString:
    """Return what fires and is critical, for those who operate; nothing when the database does not answer."""
    if Permission.OPERATE not in PERMISSIONS[role_in(context)]:
        return mark_safe("")
    now = timezone.now()
    try:
        lines = critical_alerts(now)
    except DatabaseError:
        lines = ()
    return mark_safe(render_fragment(critical_fragment(lines), now=now))
