"""The launch form: tiers and slots in words, and the card beside it: whether it would start, what it costs, what else would; pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from dashboard.shell.viewmodels.states import StatusLine
from dashboard.usage.viewmodels.usage import price_words
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import listed, money, plural
from grid.diagnosis.diagnosis import Severity
from grid.diagnosis.launchfit import Fit, FitCode, LaunchFacts, LaunchPool, PodPlan, Pools, QueuePlace, fit
from grid.diagnosis.nodeimages import ImagePull
from grid.diagnosis.resources import amount_words
from grid.diagnosis.shortages import NamespaceLimits, PodNeeds, refusal, warnings
from grid.models import HardwareTier


@dataclass(frozen=True, slots=True)
class TierCard:
    """A tier that the user may choose, in words; `now` says whether it can be had."""

    tier: HardwareTier
    cores: str
    memory: str
    gpus: str
    price: str
    now: StatusLine
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Slots:
    """A user's slots in words; `note` says why a launch now would wait, "" when it would not."""

    used: int
    maximum: int
    sentence: str
    note: str


def slots(*, used: int, queued: int, maximum: int) -> Slots:
    """Return the user's slots in words. `used` are the slots held, `queued` those that the user's waiting executions need."""
    sentence = _("You use {used:,} of {slots}.", used=used, slots=plural(maximum, "slot", "slots"))
    if queued:
        waiting = ngettext("{count:,} more waits in the queue.", "{count:,} more wait in the queue.", queued)
        sentence = f"{sentence} {waiting}"
    note = ""
    if maximum == 0:
        note = _("Launching is switched off by your admin; what you launch now waits until that changes.")
    elif used + queued >= maximum:
        note = _(
            "All your slots are in use, so this will wait in the queue. It starts by itself when one of your executions ends; "
            "you can stop one that you no longer need."
        )
    return Slots(used, maximum, sentence, note)


def slots_together(needed: int, held: Slots) -> str:
    """Return a sentence about the slots that a workspace and its cluster take, and whether they have to wait for them."""
    free = max(0, held.maximum - held.used)
    if needed <= free:
        return _("Together they take {slots}.", slots=plural(needed, "slot", "slots"))
    sentence = _("Together they take {slots}; you have {free:,} free, so they wait until {needed:,} are free.")
    return sentence.format(slots=plural(needed, "slot", "slots"), free=free, needed=needed)


def tier_status(plan: PodPlan, pools: Pools | None, most: int | None, running: int) -> StatusLine:
    """Return whether one more pod can be had now on a tier with `most` places, or why it would wait: by the rule of the form's card."""
    answer = fit((plan,), LaunchFacts(pools))
    if answer.severity != "problem" and most is not None and running >= most:
        taken = ngettext(
            "The only place of this tier is taken, so it will wait in the queue.",
            "All {count:,} places of this tier are taken, so it will wait in the queue.",
            most,
        )
        return StatusLine("wait", _("Waits"), taken)
    if answer.code == "not_known":
        return StatusLine("neutral", _("Unknown"), _("It is not known whether there is room."))
    if answer.code != "starts_now":
        return StatusLine(answer.severity, answer.headline, answer.sentence)
    if most is None:
        return StatusLine("ok", plural(answer.free_places, "free place", "free places"), "")
    executions = plural(most, "execution", "executions")
    note = _("{running:,} of at most {executions} on this tier now.", running=running, executions=executions)
    return StatusLine("ok", plural(min(answer.free_places, most - running), "free place", "free places"), note)


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
    """A launch that is asked about; `full`, `expected`, `usual_start` and `pull` are as in `LaunchFacts`, `wait` is `expected` in short.
    `needs` is what the namespace would count of its pods, `sidecars` what nginx and the executor take of the node, and `coming` what is
    announced about launches. One that `grows` may cost more than `price` later."""

    pods: tuple[PodPlan, ...]
    slots: int
    price: Decimal
    grows: bool = False
    gpus: int = 0
    queue: QueuePlace | None = None
    full: str = ""
    expected: tuple[str, ...] = ()
    wait: str = ""
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
class LaunchButton:
    """The button that launches, in words; `is_secondary` where something has to change before it could start."""

    words: str
    is_secondary: bool


@dataclass(frozen=True, slots=True)
class FitCard:
    """The card in words."""

    fit: Fit
    button: LaunchButton
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
    waits = (question.expected, question.usual_start, question.pull, known.trouble)
    facts = LaunchFacts(known.pools, question.queue, question.full, refusal(question.needs, limits), *waits)
    answer = fit(question.pods, facts)
    price, taken = price_words(question.price), plural(question.slots, "slot", "slots")
    button = launch_button(answer, _("from {price}", price=price) if question.grows else price, question.wait)
    if question.price:
        price = _("{hourly}, {daily} a day", hourly=price, daily=money(question.price * _HOURS_A_DAY))
    return FitCard(
        fit=answer,
        button=button,
        slots=_("{slots}; you use {used:,} of {maximum:,}", slots=taken, used=held.used, maximum=held.maximum),
        price=price,
        sidecars=listed(amount_words(*amount) for amount in question.sidecars.items()) if question.sidecars else "",
        price_of_sidecars=price_words(question.price_of_sidecars) if question.price_of_sidecars else "",
        secrets=", ".join(question.secrets),
        budget=question.budget,
        warnings=tuple(filter(None, (question.coming, *warnings(question.needs, limits)))),
        suggestions=_suggestions(question, answer, facts, has_slots=held.used + question.slots <= held.maximum),
    )


_HAPPENS: dict[FitCode, str] = {
    "starts_now": _("starts now"),
    "needs_nodes": _("starts on a new node"),
    "queues": _("waits in the queue"),
    "waits_for_room": _("waits for room"),
}


def launch_button(answer: Fit, price: str, wait: str) -> LaunchButton:
    """Return the button that says what happens, such as "Launch: waits about 7 min, $0.05 an hour"; `wait` is "" where it is not known."""
    if answer.severity == "problem":
        return LaunchButton(_("Launch: {problem}", problem=answer.headline.lower()), is_secondary=True)
    happens = _HAPPENS.get(answer.code, "")
    if wait and answer.code in ("queues", "waits_for_room"):
        happens = _("waits about {wait}", wait=wait)
    return LaunchButton(_("Launch: {what}", what=", ".join(filter(None, (happens, price)))), is_secondary=False)


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

    def rank(pair: tuple[TierChoice, Fit]) -> tuple[bool, int]:
        return pair[1].code != "starts_now", -sum(plan.requests.get("cpu", 0) * plan.count for plan in pair[0].pods)

    return tuple(
        Alternative(f"{choice.field}:{choice.id}", choice.name, alternative.headline.lower())
        for choice, alternative in sorted(good, key=rank)[:_SUGGESTED]
    )


@dataclass(frozen=True, slots=True)
class CheckLine:
    """The answer in words; `evidence` is Kubernetes' own text, and while `is_awaited` the page asks again."""

    severity: Severity
    headline: str
    sentence: str
    evidence: str = ""
    at: datetime | None = None
    is_awaited: bool = False


_OFTEN = _("You have checked often within the last minute; try again in a moment.")
TOO_OFTEN = CheckLine("wait", _("Not checked"), _OFTEN)
_HEADLINES: dict[str, tuple[Severity, str]] = {
    "confirmed": ("ok", _("Confirmed by the cluster")),
    "refused": ("problem", _("The cluster would refuse the launch")),
    "not_known": ("wait", _("Not confirmed")),
}


def check_line(
    outcome: str, message: str, evidence: str, *, answered_at: datetime | None, is_current: bool, never_starts: str = ""
) -> CheckLine:
    """Return the line of a stored request; `never_starts` says why it would find no node, which a dry run does not try."""
    if answered_at is not None:
        severity, headline = _HEADLINES[outcome]
        if outcome == "confirmed" and never_starts:
            # Kubernetes' dryRun=All stops after admission: its scheduler sees none of it.
            severity, headline = "problem", _("The cluster accepts it, but it would not start")
            message = f"{message} {never_starts}"
        return CheckLine(severity, headline, message, evidence, answered_at)
    if is_current:
        return CheckLine("wait", _("Asking the cluster"), _("It tries a dry run of the objects."), is_awaited=True)
    sentence = _("The controller did not answer in time. You can launch it anyway.")
    return CheckLine("wait", _("Not confirmed"), sentence)
