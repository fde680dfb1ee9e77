"""Saved views of tables: saving one, opening one, choosing the one that a page opens with, deleting one. Somebody else's is 404."""

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.shell.access import may_observe, viewer_of
from dashboard.shell.viewmodels import saved_views
from dashboard.shell.views.preferences import keep_cookie
from grid.core.translation import gettext as _
from grid.models import SavedView, User

MOST_VIEWS = 30  # of one table


def view_menu(user_id: int, table: str, query: str) -> saved_views.ViewMenu:
    shown = saved_views.checked_query(table, query)
    views = SavedView.objects.filter(user=user_id, table=table)
    links = [saved_views.ViewLink(view.pk, view.name, view.is_default, view.query == shown) for view in views]
    return saved_views.ViewMenu(table, saved_views.VIEWED_TABLES[table].title, shown, links)


def save_view(user_id: int, table: str, name: str, query: str, *, hidden: str, is_default: bool) -> SavedView:
    """Store a view, in place of the one with this name. Raise ValueError with a sentence about what is wrong."""
    name, query = saved_views.checked_name(name), saved_views.checked_query(table, query)
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


@require_POST
def view_save(request: HttpRequest) -> HttpResponse:
    """Save what the table's page shows, with the columns that this browser shows, and go back to it."""
    table = saved_views.VIEWED_TABLES.get(key := request.POST.get("table", ""))
    viewer = viewer_of(request.user)
    if table is None or viewer is None or (table.is_for_observers and not may_observe(viewer)):
        raise PermissionDenied(_("This table is not for your account."))
    hidden = ""
    if table.columns:
        columns = saved_views.table_view(table.columns, request.COOKIES).columns
        hidden = saved_views.hidden_columns(
            table.columns, [str(column.number) for column in columns if column.is_shown]
        )
    name, query, is_default = request.POST.get("name", ""), request.POST.get("query", ""), "default" in request.POST
    try:
        view = save_view(viewer.id, key, name, query, hidden=hidden, is_default=is_default)
    except ValueError as error:
        messages.error(request, str(error))
        return _back(request, key)
    messages.success(request, _("Saved as “{name}”.", name=view.name))
    return _opened(view)


@require_safe
def view_open(request: HttpRequest, id: int) -> HttpResponse:
    return _opened(_own_view(request, id))


@require_POST
def view_default(request: HttpRequest, id: int) -> HttpResponse:
    view = _own_view(request, id)
    choose_default(view, is_default=request.POST.get("default") == "1")
    return _back(request, view.table)


@require_POST
def view_delete(request: HttpRequest, id: int) -> HttpResponse:
    view = _own_view(request, id)
    view.delete()
    messages.success(request, _("Deleted the view “{name}”.", name=view.name))
    return _back(request, view.table)


async def opened_with_default(request: HttpRequest, table: str) -> HttpResponse | None:
    """Return the way to the view that the person's page opens with; None without one."""
    viewer = await sync_to_async(viewer_of)(await request.auser())
    own = SavedView.objects.filter(user=viewer.id if viewer else None, table=table, is_default=True)
    view = await own.afirst()
    return None if view is None else _opened(view)


def _own_view(request: HttpRequest, id: int) -> SavedView:
    view = SavedView.objects.filter(pk=id, user=request.user.pk, table__in=saved_views.VIEWED_TABLES).first()
    if view is None:
        raise Http404(_("There is no such saved view, or it is not yours."))
    return view


def _back(request: HttpRequest, table: str) -> HttpResponseRedirect:
    try:
        query = saved_views.checked_query(table, request.POST.get("query", ""))
    except ValueError:
        query = saved_views.checked_query(table, "")
    return HttpResponseRedirect(reverse(saved_views.VIEWED_TABLES[table].route) + query)


def _opened(view: SavedView) -> HttpResponseRedirect:
    """Return the way to the page, whose address says all but the columns: those are the browser's."""
    table = saved_views.VIEWED_TABLES[view.table]
    answer = HttpResponseRedirect(reverse(table.route) + saved_views.checked_query(view.table, view.query))
    if table.columns:
        keep_cookie(answer, saved_views.hidden_cookie(table.columns), view.hidden)
    return answer
