"""The page of the checks of the cluster's API: how the last run stands, and what each check found; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import msgspec

from dashboard.shell.viewmodels.states import StatusLine
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.platformhealth.apicheckresults import ApiCheckResult, summary

_WORDS = {"passed": ("ok", _("Passed")), "failed": ("problem", _("Failed")), "no right": ("neutral", _("Not run"))}
_MADE = _(
    "one or two of each kind of object that Compute Grid uses: pods, ConfigMaps, Secrets, a Service, a NetworkPolicy, a Deployment, "
    "an autoscaler, a disruption budget, a Lease and a Job."
)
_OWN_NAMESPACE = _("The controller creates a namespace with a name of its own, and in it {made}", made=_MADE)
_COMMON = (
    _("No program starts: the pods fit no node. What limits the namespace, such as a quota, may refuse some of them."),
    _(
        "It takes about half a minute, in the background. Afterwards all of it is removed, also if the controller stops before the end."
    ),
    _("A check for which the controller has no right is not run; the result names the right."),
    _("The audit log records it."),
)


class StoredRun(Protocol):
    """The part of `grid.models.ApiCheckRun` that is used here."""

    asked_by_name: Any
    asked_at: Any
    started_at: Any
    ended_at: Any
    namespace: Any
    is_clean: Any
    results: Any
    trouble: Any
    needs_shared: Any


@dataclass(frozen=True, slots=True)
class ResultLine:
    name: str
    status: StatusLine
    words: str
    seconds: str


@dataclass(frozen=True, slots=True)
class ApiCheckPage:
    """`is_open` says that more is to come."""

    status: StatusLine
    by: str
    asked_at: datetime
    namespace: str
    trouble: str
    needs_shared: bool
    is_open: bool
    is_left: bool
    lines: Sequence[ResultLine]


def api_check_page(run: StoredRun) -> ApiCheckPage:
    results = msgspec.convert(run.results, tuple[ApiCheckResult, ...])
    return ApiCheckPage(
        status=_status(run, results),
        by=run.asked_by_name,
        asked_at=run.asked_at,
        namespace=run.namespace,
        trouble=run.trouble,
        needs_shared=run.needs_shared,
        is_open=run.ended_at is None,
        is_left=run.ended_at is not None and not run.is_clean,
        lines=[_line(one) for one in sorted(results, key=lambda one: one.outcome != "failed")],
    )


def creation_sentences(namespace: str, *, is_shared: bool) -> tuple[str, ...]:
    """Return what the confirmation says; `namespace` is the executions'."""
    shared = _(
        "The controller creates in {namespace}, the namespace of executions, with a label of the checks, {made}",
        namespace=namespace,
        made=_MADE,
    )
    return (shared if is_shared else _OWN_NAMESPACE, *_COMMON)


def _status(run: StoredRun, results: Sequence[ApiCheckResult]) -> StatusLine:
    if run.ended_at is None:
        if run.started_at is None:
            return StatusLine("wait", _("Waits for the controller"))
        return StatusLine("wait", _("Running: {checks} so far", checks=plural(len(results), "check", "checks")))
    if run.trouble and not results:
        return StatusLine("problem", _("Not run"))
    has_failed = bool(run.trouble) or any(one.outcome == "failed" for one in results)
    return StatusLine("problem" if has_failed else "ok", summary(results))


def _line(result: ApiCheckResult) -> ResultLine:
    severity, word = _WORDS[result.outcome]
    seconds = "" if result.outcome == "no right" else f"{result.seconds:.2f} s"
    return ResultLine(result.name, StatusLine(severity, word), result.words, seconds)  # type: ignore[arg-type]
