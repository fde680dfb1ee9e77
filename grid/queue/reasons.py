"""Why something waits in the queue, in words for its owner and for others; pure."""

from collections.abc import Sequence
from datetime import timedelta

from grid.core.reasons import Reader, Sentence, Values, words_of
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import duration
from grid.queue.gate import held_words

_PARTS = {"workspace": _("the workspace"), "job": _("the job"), "app": _("the app"), "cluster": _("the cluster")}

# For the owner, who may not know the other executions.
_MOVED = {
    "front": _("{by} moved it to the front of the queue."),
    "before": _("{by} moved it forward in the queue."),
    "back": _("{by} moved it to the back of the queue."),
    "turn": _("{by} let it wait for its turn again."),
}


def _over_user_slots(values: Values, reader: Reader) -> str:
    if values["most"] == 0:
        return _(
            "Launching is switched off: your admin has set the slots per user to 0. This waits until that changes."
        )
    if reader.is_owner:
        use = _("You use {held} of {most} slots", held=values["held"], most=values["most"])
        place = _("It is number {position} of yours.", position=values["position"])
    else:
        owner = reader.owner or _("Its owner")
        use = _("{owner} uses {held} of {most} slots", owner=owner, held=values["held"], most=values["most"])
        place = _("It is number {position} of theirs.", position=values["position"])
    return _(
        "{use}; this starts by itself when {wanted}. {place}",
        use=use,
        wanted=ngettext("one is free", "{count} are free", values["slots"]) + _slots_of(values["parts"]),
        place=place,
    )


def _larger_than_limit(values: Values, reader: Reader) -> str:
    sentence = _(
        "This takes {slots} slots{parts}, and one user may hold {most}.",
        slots=values["slots"],
        parts=_slots_of(values["parts"]),
        most=values["most"],
    )
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
    sentence = sentence.format(
        name=values["tier"],
        held=values["held"],
        maximum=values["maximum"],
        wanted=wanted,
        parts=_places_of(values["parts"]),
    )
    if wanted > values["maximum"]:
        return sentence
    return _("{sentence} It is number {position} for this tier.", sentence=sentence, position=values["position"])


def _over_quota_timeout(values: Values, reader: Reader) -> str:
    timeout = duration(timedelta(seconds=values["seconds"]))
    code, waited_for, text = values["for"]
    if code == "over_budget":
        why = words_of(code, waited_for, text, reader)
        return _("It has waited {timeout} and could not start. {why}", timeout=timeout, why=why)
    if values["kind"] == "workspace":
        return _("No slot became free within {timeout}. Resume it when there is room.", timeout=timeout)
    return _("No slot became free within {timeout}. Launch it again when there is room.", timeout=timeout)


def _released(values: Values, reader: Reader) -> str:
    return _("Released by {by}; it waits for its turn.", by=values["by"])


def _slots_of(parts: Sequence[tuple[str, int]]) -> str:
    if len(parts) == 1:
        return ""
    each = (_("{slots} for {part}", slots=slots, part=_PARTS.get(kind, kind)) for kind, slots in parts)
    return f" ({_(' and ').join(each)})"


def _places_of(kinds: Sequence[str]) -> str:
    return f" ({_(' and ').join(_('one for {part}', part=_PARTS.get(kind, kind)) for kind in kinds)})"


SENTENCES: dict[str, Sentence] = {
    "over_user_slots": _over_user_slots,
    "over_tier_maximum": _over_tier_maximum,
    "larger_than_limit": _larger_than_limit,
    "over_quota_timeout": _over_quota_timeout,
    "admitted": lambda values, reader: _("Has a slot; creating its objects in the cluster."),
    "released": _released,
    "HeldInQueue": lambda values, reader: held_words(values),
    "ReleasedInQueue": _released,
    "MovedInQueue": lambda values, reader: _MOVED[values["where"]].format(by=values["by"]),
}
