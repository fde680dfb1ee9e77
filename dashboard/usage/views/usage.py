"""Pages of usage: one's own, a person's, and everybody's for those who watch the cluster; each also as a file for spreadsheets."""

from collections.abc import Sequence

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.shell.access import may_observe, may_see_usage
from dashboard.shell.exports import note_export
from dashboard.usage.usage_records import read_everybody, read_usage
from dashboard.usage.viewmodels.usage import (
    HeldTime,
    UsageView,
    day_bars,
    in_month,
    last_months,
    months_of,
    picture_sentence,
    tables,
    total_of,
    usage_csv,
)
from grid.core.translation import gettext as _
from grid.models import User

_TEMPLATE = "usage/usage.html"
_NOT_YOURS = _("You can see your own usage only.")


@require_safe
def own_usage(request: HttpRequest) -> HttpResponse:
    assert isinstance(request.user, User)
    return _usage_of(request, request.user)


@require_safe
def person_usage(request: HttpRequest, id: int) -> HttpResponse:
    if not may_see_usage(request.user, id):
        raise PermissionDenied(_NOT_YOURS)
    return _usage_of(request, get_object_or_404(User, pk=id))


@require_safe
def usage_of_everybody(request: HttpRequest) -> HttpResponse:
    """Show one month, because the intervals of a year are too many to add up for a page. With `?person=` go to that person's page."""
    if not may_observe(request.user):
        raise PermissionDenied(_NOT_YOURS)
    now, username = timezone.now(), request.GET.get("person", "").strip()
    person = User.objects.filter(username=username).first() if username and "\0" not in username else None
    if person is not None:
        return redirect("person-usage", person.pk)
    view = UsageView.parse(request.GET.dict(), now)
    month = view.month
    if request.GET.get("download") == "1":
        rows = read_usage(month.first, month.last, now, only=view.columns)
        name = f"usage-{month.value}.csv"
        assert isinstance(request.user, User)
        note_export(request, request.user, name)
        return _csv(rows, name, has_kinds=False)
    rows, days = read_everybody(month.first, month.last, now, view.columns)
    context = {"months": last_months(now), "unknown": username, "is_everybody": True}
    return render(request, _TEMPLATE, context | _month(rows, days, view, is_everybody=True))


def _usage_of(request: HttpRequest, person: User) -> HttpResponse:
    now = timezone.now()
    view = UsageView.parse(request.GET.dict(), now)
    months = last_months(now)
    rows = read_usage(months[-1].first, months[0].last, now, person.pk, view.columns)
    if request.GET.get("download") == "1":
        name = f"usage-{months[-1].value}-to-{months[0].value}.csv"
        if person != request.user:
            note_export(request, person, name)
        return _csv(rows, name, has_kinds=True)
    context = {
        "person": person,
        "is_own": person == request.user,
        "may_see_all": may_observe(request.user),
        "months": months_of(rows, now),
    }
    shown = in_month(rows, view.month)
    return render(request, _TEMPLATE, context | _month(shown, shown, view, is_everybody=False))


def _month(
    rows: Sequence[HeldTime], days: Sequence[HeldTime], view: UsageView, *, is_everybody: bool
) -> dict[str, object]:
    bars = day_bars(days, view.month)
    return {
        "view": view,
        "chips": view.chips(rows),
        "total": total_of(rows),
        "bars": bars,
        "picture": picture_sentence(bars, view.month),
        "tables": tables(rows, view, is_everybody=is_everybody),
    }


def _csv(rows: Sequence[HeldTime], name: str, *, has_kinds: bool) -> HttpResponse:
    answer = HttpResponse(usage_csv(rows, has_kinds=has_kinds), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
