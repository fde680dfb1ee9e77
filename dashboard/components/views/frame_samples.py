"""What the component page shows of the parts of the frame, of tables and of logs: a sample of each state, by the code that makes the real
ones."""

from dataclasses import dataclass
from typing import Any

from dashboard.logs.viewmodels.log import LogQuery, LogSource, LogView
from dashboard.logs.viewmodels.log_lines import RawLine, rows_of
from dashboard.notifications.viewmodels.notifications import BellView
from dashboard.palette.viewmodel import PaletteGroup, PaletteItem, PaletteResults, hint
from dashboard.shell.viewmodels.listing import Paging, Progress, unfinished
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.saved_views import ViewLink, ViewMenu
from dashboard.shell.viewmodels.tables import COMPACT, DENSITY_COOKIE, hidden_columns, hidden_cookie, table_view
from grid.core.translation import gettext as _

_LONG_NAME = _("A view with a name that is longer than what its menu has room for in one line")
_DAY = "2026-11-23T"


@dataclass(frozen=True, slots=True)
class ToastSample:
    id: str
    severity: str
    word: str
    title: str
    path: str = "#toasts"


def frame_samples() -> dict[str, Any]:
    """Return the context of `components/fragments/component_frame.html`."""
    return {
        "bells": _bells(),
        "toasts": (
            ToastSample("sample-1", "problem", _("Failed"), _("Train the churn model")),
            ToastSample("sample-2", "wait", _("Stops soon"), _LONG_NAME),
            ToastSample("sample-3", "ok", _("Running"), _("Churn notebook")),
        ),
        "palettes": _palettes(),
        "table_views": _table_views(),
        "saved_menu": _saved_menu(),
        "pagings": _pagings(),
        "log": _log(),
        "more_logs": _more_logs(),
    }


def _bells() -> list[Fragment]:
    kinds = [(unread, is_small) for is_small in (False, True) for unread in (0, 3, 120)]
    return [
        Fragment(f"bell-sample-{number}", "notifications/fragments/bell.html", BellView(unread, is_small=is_small))
        for number, (unread, is_small) in enumerate(kinds)
    ]


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


def _table_views() -> list[tuple[Any, bool]]:
    """Return the menu of a table closed and open, the second with a hidden column and compact rows."""
    few = {hidden_cookie("nodes"): hidden_columns("nodes", ["2", "4", "5"]), DENSITY_COOKIE: COMPACT}
    return [(table_view("nodes", {}), False), (table_view("nodes", few), True)]


def _saved_menu() -> ViewMenu:
    links = (ViewLink(1, _("Failed jobs"), True, True), ViewLink(2, _LONG_NAME, False, False))
    return ViewMenu("executions", _("Executions"), "?kind=job&status=failed", links)


def _pagings() -> list[Fragment]:
    lines = (
        Paging("All 12 executions."),
        Paging("Executions 1 to 200 of 1,204.", next="#pagings"),
        Paging("Executions 201 to 400 of 1,204.", "#pagings", "#pagings"),
        Paging("Executions 1,201 to 1,204 of 1,204.", "#pagings"),
    )
    shown = [
        Fragment(f"paging-sample-{number}", "shell/fragments/paging.html", line) for number, line in enumerate(lines)
    ]
    return [
        *shown,
        unfinished("paging-unfinished", "execution", Progress(12_000, 44_441), matches=345, reload="#pagings"),
    ]


def _lines() -> list[RawLine]:
    return [
        (f"{_DAY}23:59:58.120000000", "head", b"INFO epoch 3 of 10, loss 0.213"),
        (f"{_DAY}23:59:59.340000000", "7f4k2", b"WARNING 2 of 64 files are empty"),
        ("2026-11-24T00:00:00.100000000", "7f4k2", b"\x1b[32mready\x1b[0m \x1b[1;34mhttp://localhost:8888\x1b[0m"),
        ("2026-11-24T00:00:01.900000000", "head", b"DEBUG " + b"tensor " * 12),
        ("2026-11-24T00:00:02.500000000", "head", b"ERROR ModuleNotFoundError: No module named 'torch'"),
    ]


def _log() -> LogView:
    """Return a log with all that its head can have."""
    source = LogSource(
        "grid", "all", "run", True, ("all", "head-pod"), ("run", "setup"), has_previous=True, is_live=True
    )
    asked = LogQuery(q="o", level="debug")
    return LogView("#logs", "#logs", asked, source, rows_of(_lines()), is_live=True, scope="Of 2 pods.")


def _more_logs() -> list[tuple[str, LogView]]:
    """Return the parts without a head: lines after a gap, and a log that is hidden from who asks."""
    hidden = LogView(is_hidden=True, problem=_("Only members of the project can read this log."))
    gap = LogView(rows=rows_of(_lines()[:2]), has_gap=True)
    return [("gap", gap), ("hidden", hidden)]
