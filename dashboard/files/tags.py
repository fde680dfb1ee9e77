"""The tag of log lines and of a notebook's outputs."""

from django import template
from django.utils.safestring import SafeString, mark_safe

from dashboard.files.viewmodels.notebooks import Output
from dashboard.logs.viewmodels.log_lines import LogRow

register = template.Library()


@register.simple_tag
def log_text(shown: LogRow | Output) -> SafeString:
    """Return the text, which `dashboard.logs.viewmodels.ansi` has escaped."""
    return mark_safe(shown.html)
