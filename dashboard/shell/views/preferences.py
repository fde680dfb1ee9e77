"""What the browser keeps for its owner, in cookies: the theme, how tables look, which first steps are done. Nothing of it is worth a row
in the database."""

from collections.abc import Iterable

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from dashboard.home.viewmodels.first_steps import CARDS
from dashboard.shell.tags.frame import THEMES
from dashboard.shell.viewmodels.tables import COMPACT, DENSITY_COOKIE, TABLES, hidden_columns, hidden_cookie

_YEAR = 365 * 24 * 60 * 60
_STEPS_COOKIE = "first-steps-"


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


@require_POST
def choose_first_steps(request: HttpRequest) -> HttpResponse:
    """Hide a card of first steps for good, and redirect back to the page that the user was on."""
    response = back(request)
    hide_first_steps(response, request.user.pk, {request.POST.get("card", "")} & set(CARDS))
    return response


def hidden_first_steps(request: HttpRequest, user_id: int | None) -> set[str]:
    """Return the cards of first steps that the user has hidden or done, in this browser, which others may use too."""
    return {card for card in CARDS if f"{_STEPS_COOKIE}{card}-{user_id}" in request.COOKIES}


def hide_first_steps(response: HttpResponse, user_id: int | None, cards: Iterable[str]) -> None:
    for card in cards:
        keep_cookie(response, f"{_STEPS_COOKIE}{card}-{user_id}", "hidden")


def back(request: HttpRequest) -> HttpResponseRedirect:
    """Redirect to the page that the form names, or home; never to another site."""
    target = request.POST.get("next", "")
    return HttpResponseRedirect(target if url_has_allowed_host_and_scheme(target, allowed_hosts=None) else "/")


def keep_cookie(response: HttpResponse, name: str, value: str) -> None:
    """Have the browser keep a preference for a year."""
    response.set_cookie(name, value, max_age=_YEAR, samesite="Lax", httponly=True)
