"""What tells whether an execution is in use, and the words for it; pure. What is not known is never idle."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.workspaces.shutdown.rules import Look, LookOutcome


@dataclass(frozen=True, slots=True)
class JupyterState:
    """What a Jupyter server says of its kernels and terminals; `active_at` is the latest activity of any of them."""

    kernels: int = 0
    busy: int = 0
    terminals: int = 0
    active_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One look. `cpu_millicores` is the average of the last minutes, None when it was not measured. `jupyter` is None for another program,
    and when it `is_silent`: it was asked and gave no answer. `busy_workers` are those of an attached cluster that have tasks, None while
    their framework does not report. `used_at` is when a person last did something in the browser, as the proxy has noted, and
    `front_used_at` as the nginx in front of the program has; None where there is none, or it gave no answer. `unseen` says why a person's
    use may not have been seen, where requests do not come through our proxy."""

    cpu_millicores: float | None
    jupyter: JupyterState | None = None
    is_silent: bool = False
    busy_workers: int | None = 0
    has_cluster: bool = False
    used_at: datetime | None = None
    front_used_at: datetime | None = None
    unseen: str = ""


def judge(evidence: Evidence, *, cpu_limit: int, now: datetime) -> LookOutcome:
    """Return what the evidence says, with words; `cpu_limit` is in percent of one core."""
    busy = _busy(evidence, cpu_limit)
    if busy:
        return LookOutcome(Look(is_known=True, is_active=True), busy)
    unknown = _unknown(evidence)
    if unknown:
        return LookOutcome(Look(is_known=False), unknown)
    times = (evidence.used_at, evidence.front_used_at, evidence.jupyter.active_at if evidence.jupyter else None)
    active_at = max((min(at, now) for at in times if at is not None), default=None)
    return LookOutcome(Look(is_known=True, active_at=active_at), _idle(evidence, cpu_limit))


def _busy(evidence: Evidence, cpu_limit: int) -> str:
    """Return what shows that it is in use; "" when nothing does."""
    jupyter, cpu = evidence.jupyter, evidence.cpu_millicores
    if jupyter is not None and jupyter.busy:
        return ngettext("{count:,} kernel is busy", "{count:,} kernels are busy", jupyter.busy)
    if evidence.busy_workers:
        return ngettext(
            "{count:,} worker of its cluster has tasks",
            "{count:,} workers of its cluster have tasks",
            evidence.busy_workers,
        )
    if cpu is not None and cpu >= 10 * cpu_limit:
        return _("average CPU at {cpu:.0f} % of one core", cpu=cpu / 10)
    return ""


def _unknown(evidence: Evidence) -> str:
    """Return why it is not known whether it is idle; "" when it is known."""
    reasons: Collection[str] = [
        *([_("its program does not answer")] if evidence.is_silent else ()),
        *([_("its CPU is not measured")] if evidence.cpu_millicores is None else ()),
        *([_("its cluster does not report")] if evidence.busy_workers is None else ()),
        *([evidence.unseen] if evidence.unseen and evidence.jupyter is None else ()),
    ]
    # Jupyter's own word is enough where nothing runs outside of its kernels: a terminal's program shows as CPU only.
    is_enough = evidence.jupyter is not None and not evidence.jupyter.terminals and evidence.busy_workers is not None
    return "" if is_enough or not reasons else _("not known, because {reasons}", reasons=_(" and ").join(reasons))


def _idle(evidence: Evidence, cpu_limit: int) -> str:
    jupyter = evidence.jupyter
    words = [_("no kernel busy"), _("no terminal activity")] if jupyter is not None else [_("nobody used its page")]
    if evidence.has_cluster:
        words.append(_("no task on its cluster"))
    is_measured = evidence.cpu_millicores is not None
    words.append(_("CPU under {limit} %", limit=cpu_limit) if is_measured else _("CPU not measured"))
    return ", ".join(words)
