"""The tag of the menu of saved views, which reads the person's views when the page is rendered."""

from django import template
from django.template import Context

from dashboard.shell.viewmodels.saved_views import ViewMenu
from dashboard.shell.views.saved_views import view_menu

register = template.Library()


@register.simple_tag(takes_context=True)
def saved_views(context: Context, table: str) -> ViewMenu:
    """Return the user's saved views of a table, whose page shows the context's `view`."""
    return view_menu(context["request"].user.pk, table, context["view"].query())
