"""Logging in and out, and the choice of light or dark."""

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from dashboard.templatetags.frame import THEMES

_YEAR = 365 * 24 * 60 * 60

login = LoginView.as_view(template_name="dashboard/login.html", redirect_authenticated_user=True)
logout = LogoutView.as_view()


@login_not_required
@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Remember the theme in a cookie and go back to where the person was."""
    chosen = request.POST.get("theme", "")
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        back = "/"
    response = HttpResponseRedirect(back)
    if chosen in THEMES:
        response.set_cookie("theme", chosen, max_age=_YEAR, samesite="Lax", httponly=True)
    return response
