"""The rush planner's answers in words and numbers, and the list of plans; pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from dashboard.shell.viewmodels.live import ViewModel
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import about, date_words, day_words, exact_duration, listed, listed_up_to, money, plural
from grid.tiers.rush import MARGIN, MeasuredTime, Rush, RushFacts, RushRefusal, RushTimes
from grid.tiers.warmhours import WarmHours

_NAMED = 5
Severity = Literal["ok", "wait", "problem", "neutral"]


class RushLine(ViewModel, frozen=True, gc=False):
    """One answer: its subject, a sentence or two, and whether all is well."""

    subject: str
    severity: Severity
    sentences: Sequence[str]


class RushAnswer(ViewModel, frozen=True, gc=False):
    headline: str
    lines: Sequence[RushLine]
    refusals: Sequence[RushRefusal]
    pool: str


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """A stored plan with its present or next `run`, in which launches have `taken` places and `ready` are warm. `hours` are None when
    they cannot be read; `limits` says what keeps it from being carried out."""

    id: str
    name: str
    image: str
    places: int
    hours: WarmHours | None
    run: tuple[datetime, datetime] | None
    by: str
    limits: str = ""
    taken: int = 0
    ready: int = 0


class PlanRow(ViewModel, frozen=True, gc=False):
    """A plan in the list. `state` says what it does now or next."""

    plan: PlanFacts
    times: str
    word: str
    severity: Severity
    state: str


def rush_answer(
    rush: Rush, facts: RushFacts, times: RushTimes, *, image: str, zone: ZoneInfo, now: datetime
) -> RushAnswer:
    asked = {"places": plural(facts.plan.count, "place", "places"), "tier": facts.plan.tier}
    headline = _("{places} of {tier} at {ready}", ready=_local(times.ready, zone), **asked)
    if rush.refusals:
        return RushAnswer(headline, (), rush.refusals, facts.pool.name)
    lines = (
        RushLine(_("Room now"), "ok" if rush.fits_now == facts.plan.count else "wait", tuple(_room(rush, facts))),
        RushLine(_("New nodes"), "wait" if rush.short or rush.new_nodes is None else "ok", tuple(_nodes(rush, facts))),
        RushLine(_("Minutes"), "ok" if rush.is_measured else "wait", tuple(_minutes(facts))),
        RushLine(_("Begins"), *_begins(rush, times, zone, now)),
        RushLine(_("Image"), "ok", tuple(_image(rush, facts, image))),
        RushLine(_("Cost"), "neutral", tuple(_cost(rush, facts))),
    )
    return RushAnswer(headline, lines, (), facts.pool.name)


def plan_row(plan: PlanFacts, now: datetime) -> PlanRow:
    return PlanRow(plan, _times(plan.hours) if plan.hours else "", *_state(plan, now))


def _state(plan: PlanFacts, now: datetime) -> tuple[str, Severity, str]:
    if plan.hours is None:
        step = _("Its times cannot be read on this machine. Remove it, and plan it again.")
        return _("Not understood"), "problem", step
    if plan.run is None:
        return _("Over"), "neutral", ""
    begin, end = plan.run
    if begin > now:
        if plan.limits:
            return _("Held up"), "problem", plan.limits
        return _("Planned"), "neutral", _("Next run: {begin}", begin=_local(begin, plan.hours.zone))
    coming = max(0, plan.places - plan.ready - plan.taken)
    parts = [
        _("{ready:,} ready", ready=plan.ready),
        _("{coming:,} not yet", coming=coming),
        _("{taken:,} taken by launches", taken=plan.taken),
    ]
    state = _("{places}, until {end}", places=listed(parts), end=_local(end, plan.hours.zone))
    if plan.limits:
        return _("Held up"), "problem", f"{plan.limits} {state}"
    return (_("Starting"), "wait", state) if coming else (_("Warm"), "ok", state)


def _times(hours: WarmHours) -> str:
    days = date_words(hours.on) if hours.on else hours.days_in_words()
    times = {"begins": hours.begins, "ends": hours.ends, "zone": hours.zone.key}
    return _("{days} {begins:%H:%M} to {ends:%H:%M} ({zone})", days=days, **times)


def _room(rush: Rush, facts: RushFacts) -> Iterator[str]:
    count, pool = facts.plan.count, facts.pool
    if not pool.size:
        yield _("None: the pool {name} has no node now.", name=pool.name)
        return
    yield ngettext(
        "{fitting:,} of {count:,} fits on the {nodes} of the pool {pool} now.",
        "{fitting:,} of {count:,} fit on the {nodes} of the pool {pool} now.",
        count,
        fitting=rush.fits_now,
        nodes=plural(pool.size, "node", "nodes"),
        pool=pool.name,
    )
    if facts.pool_others:
        yield ngettext(
            "The room of {count:,} other warm place of these hours is not counted.",
            "The room of {count:,} other warm places of these hours is not counted.",
            sum(pods.count for pods in facts.pool_others),
        )


def _nodes(rush: Rush, facts: RushFacts) -> Iterator[str]:
    pool, limit = facts.pool, ""
    if pool.maximum:
        nodes = plural(pool.size, "node", "nodes")
        limit = _("The pool has {nodes} and may have {maximum:,}.", nodes=nodes, maximum=pool.maximum)
    if rush.new_nodes is None:
        yield f"{_('Not known: no node of the pool {pool} was seen yet.', pool=pool.name)} {limit}".rstrip()
        return
    if not rush.new_nodes:
        yield _("None, with what is free now.")
        return
    yield ngettext(
        "{count:,} node must be added, with {places} each.",
        "{count:,} nodes must be added, with {places} each.",
        rush.new_nodes,
        places=plural(rush.per_node, "place", "places"),
    )
    yield limit or _("No autoscaler is known that adds nodes.")
    if rush.short:
        yield ngettext(
            "{count:,} place waits until executions there end: stop some before, or {step}.",
            "{count:,} places wait until executions there end: stop some before, or {step}.",
            rush.short,
            step=_("raise the pool’s maximum") if pool.maximum else _("add nodes"),
        )


def _minutes(facts: RushFacts) -> Iterator[str]:
    node = facts.node.seconds if facts.pool.maximum else None
    if node is not None and facts.pull.seconds is not None:
        yield _("Ready within about {time}, one after the other:", time=about(node + facts.pull.seconds))
    if facts.pool.maximum:
        yield _measured(_("A new node"), facts.node, lambda count: plural(count, "new node", "new nodes"))
    yield _measured(_("The pull of the image"), facts.pull, lambda count: plural(count, "pull", "pulls"))


def _measured(subject: str, measured: MeasuredTime, counted: Callable[[int], str]) -> str:
    if measured.seconds is None:
        if measured.count:
            few = counted(measured.count)
            return _("{subject}: not known yet, only {few} measured in this pool.", subject=subject, few=few)
        return _("{subject}: not known yet, nothing was measured in this pool.", subject=subject)
    values = {"subject": subject, "time": about(measured.seconds)}
    if measured.is_estimate:
        return _("{subject}: about {time}, by its size and other pulls in this pool.", **values)
    return _("{subject}: 95 % within {time}, of {count:,} measured.", count=measured.count, **values)


def _begins(rush: Rush, times: RushTimes, zone: ZoneInfo, now: datetime) -> tuple[Severity, Sequence[str]]:
    early = exact_duration(int(rush.early.total_seconds()))
    if rush.begins <= now:
        ready = rush.ready_at(now)
        known = {"early": early, "ready": _local(ready, zone)}
        late = _("At once: it is too late to begin {early} before. Ready about {ready}.", **known)
        if ready < times.until:
            return "wait", (late,)
        return "problem", (late, _("The plan ends before. Choose a later end, or decide it under “Begin early by”."))
    begin = _("{begin}, {early} before.", begin=_local(rush.begins, zone), early=early)
    if not rush.is_measured:
        guess = _("That is a guess: decide it yourself under “Begin early by”, or plan again when more was measured.")
        return "wait", (begin, guess)
    if times.early is not None:
        return "ok", (begin,)
    return "ok", (begin, _("{margin} of it is for the controller.", margin=exact_duration(int(MARGIN.total_seconds()))))


def _image(rush: Rush, facts: RushFacts, image: str) -> Iterator[str]:
    images = facts.images
    if images.have:
        yield _("{image} is on {nodes}.", image=image, nodes=_named(images.have))
    if images.lack and images.have:
        yield _("{nodes} must pull it.", nodes=_named(images.lack))
    elif images.lack:
        yield _("{nodes} must pull {image}.", nodes=_named(images.lack), image=image)
    if images.unknown:
        yield _(
            "Of {nodes} it is not known: their reports are not complete. It is pulled if it is missing.",
            nodes=_named(images.unknown),
        )
    if rush.new_nodes != 0 and rush.may_add:
        yield _("New nodes pull it before the places are ready.")
    if not facts.pool.size:
        yield _("The pool has no node now that could have {image}.", image=image)


def _named(names: Sequence[str]) -> str:
    return f"{plural(len(names), 'node', 'nodes')} ({listed_up_to(_NAMED, names)})"


def _cost(rush: Rush, facts: RushFacts) -> Iterator[str]:
    if rush.new_nodes == 0:
        yield _("No new node, and no more than now, unless the room is taken by then.")
    elif not rush.may_add:
        yield _("No more than now: the pool can add no node.")
    elif rush.cost is None or rush.node_price is None:
        unknown_size = _("Not known: the size of a new node is not known.")
        yield unknown_size if facts.price else _("Not known: the tier has no price.")
    else:
        yield _(
            "{cost}: {new_nodes} for {hours} at {price} an hour, by the price of the tier {tier}.",
            cost=money(rush.cost),
            new_nodes=plural(min(rush.new_nodes or 0, rush.may_add), "new node", "new nodes"),
            hours=exact_duration(int(rush.span.total_seconds()) // 60 * 60),
            price=money(rush.node_price),
            tier=facts.plan.tier,
        )
    yield _("The warm places themselves are charged to nobody; launches cost what they always cost.")


def _local(moment: datetime, zone: ZoneInfo) -> str:
    at = moment.astimezone(zone)
    return f"{day_words(at)}, {at:%H:%M} ({zone.key})"
