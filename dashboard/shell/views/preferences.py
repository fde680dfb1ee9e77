"""What shows no data: the help, the icon, and what the browser keeps for its owner in cookies, the theme and how tables look, of which
nothing is worth a row in the database."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from dashboard.shell.access import PERMISSIONS, role_of
from dashboard.shell.tags.frame import THEMES
from dashboard.shell.viewmodels.glossary import GROUPS
from dashboard.shell.viewmodels.saved_views import COMPACT, DENSITY_COOKIE, TABLES, hidden_columns, hidden_cookie

_YEAR = 365 * 24 * 60 * 60


@login_not_required
@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Store the theme and redirect back to the page that the user was on."""
    response, chosen = back(request), request.POST.get("theme", "")
    if chosen in dict(THEMES):
        keep_cookie(response, "theme", chosen)
    return response


@require_POST
def choose_table_view(request: HttpRequest) -> HttpResponse:
    """Store the shown columns and the density of a table, and redirect back to the page that the user was on."""
    response, table = back(request), request.POST.get("table", "")
    if table in TABLES:
        keep_cookie(response, hidden_cookie(table), hidden_columns(table, request.POST.getlist("column")))
        keep_cookie(response, DENSITY_COOKIE, COMPACT if request.POST.get("density") == COMPACT else "")
    return response


def back(request: HttpRequest) -> HttpResponseRedirect:
    """Redirect to the page that the form names, or home; never to another site."""
    target = request.POST.get("next", "")
    return HttpResponseRedirect(target if url_has_allowed_host_and_scheme(target, allowed_hosts=None) else "/")


def keep_cookie(response: HttpResponse, name: str, value: str) -> None:
    response.set_cookie(name, value, max_age=_YEAR, samesite="Lax", httponly=True)


@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    return render(request, "shell/help.html", {"granted": PERMISSIONS[role_of(request.user)], "groups": GROUPS})


@login_not_required
@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """Redirect to static/favicon.ico, which is static/icon.svg drawn in 16, 32 and 48 pixels."""
    return redirect(static("favicon.ico"), permanent=False)
