"""The component page: each part of the visual language in each state. It exists with GRID_DEMO only.

The tests look at it in light and dark, narrow and wide; whoever changes the stylesheet does too.
"""

from datetime import timedelta

from django import forms
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.access import admin_required
from dashboard.viewmodels.freshness import FreshnessView, broken_view
from dashboard.viewmodels.nodes import Share, StatusLine
from dashboard.viewmodels.timeline import TimelineItem

_LONG = "a-name-that-is-as-long-as-kubernetes-allows-it-to-be-and-ends-only-here-0123456789"


class SampleForm(forms.Form):
    """One field of each kind; `notes` is always wrong."""

    title = forms.CharField(help_text="Helps you find it later.")
    tier = forms.ChoiceField(choices=[("small", "Small: 1 core, 4 GiB"), ("large", "Large: 7 cores, 28 GiB")])
    autoscale = forms.BooleanField(label="Grow and shrink with the load", required=False)
    notes = forms.CharField(max_length=5, widget=forms.Textarea(attrs={"rows": 2}))


@require_safe
@admin_required
def components(request: HttpRequest) -> HttpResponse:
    if not settings.DEMO:
        raise Http404("This page is for demonstrations.")
    now = timezone.now()
    context = {
        "now": now,
        "form": SampleForm({"title": "Churn notebook", "tier": "large", "autoscale": "on", "notes": "too long"}),
        "statuses": STATUSES,
        "shares": (
            Share("CPU", "6", "8", 75, "4.1", 51),
            Share("Memory", "30 GiB", "32 GiB", 94, "31 GiB", 97),
            Share("GPUs", "0", "4", 0),
        ),
        "freshness": (
            FreshnessView("live", "Live"),
            FreshnessView("starting", "Reading the cluster", "This page fills as the answer comes."),
            FreshnessView("behind", "The cluster does not answer", "What you see is from 12:00:00 UTC."),
            broken_view(),
        ),
        "timeline": (
            TimelineItem(
                now, "problem", "It used more memory than its tier has", "OOMKilled", "OOMKilling", is_raw=True
            ),
            TimelineItem(now - timedelta(minutes=4), "ok", "Running", ""),
            TimelineItem(
                now - timedelta(minutes=5),
                "",
                "No node has room yet",
                "0/5 nodes are available: 5 Insufficient cpu.",
                "FailedScheduling",
                "Pod/workspace-1",
                times=7,
                is_raw=True,
            ),
            TimelineItem(now - timedelta(hours=1), "", "Queued", "Waiting for a free slot.", actor="scientist"),
        ),
        "steps": (
            ("Queued", "done", "2 s"),
            ("Preparing", "now", "for 24 s"),
            ("Running", "todo", ""),
            ("Failed", "problem", "1 min"),
        ),
        "rows": (("Churn notebook", STATUSES[0], 40), ("Nightly features", STATUSES[2], 96), (_LONG, STATUSES[1], 0)),
        "tabs": {"": "What happened", "log": "Log", "events": "Kubernetes events"},
        "tab": "",
    }
    return render(request, "dashboard/components.html", context)


STATUSES = (
    StatusLine("ok", "Running"),
    StatusLine("wait", "Deploying", "No node has room yet; a new one was asked for, which takes some minutes."),
    StatusLine("problem", "Failed", "The program used more memory than its tier has: 4 GiB."),
    StatusLine("neutral", "Stopped", "Stopped by scientist."),
)
