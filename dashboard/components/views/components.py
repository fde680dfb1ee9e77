"""The component page: each part of the visual language in each state. It exists with GRID_DEMO only. The tests look at it in light and
dark, narrow and wide; whoever changes the stylesheet does too."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from django import forms
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard.components.views.component_samples import LONG_NAME, component_samples
from dashboard.executions.viewmodels.node_reasons import node_reasons
from dashboard.executions.viewmodels.timeline import TimelineItem
from dashboard.home.viewmodels.first_steps import WorkFacts, work_steps
from dashboard.logs.viewmodels.log import LogQuery, LogSource, LogView
from dashboard.logs.viewmodels.log_lines import RawLine, rows_of
from dashboard.nodes.viewmodels.nodes import Share
from dashboard.notifications.viewmodel import BellView
from dashboard.palette.viewmodel import PaletteGroup, PaletteItem, PaletteResults, hint
from dashboard.shell.access import admin_required, viewer_of
from dashboard.shell.viewmodels.charts import sparkline
from dashboard.shell.viewmodels.freshness import FreshnessView, broken_view
from dashboard.shell.viewmodels.listing import Paging, Progress, unfinished
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.saved_views import (
    COMPACT,
    DENSITY_COOKIE,
    ViewLink,
    ViewMenu,
    hidden_columns,
    hidden_cookie,
    table_view,
)
from dashboard.shell.viewmodels.states import StatusLine
from dashboard.starts.viewmodels.startup import StartMeasures, UsualStart, waterfall
from grid.core.translation import gettext as _
from grid.diagnosis.diagnosis import Diagnosis, EvidenceRow
from grid.diagnosis.startup import Phase

_LONG_NAME = _("A view with a name that is longer than what its menu has room for in one line")
_LINES: list[RawLine] = [
    ("2026-11-23T23:59:58.120000000", "head", b"INFO epoch 3 of 10, loss 0.213"),
    ("2026-11-23T23:59:59.340000000", "7f4k2", b"WARNING 2 of 64 files are empty"),
    ("2026-11-24T00:00:00.100000000", "7f4k2", b"\x1b[32mready\x1b[0m \x1b[1;34mhttp://localhost:8888\x1b[0m"),
    ("2026-11-24T00:00:01.900000000", "head", b"DEBUG " + b"tensor " * 12),
    ("2026-11-24T00:00:02.500000000", "head", b"ERROR ModuleNotFoundError: No module named 'torch'"),
]


def frame_samples() -> dict[str, Any]:
    """Return the context of `components/fragments/component_frame.html`."""
    few = {hidden_cookie("nodes"): hidden_columns("nodes", ["2", "4", "5"]), DENSITY_COOKIE: COMPACT}
    links = (ViewLink(1, _("Failed jobs"), True, True), ViewLink(2, _LONG_NAME, False, False))
    pagings = (
        Paging("All 12 executions."),
        Paging("Executions 1 to 200 of 1,204.", next="#pagings"),
        Paging("Executions 201 to 400 of 1,204.", "#pagings", "#pagings"),
        Paging("Executions 1,201 to 1,204 of 1,204.", "#pagings"),
    )
    pods, containers, asked = ("all", "head-pod"), ("run", "setup"), LogQuery(q="o", level="debug")
    source = LogSource("grid", "all", "run", True, pods, containers, has_previous=True, is_live=True)
    return {
        "bells": [
            Fragment(f"bell-sample-{number}", "notifications/fragments/bell.html", BellView(unread, is_small=is_small))
            for number, (is_small, unread) in enumerate(product((False, True), (0, 3, 120)))
        ],
        "toasts": [
            {"id": f"sample-{severity}", "severity": severity, "word": word, "title": title, "path": "#toasts"}
            for severity, word, title in (
                ("problem", _("Failed"), _("Train the churn model")),
                ("wait", _("Stops soon"), _LONG_NAME),
                ("ok", _("Running"), _("Churn notebook")),
            )
        ],
        "palettes": _palettes(),
        "table_views": [(table_view("nodes", {}), False), (table_view("nodes", few), True)],  # closed and open
        "saved_menu": ViewMenu("executions", _("Executions"), "?kind=job&status=failed", links),
        "pagings": [
            *(
                Fragment(f"paging-sample-{number}", "shell/fragments/paging.html", line)
                for number, line in enumerate(pagings)
            ),
            unfinished("paging-unfinished", "execution", Progress(12_000, 44_441), matches=345, reload="#pagings"),
        ],
        "log": LogView("#logs", "#logs", asked, source, rows_of(_LINES), is_live=True, scope="Of 2 pods."),
        # Without a head: lines after a gap, and a log that is hidden from who asks.
        "more_logs": [
            ("gap", LogView(rows=rows_of(_LINES[:2]), has_gap=True)),
            ("hidden", LogView(is_hidden=True, problem=_("Only members of the project can read this log."))),
        ],
    }


def _palettes() -> list[tuple[str, PaletteResults]]:
    """Return what is shown for no text, with results of each kind of item, and when nothing is found."""
    groups = (
        PaletteGroup(
            _("Executions"),
            (
                PaletteItem(_("Churn notebook"), _("Running, Customer churn"), "#palettes"),
                PaletteItem(_LONG_NAME, _("Failed 3 h ago, a project whose name is not short either"), "#palettes"),
            ),
        ),
        PaletteGroup(
            _("Actions"), (PaletteItem(_("Dark theme"), theme="dark"), PaletteItem(_("Log out"), url="#palettes"))
        ),
    )
    return [
        ("empty-", PaletteResults("", hint(("workspace", "project", "page")), ())),
        ("found-", PaletteResults("churn", "4 results", groups)),
        ("none-", PaletteResults("xyz", _("Nothing found for “xyz”."), ())),
    ]


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
        **component_samples(now),
        **frame_samples(),
        "viewer": viewer_of(request.user),
        "now": now,
        "form": SampleForm({"title": "Churn notebook", "tier": "large", "autoscale": "on", "notes": "too long"}),
        "statuses": STATUSES,
        "shares": (
            Share("CPU", "6", "8", 75, "4.1", 51, key="cpu"),
            Share("Memory", "30 GiB", "32 GiB", 94, "31 GiB", 97),
            Share("GPUs", "0", "4", 0, key="gpus"),
        ),
        "freshness": (
            FreshnessView("live", "Live"),
            FreshnessView("starting", "Reading the cluster", "This page fills as the answer comes."),
            FreshnessView("behind", "The cluster does not answer", "What you see is from 12:00:00 UTC."),
            broken_view(),
        ),
        "first_steps": work_steps(WorkFacts("Customer churn", has_launched=False, has_opened=False, has_ended=False)),
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
        "rows": (
            ("Churn notebook", STATUSES[0], 40),
            ("Nightly features", STATUSES[2], 96),
            (LONG_NAME, STATUSES[1], 0),
        ),
        "tabs": {"": "What happened", "log": "Log", "events": "Kubernetes events"},
        "tab": "",
        "sparklines": SPARKLINES,
        "starts": STARTS,
        "reasons": node_reasons(_waiting(now + timedelta(hours=2)), sees_all=True),
    }
    return render(request, "components/components.html", context)


def _waiting(until: datetime) -> Diagnosis:
    """Return a diagnosis whose table has a row of each kind."""
    full = "full: at most 1 core free, but 2 cores needed; taken by a workspace of scientist and 4 more"
    table = (
        EvidenceRow(1_204, ("gpu-1", "gpu-10", "gpu-1000"), full, "for_now", until),
        EvidenceRow(2, ("gpu-2", "gpu-3"), "cordoned; too small: has 1 core, but 2 cores needed", "decision"),
        EvidenceRow(1, (LONG_NAME,), "too small: has 1 core, but 2 cores needed", "always"),
    )
    return Diagnosis("busy", "", "wait", "you", table=table, link="executions", is_normal=True)


_HOURS = tuple(enumerate((2, 3, 3, 5, 8, 7, 9, 6, 4, 4, 2, 3)))
SPARKLINES = (
    sparkline(_HOURS, span=(0, 11), top=10, words="2 to 9 of 10 cores", gap=3),
    sparkline([*_HOURS[:4], *_HOURS[8:]], span=(0, 11), top=10, words="2 to 5 cores, with a gap", gap=3),
    sparkline([(hour, 0) for hour, _ in _HOURS], span=(0, 11), top=0, words="0 waiting", gap=3),
    sparkline(_HOURS[-1:], span=(0, 11), top=10, words="3 cores, the first value", gap=3),
)
STATUSES = (
    StatusLine("ok", "Running"),
    StatusLine("wait", "Deploying", "No node has room yet; a new one is on its way, which takes a few minutes."),
    StatusLine("problem", "Failed", "The program used more memory than its tier has: 4 GiB."),
    StatusLine("neutral", "Stopped", "Stopped by scientist."),
)
_COLD = StartMeasures(
    total=188,
    seconds={Phase.QUEUED: 2, Phase.NODE_WAIT: 130, Phase.PULLING: 48, Phase.ANSWERING: 8},
    node_started=True,
    node_decision=8,
    node_creation=104,
    node_joining=18,
    image_cached=False,
    image_bytes=1_800_000_000,
)
_USUAL = UsualStart(
    count=12, total=11, seconds={Phase.QUEUED: 2, Phase.NODE_WAIT: 0, Phase.PULLING: 0, Phase.ANSWERING: 9}
)
STARTS = (
    ("started", waterfall(_COLD, _USUAL, is_final=False).context),
    (
        "starting",
        waterfall(replace(_COLD, ran=False, open_phase=Phase.ANSWERING), UsualStart(), is_final=False).context,
    ),
)
