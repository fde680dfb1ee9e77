"""What tells whether an execution is in use, and the words for it; pure. What is not known is never idle."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from grid.launch.shutdown.rules import Look, LookOutcome
from grid.wording import plural


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
        return f"{plural(jupyter.busy, 'kernel is', 'kernels are')} busy"
    if evidence.busy_workers:
        return f"{plural(evidence.busy_workers, 'worker')} of its cluster {'has' if evidence.busy_workers == 1 else 'have'} tasks"
    if cpu is not None and cpu >= 10 * cpu_limit:
        return f"average CPU at {cpu / 10:.0f} % of one core"
    return ""


def _unknown(evidence: Evidence) -> str:
    """Return why it is not known whether it is idle; "" when it is known."""
    reasons: Collection[str] = [
        *(["its program does not answer"] if evidence.is_silent else ()),
        *(["its CPU is not measured"] if evidence.cpu_millicores is None else ()),
        *(["its cluster does not report"] if evidence.busy_workers is None else ()),
        *([evidence.unseen] if evidence.unseen and evidence.jupyter is None else ()),
    ]
    # Jupyter's own word is enough where nothing runs outside of its kernels: a terminal's program shows as CPU only.
    is_enough = evidence.jupyter is not None and not evidence.jupyter.terminals and evidence.busy_workers is not None
    return "" if is_enough or not reasons else f"not known, because {' and '.join(reasons)}"


def _idle(evidence: Evidence, cpu_limit: int) -> str:
    jupyter = evidence.jupyter
    words = ["no kernel busy", "no terminal activity"] if jupyter is not None else ["nobody used its page"]
    if evidence.has_cluster:
        words.append("no task on its cluster")
    words.append(f"CPU under {cpu_limit} %" if evidence.cpu_millicores is not None else "CPU not measured")
    return ", ".join(words)
