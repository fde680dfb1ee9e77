"""The tag of log lines."""

from django import template
from django.utils.safestring import SafeString, mark_safe

from dashboard.viewmodels.log_lines import LogRow

register = template.Library()


@register.simple_tag
def log_text(row: LogRow) -> SafeString:
    """Return the line's text, which `dashboard.viewmodels.ansi` has escaped."""
    return mark_safe(row.html)
