"""The user's own notifications: the list, marking as read, and the choice of what to be told of."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.notifications.pages.notifications import NOTIFICATIONS, page_number
from dashboard.notifications.records import channels_for, events_for, mark_read, save_choices
from dashboard.shell.views.live import live_page
from grid.core.translation import gettext as _
from grid.models import User


@require_safe
async def notification_list(request: HttpRequest) -> HttpResponse:
    """Show the newest notifications, or those before them."""
    return await live_page(request, NOTIFICATIONS, "notifications/notifications.html")


@require_POST
def notifications_read(request: HttpRequest) -> HttpResponse:
    """Mark one notification as read, by its id, or all; somebody else's is never found."""
    asked = request.POST.get("notification", "")
    if asked == "all":
        mark_read(_user_id(request))
    elif asked.isascii() and asked.isdecimal() and len(asked) < 19:
        mark_read(_user_id(request), [int(asked)])
    page = page_number(request.POST.get("page", ""))
    return redirect(f"{reverse('notifications')}?page={page}" if page > 1 else reverse("notifications"))


@require_POST
def notification_choices(request: HttpRequest) -> HttpResponse:
    """Store what the user wants to be told of."""
    assert isinstance(request.user, User)
    save_choices(request.user, request.POST.getlist("choice"), channels_for(request.user), events_for(request.user))
    messages.success(request, _("Your choice of notifications was saved."))
    return redirect("account")


def _user_id(request: HttpRequest) -> int:
    assert request.user.pk is not None, "only those who are logged in get here"
    return int(request.user.pk)
