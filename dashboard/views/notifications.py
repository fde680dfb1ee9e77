"""The user's own notifications: the list, marking as read, and the choice of what to be told of."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dashboard.notification_records import mark_read, notifications, save_choices, unread_count
from dashboard.viewmodels.listing import Paging
from dashboard.viewmodels.notifications import notification_rows, unread_words

PAGE_LENGTH = 50
_MOST_PAGES = 10_000


@require_safe
def notification_list(request: HttpRequest) -> HttpResponse:
    """Show the newest notifications, or those before them."""
    user_id = _user_id(request)
    page = _page(request.GET.get("page", ""))
    found = notifications(user_id, start=(page - 1) * PAGE_LENGTH, at_most=PAGE_LENGTH + 1)
    unread = unread_count(user_id)
    context = {
        "rows": list(notification_rows(found[:PAGE_LENGTH])),
        "unread": unread,
        "lead": unread_words(unread),
        "paging": _paging(page, len(found)),
        "now": timezone.now(),
    }
    return render(request, "dashboard/notifications.html", context)


@require_POST
def notifications_read(request: HttpRequest) -> HttpResponse:
    """Mark one notification as read, by its id, or all; somebody else's is never found."""
    asked = request.POST.get("notification", "")
    if asked == "all":
        mark_read(_user_id(request))
    elif asked.isascii() and asked.isdecimal() and len(asked) < 19:
        mark_read(_user_id(request), [int(asked)])
    page = _page(request.POST.get("page", ""))
    return redirect(f"{reverse('notifications')}?page={page}" if page > 1 else reverse("notifications"))


@require_POST
def notification_choices(request: HttpRequest) -> HttpResponse:
    """Store what the user wants to be told of."""
    save_choices(_user_id(request), request.POST.getlist("choice"))
    messages.success(request, "Your choice of notifications was saved.")
    return redirect("account")


def _paging(page: int, found: int) -> Paging | None:
    if page == 1 and found <= PAGE_LENGTH:
        return None
    previous = f"?page={page - 1}" if page > 1 else ""
    return Paging(f"Page {page}", previous, f"?page={page + 1}" if found > PAGE_LENGTH else "")


def _page(text: str) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) < 6
    return min(max(1, int(text)), _MOST_PAGES) if is_number else 1


def _user_id(request: HttpRequest) -> int:
    assert request.user.pk is not None, "only those who are logged in get here"
    return int(request.user.pk)
