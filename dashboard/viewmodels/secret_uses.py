"""Says what deleting a stored secret does to executions and schedules that use it; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from grid.wording import listed_up_to, plural

_NAMED = 3


@dataclass(frozen=True, slots=True)
class SecretUses:
    """The names of the executions that were launched with a secret and have yet to get it, and of those that have it; how many active
    schedules and waiting runs would get it."""

    queued: Sequence[str] = ()
    running: Sequence[str] = ()
    schedules: int = 0
    waiting: int = 0


def deletion_sentences(uses: SecretUses) -> list[str]:
    """Return what is lost with the secret, and what continues."""
    sentences = ["The value cannot be recovered: no page shows it, and no copy is kept."]
    if uses.running:
        has = "has it and keeps it until it ends" if len(uses.running) == 1 else "have it and keep it until they end"
        sentences.append(
            f"{plural(len(uses.running), 'active execution')} {has}: {listed_up_to(_NAMED, uses.running)}."
        )
    if uses.queued:
        fail = "needs it and fails when it starts" if len(uses.queued) == 1 else "need it and fail when they start"
        sentences.append(f"{plural(len(uses.queued), 'queued execution')} {fail}: {listed_up_to(_NAMED, uses.queued)}.")
    if uses.waiting:
        start = "starts" if uses.waiting == 1 else "start"
        sentences.append(f"{plural(uses.waiting, 'waiting run')} of jobs {start} without it.")
    if not uses.running and not uses.queued and not uses.waiting:
        sentences.append("No active or queued execution uses it.")
    if uses.schedules:
        run = "starts its runs" if uses.schedules == 1 else "start their runs"
        sentences.append(f"{plural(uses.schedules, 'active schedule')} {run} without it.")
    sentences.append("Later launches get no secret of this name, unless another one that applies to them has it.")
    return sentences
