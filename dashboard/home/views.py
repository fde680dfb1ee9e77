"""The first page after login: the user's own executions and workspaces, the month's cost, and the first steps of whoever has not launched
yet."""

from collections.abc import Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.home.page import HOME
from dashboard.home.records import read_setup_facts, read_work_facts
from dashboard.home.viewmodels.first_steps import SETUP, WORK, FirstSteps, setup_steps, work_steps
from dashboard.shell.access import Role, role_of
from dashboard.shell.views.live import live_page
from dashboard.shell.views.preferences import hidden_first_steps, hide_first_steps
from dashboard.usage.usage_records import read_usage
from dashboard.usage.viewmodels.usage import last_months, total_of
from grid.models import User
from grid.sharing.portsharing import ports_shared_with


@require_safe
async def home(request: HttpRequest) -> HttpResponse:
    user = await request.auser()
    if user.pk is not None:
        HOME.forget(user.pk)
    # Once nothing is left to do, the browser says so, and nothing is read any more.
    asked = {WORK, SETUP} - hidden_first_steps(request, user.pk)
    context = await sync_to_async(_once)(user, asked) if isinstance(user, User) else {}
    cards: list[FirstSteps] = context.pop("cards", [])
    context["first_steps"] = [card for card in cards if not card.is_done]
    response = await live_page(request, HOME, "home/home.html", context=context)
    hide_first_steps(response, user.pk, {card.card for card in cards if card.is_done})
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
    """Yield those of these cards that are for the user, that of the installation first."""
    role = role_of(user)
    if SETUP in asked and role is Role.ADMIN:
        yield setup_steps(read_setup_facts(user.pk))
    if WORK in asked and role is not Role.AUDITOR:
        yield work_steps(read_work_facts(user.pk))
