"""The launch form: tiers as cards, slots in use, and whether a launch would have to wait; pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from dashboard.shell.viewmodels.states import StatusLine
from grid.core.translation import gettext as _
from grid.core.translation import ngettext
from grid.core.wording import plural
from grid.diagnosis.launchfit import LaunchFacts, LaunchPool, PodPlan, fit


@dataclass(frozen=True, slots=True)
class TierOffer:
    """A tier that the user may choose, in words; all users' executions hold slots on `running`, and `plan` is the pod of one more."""

    id: str
    name: str
    description: str
    cores: str
    memory: str
    gpus: str
    price: str
    maximum: int | None
    running: int
    plan: PodPlan


@dataclass(frozen=True, slots=True)
class TierCard:
    offer: TierOffer
    now: StatusLine
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Slots:
    """A user's slots in words; `note` says why a launch now would wait, "" when it would not."""

    used: int
    maximum: int
    sentence: str
    note: str


def tier_cards(offers: Collection[TierOffer], *, chosen: str, pools: Mapping[str, LaunchPool] | None) -> list[TierCard]:
    """Return a card for each tier, that of `chosen` checked. `pools` is None while the cluster is unknown."""
    return [TierCard(offer, _now(offer, pools), is_chosen=offer.id == chosen) for offer in offers]


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
    return _(
        "Together they take {slots}; you have {free:,} free, so they wait until {needed:,} are free.",
        slots=plural(needed, "slot", "slots"),
        free=free,
        needed=needed,
    )


def _now(offer: TierOffer, pools: Mapping[str, LaunchPool] | None) -> StatusLine:
    """Return whether the tier can be had now, or why a launch on it would wait: by the rule of the card beside the form."""
    answer = fit((offer.plan,), LaunchFacts(pools))
    if answer.severity != "problem" and offer.maximum is not None and offer.running >= offer.maximum:
        return StatusLine(
            "wait",
            _("Waits"),
            ngettext(
                "The only place of this tier is taken, so it will wait in the queue.",
                "All {count:,} places of this tier are taken, so it will wait in the queue.",
                offer.maximum,
            ),
        )
    if answer.code == "not_known":
        return StatusLine("neutral", _("Unknown"), _("It is not known whether there is room."))
    if answer.code != "starts_now":
        return StatusLine(answer.severity, answer.headline, answer.sentence)
    if offer.maximum is None:
        return StatusLine("ok", plural(answer.free_places, "free place", "free places"), "")
    free = min(answer.free_places, offer.maximum - offer.running)
    running = _(
        "{running:,} of at most {executions} on this tier now.",
        running=offer.running,
        executions=plural(offer.maximum, "execution", "executions"),
    )
    return StatusLine("ok", plural(free, "free place", "free places"), running)
