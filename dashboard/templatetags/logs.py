"""The tags of log lines, and of other text that was meant for a terminal."""

from django import template
from django.utils.safestring import SafeString, mark_safe

from dashboard.viewmodels.ansi import ansi_html, last_state
from dashboard.viewmodels.log_lines import LogRow

register = template.Library()


@register.simple_tag
def log_text(row: LogRow) -> SafeString:
    """Return the line's text, which `dashboard.viewmodels.ansi` has escaped."""
    return mark_safe(row.html)


@register.simple_tag
def terminal_text(text: str) -> SafeString:
    """Return lines as a terminal shows them, with its colours; escaped."""
    return mark_safe("\n".join(ansi_html(last_state(line.removesuffix("\r"))) for line in text.split("\n")))
