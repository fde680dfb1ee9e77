"""Says what deleting a stored secret does to executions and schedules that use it; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import listed_up_to

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
    sentences = [_("The value cannot be recovered: no page shows it, and no copy is kept.")]
    if uses.running:
        sentences.append(
            ngettext(
                "{count:,} active execution has it and keeps it until it ends: {names}.",
                "{count:,} active executions have it and keep it until they end: {names}.",
                len(uses.running),
                names=listed_up_to(_NAMED, uses.running),
            )
        )
    if uses.queued:
        sentences.append(
            ngettext(
                "{count:,} queued execution needs it and fails when it starts: {names}.",
                "{count:,} queued executions need it and fail when they start: {names}.",
                len(uses.queued),
                names=listed_up_to(_NAMED, uses.queued),
            )
        )
    if uses.waiting:
        sentences.append(
            ngettext(
                "{count:,} waiting run of jobs starts without it.",
                "{count:,} waiting runs of jobs start without it.",
                uses.waiting,
            )
        )
    if not uses.running and not uses.queued and not uses.waiting:
        sentences.append(_("No active or queued execution uses it."))
    if uses.schedules:
        sentences.append(
            ngettext(
                "{count:,} active schedule starts its runs without it.",
                "{count:,} active schedules start their runs without it.",
                uses.schedules,
            )
        )
    sentences.append(_("Later launches get no secret of this name, unless another one that applies to them has it."))
    return sentences
