"""The page behind the link that confirms a new e-mail address, and what can be done while it waits: send the link again, or call it off.

The token is moved from the address into the visitor's session before anything is shown, so it is in no history and no `Referer`. Only the
person whose address it is, logged in, can confirm it, by a POST: nobody does so for somebody else, and no program that looks at links.
"""

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.shell.access import user_of
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.models import EmailChange
from grid.notifications import addresses

_LINK = "email_link"


@login_not_required
@require_safe
def email_link(request: HttpRequest, id: int, token: str) -> HttpResponse:
    """Keep the token in the session, and lead to the page that asks; 410 for a link that does not work."""
    if addresses.change_of_link(id, token, now=timezone.now()) is None:
        return _page(request, None)
    request.session[_LINK] = [id, token]
    return redirect("email-confirm")


@require_http_methods(["GET", "HEAD", "POST"])
def email_confirm(request: HttpRequest) -> HttpResponse:
    """Ask whether the address is right, then use it; 403 for somebody else's link."""
    user, now = user_of(request), timezone.now()
    id, token = request.session.get(_LINK, [0, ""])
    pending = addresses.change_of_link(id, token, now=now)
    if pending is None:
        return _page(request, None)
    if id != user.pk:
        raise PermissionDenied(
            _(
                "This link is for another account. Log out, then open it again and log in as the person who asked for it."
            )
        )
    if request.method != "POST":
        return _page(request, pending)
    del request.session[_LINK]
    if not addresses.confirm(user, token, now=now):
        return _page(request, None)
    messages.success(request, _("Your e-mail address is {address} now.", address=pending.address))
    return redirect("account")


@require_POST
def email_send_again(request: HttpRequest) -> HttpResponse:
    try:
        is_sent = addresses.send_again(user_of(request), now=timezone.now())
    except Rejected as refused:
        messages.error(request, refused.sentences)
    else:
        if is_sent:
            messages.success(request, _("Another link is being sent. The earlier one no longer works."))
    return redirect("account")


@require_POST
def email_cancel(request: HttpRequest) -> HttpResponse:
    if addresses.call_off(user_of(request)):
        messages.success(request, _("Your e-mail address stays as it is."))
    return redirect("account")


def _page(request: HttpRequest, pending: EmailChange | None) -> HttpResponse:
    """Ask whether to use the address; 410 without one, because the link does not work."""
    return render(request, "accounts/email_confirm.html", {"pending": pending}, status=200 if pending else 410)
