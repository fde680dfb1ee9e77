"""A diagnosis: why something waits or failed, or was refused, in the words of the person who waits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from grid.core.translation import gettext as _
from grid.core.wording import plain_text
from grid.kube.objects import Event

Severity = Literal["ok", "wait", "problem"]
Who = Literal["", "you", "admin", "operator"]
# How long a node keeps a pod off: for ever (it is too small), until something ends there, or until somebody decides otherwise.
Lasting = Literal["always", "for_now", "decision"]

SCALING = ("TriggeredScaleUp", "NotTriggerScaleUp", "FailedScaleUp")  # the autoscaler's events; the last is GKE's
ASK_ADMIN = _("Ask an admin of the cluster.")
# What the cluster repairs, or an admin of it: the controller tries again until the time of the start-up is over.
TRIED_AGAIN = _("It is tried again by itself; if that does not help, ask an admin of the cluster.")


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """Nodes that keep a pod off for the same reason: how many, the names of some, and why. `until` is when that ends, None if not known.
    `what` says how large a new node would be in the row of a node group, which counts nodes that could still be added."""

    nodes: int
    names: tuple[str, ...]
    what: str
    lasting: Lasting
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The reason why something waits or failed. `who` can repair it, `next_step` says how, and `evidence` is Kubernetes' own text. `table`
    has the reasons of all nodes. `link` names the page of the next step, for pages to make an address of: "tiers", "launch", "executions",
    "project", "infrastructure", "infrastructure:<pool>" or "node:<name>"; "" for none. `is_normal` is False when somebody should repair
    something, True when a busy cluster is like this, and None when that is not known."""

    code: str
    sentence: str
    severity: Severity
    who: Who
    next_step: str = ""
    evidence: tuple[str, ...] = ()
    table: tuple[EvidenceRow, ...] = ()
    link: str = ""
    is_normal: bool | None = None


@dataclass(frozen=True, slots=True)
class RefusalReason:
    """The reason in words and what to do; `for_good` when trying again without a change is useless."""

    code: str
    sentence: str
    next_step: str
    for_good: bool = True


def latest(events: Sequence[Event], *reasons: str) -> Event | None:
    """Return the newest event with one of the reasons; `events` are oldest first."""
    return next((event for event in reversed(events) if event.reason in reasons), None)


def quoted(*texts: str) -> tuple[str, ...]:
    """Return the texts as evidence, as a terminal would leave them, without empty ones and duplicates."""
    shown = (plain_text(text).strip() for text in texts)
    return tuple(dict.fromkeys(text for text in shown if text))


def together(first: Diagnosis, second: Diagnosis | None) -> Diagnosis:
    """Return the first diagnosis with what the second adds, of two causes of which each is enough."""
    if second is None:
        return first
    steps = " ".join(dict.fromkeys(filter(None, (first.next_step, second.next_step))))
    sentence, evidence = f"{first.sentence} {second.sentence}", quoted(*first.evidence, *second.evidence)
    return replace(first, sentence=sentence, next_step=steps, evidence=evidence)


def since(moment: datetime | None, now: datetime) -> timedelta:
    """Return the time since `moment`, never negative, because the clocks of nodes differ; zero for None."""
    return max(timedelta(0), now - moment) if moment else timedelta(0)
