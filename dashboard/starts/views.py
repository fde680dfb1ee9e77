"""How long starts take, for those who watch the cluster: a table by tier, environment, pool or image, charts by day, and a file for
spreadsheets."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.shell.access import observer_required, user_of
from dashboard.shell.exports import attachment, note_export
from dashboard.starts.startup_records import MOST_GROUPS, read_shown, read_slowest, read_start_times
from dashboard.starts.viewmodels import start_times
from grid.runtime import get_runtime
from grid.starts.startdays import ACCURACY_PERCENT


@require_safe
@observer_required
def startup(request: HttpRequest) -> HttpResponse:
    view, now = start_times.StartTimesView.parse(request.GET.dict()), get_runtime().clock()
    read = read_start_times(view, now)
    if request.GET.get("download") == "1":
        name = f"start-up-by-{view.by}-{view.range}-days-{now:%Y-%m-%d}.csv"
        note_export(request, user_of(request), name)
        return attachment(start_times.start_times_csv(read.groups, view.by), name)
    shown = read.shown
    context = {
        "view": view,
        "grouping": start_times.GROUPINGS[view.by],
        "groupings": [
            (title, view.query(by=key, of=""), key == view.by) for key, title in start_times.GROUPINGS.items()
        ],
        "range_words": start_times.RANGES[view.range],
        "lines": start_times.start_lines(read.groups, view),
        "one": shown if shown.key else None,
        "whole": view.query(of=""),
        "days": start_times.start_day_lines(view.days(now), shown.days),
        "phases": start_times.phase_times(shown.whole),
        "slowest": read_slowest(read, view.by),
        "left_out": read.left_out,
        "most_groups": MOST_GROUPS,
        "accuracy": ACCURACY_PERCENT,
        "longer": "" if view.range == "30" else view.query(range="30"),
    }
    return render(request, "starts/startup.html", context)


@require_safe
@observer_required
def startup_days(request: HttpRequest) -> HttpResponse:
    view, now = start_times.StartTimesView.parse(request.GET.dict()), get_runtime().clock()
    return JsonResponse(start_times.start_charts(view.days(now), read_shown(view, now).days))
