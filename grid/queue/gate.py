"""May this start? One decision for everybody who asks: admission, the launch form, launches, resumes, restarts, schedules, runs and sweeps;
pure. Facts go in, which `gatefacts` reads, and the first reason that closes the gate comes out, in this order:

1. its owner may not launch in its project, which `grid.projects.departures` says;
2. an operator holds it;
3. maintenance;
4. an operator has taken over the queue and has not put it in front;
5. the budget of its project is used up;
6. the queue is full, which `launches` finds out, because that takes a look at the whole queue;
7. its owner's slots or the places of its tiers are taken, which `quota` decides for the whole queue at once.

1, 3, 5 and 6 refuse a launch. What waits already stands aside for 1 to 5 and stands in line for 7.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from grid.announcements import rules as maintenance
from grid.announcements.rules import MAINTENANCE
from grid.core.errors import Problem
from grid.core.reasons import Reader, Reason, Sentence, sentence_of
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import as_sentence, moment_words
from grid.usage.budgets import rules as budget
from grid.usage.budgets.rules import CLOSED

HELD, TAKEN_OVER, QUEUE_FULL = "held", "taken_over", "queue_full"
PASSING = frozenset({QUEUE_FULL, CLOSED, MAINTENANCE})  # refusals that pass by themselves
CLOCK_STOPS = frozenset({HELD, TAKEN_OVER, MAINTENANCE})  # the time does not count towards the timeout of what waits
_ONLY_WAITS = frozenset({HELD, TAKEN_OVER})


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may start or not: `owner` is None where his right was checked before, `hold` says who holds it in the queue, and `is_in_front`
    whether an operator has put it in front there."""

    owner: int | None
    project: str
    hold: Reason | None = None
    is_in_front: bool = False


@dataclass(frozen=True, slots=True)
class GateFacts:
    """What closes the gate at a moment: for everybody, for a project, or for an owner in a project."""

    maintenance: Reason | None = None
    takeover: Reason | None = None
    budgets: Mapping[str, Reason] = field(default_factory=dict)
    departed: Mapping[tuple[int, str], Reason] = field(default_factory=dict)


def why_not_start(facts: GateFacts, candidate: Candidate) -> Reason | None:
    """Return why what waits may not start, whatever is free; None when it may. What grows is left out of the values, because they are
    stored with all that waits."""
    reason = next(_closings(facts, candidate), None)
    if reason is None or "spent" not in reason.values:
        return reason
    return replace(reason, values={name: value for name, value in reason.values.items() if name != "spent"})


def why_not_launch(facts: GateFacts, candidate: Candidate) -> Reason | None:
    """Return why a launch is refused, but for a full queue; None when it is taken, even if it has to wait."""
    return next((reason for reason in _closings(facts, candidate) if reason.code not in _ONLY_WAITS), None)


def refusal(reason: Reason) -> Problem:
    words = _REFUSED.get(reason.code)
    return Problem("", words(reason.values) if words else words_of(reason), reason.code)


def words_of(reason: Reason) -> str:
    """Return why something waits; none of these sentences depends on its reader."""
    return sentence_of(reason, Reader("", is_owner=True))


def held(by: str, why: str) -> Reason:
    return Reason(HELD, {"by": by, "why": why})


def held_words(values: Mapping[str, Any]) -> str:
    why = values["why"].strip().rstrip(".")
    sentence = _("Held by {by}: {reason}.") if why else _("Held by {by}.")
    return sentence.format(by=values["by"], reason=why)


def taken_over(by: str, until: datetime, why: str) -> Reason:
    return Reason(TAKEN_OVER, {"by": by, "until": until.isoformat(), "why": why}, until)


def takeover_words(values: Mapping[str, Any]) -> str:
    until = moment_words(datetime.fromisoformat(values["until"]))
    return _(
        "{actor} decides by hand what starts, until {until}: {reason}",
        actor=values["by"],
        until=until,
        reason=as_sentence(values["why"]),
    )


def _closings(facts: GateFacts, candidate: Candidate) -> Iterator[Reason]:
    """Yield all that closes the gate to the candidate, in the stated order."""
    in_order = (
        facts.departed.get((candidate.owner, candidate.project)) if candidate.owner is not None else None,
        candidate.hold,
        facts.maintenance,
        None if candidate.is_in_front else facts.takeover,
        facts.budgets.get(candidate.project),
    )
    return (reason for reason in in_order if reason is not None)


def _full_sentence(values: Mapping[str, Any], reader: Reader) -> str:
    """Return why no more may wait: of one person, of one project or of all people."""
    if values["of"] == "person":
        return _(
            "{most:,} executions of yours wait for a free slot already, and no more of one person may. "
            "Stop something that you no longer need, try again later, or ask an admin for more.",
            most=values["limit"],
        )
    if values["of"] == "project":
        return _(
            "{most:,} executions of this project wait for a free slot already, and no more of one project may. "
            "Stop something that is no longer needed, try again later, or ask an admin for more.",
            most=values["limit"],
        )
    count = values["held"]
    of_them = ngettext(" ({count} is held by an operator)", " ({count} are held by an operator)", count)
    return _(
        "{waiting} executions wait for a free slot already{held}, and the queue holds {limit}. "
        "Stop something that you no longer need, or try again later.",
        waiting=values["waiting"],
        held=of_them if count else "",
        limit=values["limit"],
    )


SENTENCES: dict[str, Sentence] = {
    HELD: lambda values, reader: _(
        "{hold} This starts when an operator releases it, and does not time out before.", hold=held_words(values)
    ),
    TAKEN_OVER: lambda values, reader: _(
        "{takeover} Afterwards this starts by itself in its turn.", takeover=takeover_words(values)
    ),
    QUEUE_FULL: _full_sentence,
}
# Of what refuses a launch in other words than those that it keeps something waiting in.
_REFUSED = {MAINTENANCE: maintenance.refused_sentence, CLOSED: budget.refused_sentence}
