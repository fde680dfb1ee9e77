"""The first page after login: the user's own executions and workspaces, the month's cost, and the first steps of whoever has not launched
yet."""

from collections.abc import Iterable, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dashboard.home.page import HOME
from dashboard.home.records import read_setup_facts, read_work_facts
from dashboard.home.viewmodels.first_steps import CARDS, SETUP, WORK, FirstSteps, setup_steps, work_steps
from dashboard.shell.access import Role, role_of
from dashboard.shell.views.live import live_page
from dashboard.shell.views.preferences import back, keep_cookie
from dashboard.usage.usage_records import read_usage
from dashboard.usage.viewmodels.usage import last_months, total_of
from grid.models import User
from grid.sharing.sharing import ports_shared_with

_STEPS_COOKIE = "first-steps-"


@require_safe
async def home(request: HttpRequest) -> HttpResponse:
    user = await request.auser()
    if user.pk is not None:
        HOME.forget(user.pk)
    # Once nothing is left to do, or a user has hidden it, this browser, which others may use too, says so, and nothing is read any more.
    asked = {card for card in CARDS if f"{_STEPS_COOKIE}{card}-{user.pk}" not in request.COOKIES}
    context = await sync_to_async(_once)(user, asked) if isinstance(user, User) else {}
    cards: list[FirstSteps] = context.pop("cards", [])
    context["first_steps"] = [card for card in cards if not card.is_done]
    response = await live_page(request, HOME, "home/home.html", context=context)
    _hide_first_steps(response, user.pk, {card.card for card in cards if card.is_done})
    return response


@require_POST
def choose_first_steps(request: HttpRequest) -> HttpResponse:
    """Hide a card of first steps for good, and redirect back to the page that the user was on."""
    response = back(request)
    _hide_first_steps(response, request.user.pk, {request.POST.get("card", "")} & set(CARDS))
    return response


def _once(user: User, asked: set[str]) -> dict[str, Any]:
    """Return what is read for the page as it is opened, and not again while it stays open, as thousands do: a cost grows slowly."""
    now = timezone.now()
    month = last_months(now)[0]
    return {
        "cards": list(_first_steps(user, asked)) if asked else [],
        "spent": total_of(read_usage(month.first, month.last, now, user.pk)),
        "month": month,
        "shared_ports": ports_shared_with(user.pk),
    }


def _first_steps(user: User, asked: set[str]) -> Iterator[FirstSteps]:
    role = role_of(user)
    if SETUP in asked and role is Role.ADMIN:
        yield setup_steps(read_setup_facts(user.pk))
    if WORK in asked and role is not Role.AUDITOR:
        yield work_steps(read_work_facts(user.pk))


def _hide_first_steps(response: HttpResponse, user_id: int | None, cards: Iterable[str]) -> None:
    for card in cards:
        keep_cookie(response, f"{_STEPS_COOKIE}{card}-{user_id}", "hidden")
