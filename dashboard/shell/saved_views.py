"""Reads and writes people's saved views. Each function is about one person's own; nobody gets somebody else's."""

from django.db import transaction
from django.db.models import QuerySet

from dashboard.shell.viewmodels.saved_views import VIEWED_TABLES, ViewLink, ViewMenu, checked_name, checked_query
from grid.core.translation import gettext as _
from grid.models import SavedView, User

MOST_VIEWS = 30  # of one table


def view_menu(user_id: int, table: str, query: str) -> ViewMenu:
    shown = checked_query(table, query)
    views = SavedView.objects.filter(user=user_id, table=table)
    links = [ViewLink(view.pk, view.name, view.is_default, view.query == shown) for view in views]
    return ViewMenu(table, VIEWED_TABLES[table].title, shown, links)


def default_view(user_id: int, table: str) -> SavedView | None:
    return SavedView.objects.filter(user=user_id, table=table, is_default=True).first()


def save_view(user_id: int, table: str, name: str, query: str, *, hidden: str, is_default: bool) -> SavedView:
    """Store a view, in place of the one with this name. Raise ValueError with a sentence about what is wrong."""
    name, query = checked_name(name), checked_query(table, query)
    with transaction.atomic():
        views = _locked(user_id).filter(table=table)
        if not views.filter(name=name).exists() and views.count() >= MOST_VIEWS:
            raise ValueError(_("You have {count} saved views here. Delete one first.", count=MOST_VIEWS))
        if is_default:
            views.exclude(name=name).update(is_default=False)
        values = {"query": query, "hidden": hidden, "is_default": is_default}
        view, _is_new = SavedView.objects.update_or_create(user_id=user_id, table=table, name=name, defaults=values)
    return view


def choose_default(view: SavedView, *, is_default: bool) -> None:
    """Have the table's page open with this view, or with none."""
    with transaction.atomic():
        _locked(view.user_id).filter(table=view.table, is_default=True).update(is_default=False)
        SavedView.objects.filter(pk=view.pk).update(is_default=is_default)


def _locked(user_id: int) -> QuerySet[SavedView]:
    """Return the person's views, which nobody else changes until the end of the transaction."""
    User.objects.select_for_update().get(pk=user_id)
    return SavedView.objects.filter(user=user_id)
