"""The user's own notifications: the list, marking as read, what to be told of, and by which channels, with a webhook and tests."""

import asyncio

from asgiref.sync import sync_to_async
from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.notifications.page import NOTIFICATIONS, page_number
from dashboard.notifications.records import channels_for, events_for, mark_read, save_choices, webhook_url
from dashboard.notifications.viewmodel import test_words
from dashboard.shell.access import user_of
from dashboard.shell.views.live import live_page
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.models import Delivery
from grid.notifications import channels


@require_safe
async def notification_list(request: HttpRequest) -> HttpResponse:
    return await live_page(request, NOTIFICATIONS, "notifications/notifications.html")


@require_POST
def notifications_read(request: HttpRequest) -> HttpResponse:
    """Mark one notification as read, by its id, or all; somebody else's is never found."""
    asked = request.POST.get("notification", "")
    if asked == "all":
        mark_read(user_of(request).pk)
    elif asked.isascii() and asked.isdecimal() and len(asked) < 19:
        mark_read(user_of(request).pk, [int(asked)])
    page = page_number(request.POST.get("page", ""))
    return redirect(f"{reverse('notifications')}?page={page}" if page > 1 else reverse("notifications"))


@require_POST
def notification_choices(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    save_choices(user, request.POST.getlist("choice"), channels_for(user), events_for(user))
    messages.success(request, _("Your choice of notifications was saved."))
    return redirect("account")


class WebhookForm(forms.Form):
    """`grid.notifications.channels` decides whether the address can be used."""

    url = forms.CharField(
        label=_("Address"),
        required=False,
        max_length=2000,
        widget=forms.URLInput(attrs={"autocomplete": "off", "placeholder": "https://example.com/hook"}),
        help_text=_("It begins with https://. Each notification that you choose is posted there as JSON."),
    )


WAIT_SECONDS = 15.0  # more than one try of a webhook takes
LOOK_SECONDS = 0.25


@require_http_methods(["GET", "HEAD", "POST"])
def webhook(request: HttpRequest) -> HttpResponse:
    """Set where notifications are posted, and show the secret once: it is stored encrypted, and never shown again."""
    user = user_of(request)
    url = webhook_url(user.pk)
    form = WebhookForm(request.POST if request.method == "POST" else None, initial={"url": url})
    if form.is_valid():
        try:
            secret = channels.set_target(user, form.cleaned_data["url"])
        except Rejected as refused:
            for problem in refused.problems:
                form.add_error(problem.path, problem.message)
        else:
            return render(request, "notifications/webhook.html", {"secret": secret, "url": webhook_url(user.pk)})
    context = {"form": form, "url": url}
    return render(request, "notifications/webhook.html", context, status=422 if form.is_bound else 200)


@require_POST
def webhook_remove(request: HttpRequest) -> HttpResponse:
    channels.remove_target(user_of(request))
    messages.success(request, _("The webhook was removed. Nothing is posted from now on."))
    return _back()


@require_POST
async def notification_test(request: HttpRequest) -> HttpResponse:
    """Have the controller send a test through one channel, wait for it a little, and say what happened."""
    channel = request.POST.get("channel", "")
    user = await sync_to_async(user_of)(request)
    try:
        id = await sync_to_async(channels.ask_for_test)(user, channel, now=timezone.now())
    except Rejected as refused:
        messages.error(request, refused.problems[0].message)
        return _back()
    is_sent, sentence = test_words(await _outcome(user.pk, id), channel=channel, seconds=WAIT_SECONDS)
    (messages.success if is_sent else messages.error)(request, sentence)
    return _back()


async def _outcome(user_id: int, id: int) -> Delivery | None:
    """Return what became of a delivery, as soon as that is known, or what is known of it when the time is up."""
    loop = asyncio.get_running_loop()
    until = loop.time() + WAIT_SECONDS
    while True:
        delivery = await Delivery.objects.filter(user=user_id, pk=id).afirst()
        if delivery is None or delivery.next_try_at is None or loop.time() >= until:
            return delivery
        await asyncio.sleep(LOOK_SECONDS)


def _back() -> HttpResponse:
    return redirect(f"{reverse('account')}#notifications")
