"""What the browser keeps for its owner, in cookies: the theme, and how tables look. Nothing of it is worth a row in the database."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from dashboard.templatetags.frame import THEMES
from dashboard.viewmodels.tables import COMPACT, DENSITY_COOKIE, TABLES, hidden_columns, hidden_cookie

_YEAR = 365 * 24 * 60 * 60


@login_not_required
@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Store the theme and redirect back to the page that the user was on."""
    response, chosen = _back(request), request.POST.get("theme", "")
    if chosen in dict(THEMES):
        _keep(response, "theme", chosen)
    return response


@require_POST
def choose_table_view(request: HttpRequest) -> HttpResponse:
    """Store the shown columns and the density of a table, and redirect back to the page that the user was on."""
    response, table = _back(request), request.POST.get("table", "")
    if table in TABLES:
        _keep(response, hidden_cookie(table), hidden_columns(table, request.POST.getlist("column")))
        _keep(response, DENSITY_COOKIE, COMPACT if request.POST.get("density") == COMPACT else "")
    return response


def _back(request: HttpRequest) -> HttpResponseRedirect:
    back = request.POST.get("next", "")
    return HttpResponseRedirect(back if url_has_allowed_host_and_scheme(back, allowed_hosts=None) else "/")


def _keep(response: HttpResponse, name: str, value: str) -> None:
    response.set_cookie(name, value, max_age=_YEAR, samesite="Lax", httponly=True)
