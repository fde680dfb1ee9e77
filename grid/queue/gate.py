"""May this start? One decision for everybody who asks: admission, the launch form, launches, resumes, restarts, schedules, runs and sweeps;
pure. Facts go in, which `snapshot` reads, and the first reason that closes the gate comes out, in this order:

1. its owner may not launch in its project, which `grid.projects.departures` says;
2. an operator holds it;
3. maintenance;
4. an operator has taken over the queue and has not put it in front;
5. the budget of its project is used up;
6. the queue is full, which `launches` finds out, because that takes a look at the whole queue;
7. its owner's slots or the places of its tiers are taken, which `quota` decides for the whole queue at once.

1, 3, 5 and 6 refuse a launch. What waits already stands aside for 1 to 5 and stands in line for 7.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from grid.announcements import maintenance
from grid.announcements.maintenance import MAINTENANCE
from grid.core.errors import Problem
from grid.core.reasons import Reader, Reason, Sentence, Values, cause_words, filled, sentence_of
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import as_sentence, duration, moment_words
from grid.models.environment import kind_words
from grid.usage.budgets import rules as budget
from grid.usage.budgets.rules import CLOSED

HELD, TAKEN_OVER, QUEUE_FULL = "held", "taken_over", "queue_full"
PASSING = frozenset({QUEUE_FULL, CLOSED, MAINTENANCE})  # refusals that pass by themselves
CLOCK_STOPS = frozenset({HELD, TAKEN_OVER, MAINTENANCE})  # the time does not count towards the timeout of what waits
_FULL_SHARES = {
    "person": _(
        "{most:,} executions of yours wait for a free slot already, and no more of one person may. "
        "Stop something that you no longer need, try again later, or ask an admin for more."
    ),
    "project": _(
        "{most:,} executions of this project wait for a free slot already, and no more of one project may. "
        "Stop something that is no longer needed, try again later, or ask an admin for more."
    ),
}
# Of what refuses a launch in other words than those that it keeps something waiting in.
_REFUSED = {MAINTENANCE: maintenance.refused_sentence, CLOSED: budget.refused_sentence}
# For the owner, who may not know the other executions.
_MOVED = {
    "front": _("{by} moved it to the front of the queue."),
    "before": _("{by} moved it forward in the queue."),
    "back": _("{by} moved it to the back of the queue."),
    "turn": _("{by} let it wait for its turn again."),
}


@dataclass(frozen=True, slots=True)
class GateFacts:
    """What closes the gate at a moment: for everybody, for a project, or for an owner in a project."""

    maintenance: Reason | None = None
    takeover: Reason | None = None
    budgets: Mapping[str, Reason] = field(default_factory=dict)
    departed: Mapping[tuple[int, str], Reason] = field(default_factory=dict)


def why_not_start(
    facts: GateFacts, owner: int, project: str, hold: Reason | None = None, *, is_in_front: bool = False
) -> Reason | None:
    """Return why what waits may not start, whatever is free; None when it may. `hold` says who holds it in the queue, and `is_in_front`
    whether an operator has put it in front there. What grows is left out of the values, because they are stored with all that waits."""
    departed, takeover = facts.departed.get((owner, project)), None if is_in_front else facts.takeover
    closings = (departed, hold, facts.maintenance, takeover, facts.budgets.get(project))
    reason = next(filter(None, closings), None)
    if reason is None or "spent" not in reason.values:
        return reason
    return replace(reason, values={name: value for name, value in reason.values.items() if name != "spent"})


def why_not_launch(facts: GateFacts, owner: int | None, project: str) -> Reason | None:
    """Return why a launch is refused, but for a full queue; None when it is taken. `owner` is None where his right was checked before."""
    departed = facts.departed.get((owner, project)) if owner is not None else None
    return departed or facts.maintenance or facts.budgets.get(project)


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
    until, why = moment_words(datetime.fromisoformat(values["until"])), as_sentence(values["why"])
    sentence = _("{actor} decides by hand what starts, until {until}: {reason}")
    return sentence.format(actor=values["by"], until=until, reason=why)


def _full_sentence(values: Mapping[str, Any], reader: Reader) -> str:
    if values["of"] in _FULL_SHARES:
        return _FULL_SHARES[values["of"]].format(most=values["limit"])
    count = values["held"]
    of_them = ngettext(" ({count} is held by an operator)", " ({count} are held by an operator)", count)
    sentence = _(
        "{waiting} executions wait for a free slot already{held}, and the queue holds {limit}. "
        "Stop something that you no longer need, or try again later."
    )
    return sentence.format(waiting=values["waiting"], held=of_them if count else "", limit=values["limit"])


def _over_user_slots(values: Values, reader: Reader) -> str:
    if values["most"] == 0:
        return _(
            "Launching is switched off: your admin has set the slots per user to 0. This waits until that changes."
        )
    sentence = _(
        "{owner} uses {held} of {most} slots; this starts by itself when {wanted}. It is number {position} of theirs."
    )
    if reader.is_owner:
        sentence = _(
            "You use {held} of {most} slots; this starts by itself when {wanted}. It is number {position} of yours."
        )
    wanted = ngettext("one is free", "{count} are free", values["slots"]) + _slots_of(values["parts"])
    return sentence.format_map({**values, "owner": reader.owner or _("Its owner"), "wanted": wanted})


def _larger_than_limit(values: Values, reader: Reader) -> str:
    sentence = _("This takes {slots} slots{parts}, and one user may hold {most}.")
    sentence = sentence.format(slots=values["slots"], parts=_slots_of(values["parts"]), most=values["most"])
    if not reader.is_owner:  # what can be done is its owner's to do
        return sentence
    if any(kind == "cluster" for kind, _slots in values["parts"]):
        return f"{sentence} {_('Give the cluster fewer workers, or ask your admin for more slots.')}"
    return f"{sentence} {_('Stop it and launch a smaller one, or ask your admin for more slots.')}"


def _over_tier_maximum(values: Values, reader: Reader) -> str:
    wanted = len(values["parts"])
    if wanted > values["maximum"]:
        sentence = _(
            "This takes {wanted} places on the tier {name}{parts}, which runs at most {maximum} executions at once. "
            "Stop it and launch it with other tiers."
        )
    elif wanted == 1:
        sentence = _(
            "The tier {name} runs {held} of at most {maximum} executions at once; "
            "this starts by itself when one of them ends."
        )
    else:
        sentence = _(
            "The tier {name} runs {held} of at most {maximum} executions at once, and this takes {wanted} places"
            "{parts}; it starts by itself when enough of them end."
        )
    each = _(" and ").join(_("one for {part}", part=kind_words(kind).definite) for kind in values["parts"])
    sentence = sentence.format_map({**values, "name": values["tier"], "wanted": wanted, "parts": f" ({each})"})
    if wanted > values["maximum"]:
        return sentence
    return _("{sentence} It is number {position} for this tier.", sentence=sentence, position=values["position"])


def _over_quota_timeout(values: Values, reader: Reader) -> str:
    timeout = duration(timedelta(seconds=values["seconds"]))
    if values["for"][0] == "over_budget":
        why = cause_words({"cause": values["for"]}, reader)
        return _("It has waited {timeout} and could not start. {why}", timeout=timeout, why=why)
    if values["kind"] == "workspace":
        return _("No slot became free within {timeout}. Resume it when there is room.", timeout=timeout)
    return _("No slot became free within {timeout}. Launch it again when there is room.", timeout=timeout)


def _slots_of(parts: Sequence[tuple[str, int]]) -> str:
    if len(parts) == 1:
        return ""
    each = (_("{slots} for {part}", slots=slots, part=kind_words(kind).definite) for kind, slots in parts)
    return f" ({_(' and ').join(each)})"


_RELEASED = filled(_("Released by {by}; it waits for its turn."))
SENTENCES: dict[str, Sentence] = {
    HELD: filled(
        _("{hold} This starts when an operator releases it, and does not time out before."),
        hold=lambda values, reader: held_words(values),
    ),
    TAKEN_OVER: filled(
        _("{takeover} Afterwards this starts by itself in its turn."),
        takeover=lambda values, reader: takeover_words(values),
    ),
    QUEUE_FULL: _full_sentence,
    "over_user_slots": _over_user_slots,
    "over_tier_maximum": _over_tier_maximum,
    "larger_than_limit": _larger_than_limit,
    "over_quota_timeout": _over_quota_timeout,
    "admitted": filled(_("Has a slot; creating its objects in the cluster.")),
    "released": _RELEASED,
    "HeldInQueue": lambda values, reader: held_words(values),
    "ReleasedInQueue": _RELEASED,
    "MovedInQueue": lambda values, reader: _MOVED[values["where"]].format(by=values["by"]),
}
