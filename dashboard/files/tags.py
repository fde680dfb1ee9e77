"""The tags of log lines and of a notebook's outputs."""

from django import template
from django.utils.safestring import SafeString, mark_safe

from dashboard.files.viewmodels.notebooks import Output
from dashboard.logs.viewmodels.log_lines import LogRow

register = template.Library()


@register.simple_tag
def log_text(row: LogRow) -> SafeString:
    """Return the line's text, which `dashboard.logs.viewmodels.ansi` has escaped."""
    return mark_safe(row.html)


@register.simple_tag
def output_text(output: Output) -> SafeString:
    """Return the text of a notebook's output, which `dashboard.logs.viewmodels.ansi` has escaped."""
    return mark_safe(output.html)
