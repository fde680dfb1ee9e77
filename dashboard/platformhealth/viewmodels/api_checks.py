"""The page of the checks of the cluster's API: how the last run stands, and what each check found; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from dashboard.shell.viewmodels.states import StatusLine
from grid.core.decoding import prepared
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.models import ApiCheckRun
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


@dataclass(frozen=True, slots=True)
class ResultLine:
    name: str
    status: StatusLine
    words: str
    seconds: str


@dataclass(frozen=True, slots=True)
class ApiCheckPage:
    stored: ApiCheckRun
    status: StatusLine
    lines: Sequence[ResultLine]

    @property
    def is_open(self) -> bool:
        """Whether more is to come."""
        return self.stored.ended_at is None

    @property
    def is_left(self) -> bool:
        return not self.is_open and not self.stored.is_clean


def api_check_page(run: ApiCheckRun) -> ApiCheckPage:
    results = msgspec.convert(run.results, prepared(tuple[ApiCheckResult, ...]))
    lines = [_line(result) for result in sorted(results, key=lambda result: result.outcome != "failed")]
    return ApiCheckPage(run, _status(run, results), lines)


def creation_sentences(namespace: str, *, is_shared: bool) -> tuple[str, ...]:
    """Return what the confirmation says; `namespace` is the executions'."""
    shared = _("The controller creates in {namespace}, the namespace of executions, with a label of the checks, {made}")
    return (shared.format(namespace=namespace, made=_MADE) if is_shared else _OWN_NAMESPACE, *_COMMON)


def _status(run: ApiCheckRun, results: Sequence[ApiCheckResult]) -> StatusLine:
    if run.ended_at is None:
        if run.started_at is None:
            return StatusLine("wait", _("Waits for the controller"))
        return StatusLine("wait", _("Running: {checks} so far", checks=plural(len(results), "check", "checks")))
    if run.trouble and not results:
        return StatusLine("problem", _("Not run"))
    has_failed = bool(run.trouble) or any(result.outcome == "failed" for result in results)
    return StatusLine("problem" if has_failed else "ok", summary(results))


def _line(result: ApiCheckResult) -> ResultLine:
    severity, word = _WORDS[result.outcome]
    seconds = "" if result.outcome == "no right" else f"{result.seconds:.2f} s"
    return ResultLine(result.name, StatusLine(severity, word), result.words, seconds)  # type: ignore[arg-type]
