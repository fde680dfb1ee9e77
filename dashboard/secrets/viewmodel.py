"""Says what deleting a stored secret does to executions and schedules that use it; pure."""

from collections.abc import Iterator, Sequence
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
    return [
        _("The value cannot be recovered: no page shows it, and no copy is kept."),
        *_uses_sentences(uses),
        _("Later launches get no secret of this name, unless another one that applies to them has it."),
    ]


def _uses_sentences(uses: SecretUses) -> Iterator[str]:
    if uses.running:
        yield ngettext(
            "{count:,} active execution has it and keeps it until it ends: {names}.",
            "{count:,} active executions have it and keep it until they end: {names}.",
            len(uses.running),
            names=listed_up_to(_NAMED, uses.running),
        )
    if uses.queued:
        yield ngettext(
            "{count:,} queued execution needs it and fails when it starts: {names}.",
            "{count:,} queued executions need it and fail when they start: {names}.",
            len(uses.queued),
            names=listed_up_to(_NAMED, uses.queued),
        )
    if uses.waiting:
        yield ngettext(
            "{count:,} waiting run of jobs starts without it.",
            "{count:,} waiting runs of jobs start without it.",
            uses.waiting,
        )
    if not (uses.running or uses.queued or uses.waiting):
        yield _("No active or queued execution uses it.")
    if uses.schedules:
        yield ngettext(
            "{count:,} active schedule starts its runs without it.",
            "{count:,} active schedules start their runs without it.",
            uses.schedules,
        )
