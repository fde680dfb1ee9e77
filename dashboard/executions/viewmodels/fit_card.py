"""The card beside the launch form: whether it would start now, what it takes and costs, and what else would start sooner; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from dashboard.executions.viewmodels.launch import Slots
from dashboard.usage.viewmodels.usage import price_words
from grid.core.translation import gettext as _
from grid.core.wording import listed, money, plural
from grid.diagnosis.launchfit import Fit, LaunchFacts, LaunchPool, PodPlan, QueuePlace, fit
from grid.diagnosis.nodeimages import ImagePull
from grid.diagnosis.resources import amount_words
from grid.diagnosis.shortages import NamespaceLimits, PodNeeds, refusal, warnings

_HOURS_A_DAY = 24
_SUGGESTED = 2


@dataclass(frozen=True, slots=True)
class TierChoice:
    """Another tier for a field of the form, and the pods of the launch if it were chosen; `is_full` when its places are taken."""

    field: str
    id: str
    name: str
    pods: tuple[PodPlan, ...]
    gpus: int
    is_full: bool = False


@dataclass(frozen=True, slots=True)
class FitQuestion:
    """A launch that is asked about, which takes so many `slots`; `full`, `expected`, `usual_start` and `pull` are as in `LaunchFacts`.

    `needs` is what the namespace would count of its pods, and `secrets` the names of those that it gets; `budget` is what is left of the
    project's. `sidecars` is what nginx and the executor take of the node, and `coming` what is announced about launches."""

    pods: tuple[PodPlan, ...]
    slots: int
    price: Decimal
    gpus: int = 0
    queue: QueuePlace | None = None
    full: str = ""
    expected: tuple[str, ...] = ()
    usual_start: float | None = None
    pull: ImagePull | None = None
    needs: tuple[PodNeeds, ...] = ()
    secrets: tuple[str, ...] = ()
    budget: str = ""
    coming: str = ""
    sidecars: Mapping[str, int] = field(default_factory=dict)
    price_of_sidecars: Decimal = Decimal(0)
    choices: tuple[TierChoice, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterKnown:
    """What is known of the cluster: the states of its pools, and the limits of the namespace, None where it is not known, and the headline
    of its trouble."""

    pools: Mapping[str, LaunchPool] | None = None
    limits: NamespaceLimits | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Alternative:
    """A tier to choose instead; `value` is what the button sends."""

    value: str
    name: str
    headline: str


@dataclass(frozen=True, slots=True)
class FitCard:
    """The card in words."""

    fit: Fit
    slots: str
    price: str
    sidecars: str
    price_of_sidecars: str
    secrets: str
    budget: str
    warnings: tuple[str, ...]
    suggestions: tuple[Alternative, ...]


def fit_card(question: FitQuestion, known: ClusterKnown, held: Slots) -> FitCard:
    limits = known.limits or NamespaceLimits()
    facts = LaunchFacts(
        known.pools,
        question.queue,
        question.full,
        refusal(question.needs, limits),
        question.expected,
        question.usual_start,
        question.pull,
        known.trouble,
    )
    answer = fit(question.pods, facts)
    price = price_words(question.price)
    if question.price:
        price = _("{hourly}, {daily} a day", hourly=price, daily=money(question.price * _HOURS_A_DAY))
    return FitCard(
        fit=answer,
        slots=_(
            "{slots}; you use {used:,} of {maximum:,}",
            slots=plural(question.slots, "slot", "slots"),
            used=held.used,
            maximum=held.maximum,
        ),
        price=price,
        sidecars=listed(amount_words(*amount) for amount in question.sidecars.items()) if question.sidecars else "",
        price_of_sidecars=price_words(question.price_of_sidecars) if question.price_of_sidecars else "",
        secrets=", ".join(question.secrets),
        budget=question.budget,
        warnings=(*((question.coming,) if question.coming else ()), *warnings(question.needs, limits)),
        suggestions=_suggestions(question, answer, facts, has_slots=held.used + question.slots <= held.maximum),
    )


def _suggestions(question: FitQuestion, answer: Fit, facts: LaunchFacts, *, has_slots: bool) -> tuple[Alternative, ...]:
    """Return tiers that would start sooner, with as many GPUs if possible, the most cores first; () when waiting is better advice."""
    is_full_tier = question.queue is not None and "tier" in question.queue.sooner
    is_late = answer.code in ("never_fits", "no_nodes", "waits_for_room")
    if not is_late and not (answer.code == "queues" and is_full_tier):
        return ()
    # The queue's gate decides: another tier frees no slot of the person or the project, only a place on a tier.
    alone = replace(facts, queue=None) if is_full_tier and has_slots else facts
    offers = [(choice, fit(choice.pods, alone)) for choice in question.choices if not choice.is_full]
    good = [(choice, alternative) for choice, alternative in offers if alternative.can_start]
    good = [pair for pair in good if pair[0].gpus == question.gpus] or good
    good.sort(key=lambda pair: (pair[1].code != "starts_now", -_cores(pair[0].pods)))
    return tuple(
        Alternative(f"{choice.field}:{choice.id}", choice.name, alternative.headline.lower())
        for choice, alternative in good[:_SUGGESTED]
    )


def _cores(pods: Sequence[PodPlan]) -> int:
    return sum(plan.requests.get("cpu", 0) * plan.count for plan in pods)
