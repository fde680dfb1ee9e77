"""A status as all pages show it: a colour, a short word, and the cause."""

from typing import Literal

from dashboard.shell.viewmodels.live import ViewModel

Severity = Literal["ok", "wait", "problem", "neutral"]


class StatusLine(ViewModel, frozen=True, gc=False):
    """A status in a short `word`; `note` adds the cause or is ""."""

    severity: Severity
    word: str
    note: str = ""
