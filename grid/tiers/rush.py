"""Says what many warm places of a tier at one time take: nodes, minutes, images and money; and when they cannot be had. Pure.

Places are counted by what the pool's nodes have free now, and begin so early as new nodes and pulls of the image took at the 95th
percentile: what is free now may be taken by then, so that wherever a pool may grow, new nodes are waited for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from math import ceil

from grid.core.translation import gettext as _, ngettext
from grid.core.wording import plural
from grid.diagnosis.launchfit import (
    AlikeNodes,
    LaunchFacts,
    LaunchPool,
    PodPlan,
    fit,
    largest_for,
    nodes_needed,
    place_on,
    places,
)

UNMEASURED = timedelta(minutes=30)  # how early places begin where nothing was measured
EARLIEST = timedelta(hours=12)  # as much as a plan may have; a pod may have waited for days for a rare node
MARGIN = timedelta(minutes=1)  # the controller looks every 20 seconds, and its process may be starting


@dataclass(frozen=True, slots=True)
class MeasuredTime:
    """The seconds that 95 % of `count` measured times did not exceed; None when too few were measured. `is_estimate` says that they
    are of others: of a pull, those of as many bytes of other images."""

    seconds: float | None = None
    count: int = 0
    is_estimate: bool = False


@dataclass(frozen=True, slots=True)
class ImageNodes:
    """The names of nodes that have the image, that have to pull it, and of which it is not known."""

    have: tuple[str, ...] = ()
    lack: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RushFacts:
    """What is known. Of other warm places of the same hours, `pool_others` are in the pool; `others` counts those in all pools. The
    central configuration allows `most`; `price` is that of an hour of one execution on the tier."""

    pool: LaunchPool
    plan: PodPlan
    most: int
    price: Decimal = Decimal(0)
    pool_others: tuple[PodPlan, ...] = ()
    others: int = 0
    node: MeasuredTime = MeasuredTime()
    pull: MeasuredTime = MeasuredTime()
    images: ImageNodes = ImageNodes()


@dataclass(frozen=True, slots=True)
class RushTimes:
    """When the places have to be ready, until when they stay, and how early they begin if somebody has decided that."""

    ready: datetime
    until: datetime
    early: timedelta | None = None


@dataclass(frozen=True, slots=True)
class RushRefusal:
    """Why there can be no such plan, and what to do."""

    sentence: str
    step: str


@dataclass(frozen=True, slots=True)
class Rush:
    """The answer. `new_nodes` is None when the nodes' size is not known; of them the pool may start `may_add` now, with which `short`
    places find no room until executions end. `is_measured` is False where `early` is a guess. `node_price` is that of an hour of a full
    node, and `cost` that of the new nodes over the `span` of the plan; None when not known."""

    fits_now: int
    new_nodes: int | None
    may_add: int
    per_node: int
    short: int
    early: timedelta
    is_measured: bool
    begins: datetime
    span: timedelta
    node_price: Decimal | None
    cost: Decimal | None
    refusals: tuple[RushRefusal, ...] = ()

    def ready_at(self, now: datetime) -> datetime:
        """Return when the places are ready: later than asked for when it is too late to begin early enough."""
        return max(self.begins, now) + self.early


def plan_rush(facts: RushFacts, times: RushTimes, now: datetime) -> Rush:
    """Return the answer for the plan's next run, or for one that has begun."""
    pool, count = facts.pool, facts.plan.count
    largest, more = largest_for(facts.plan, pool), max(0, pool.maximum - pool.size)
    # The nodes that the pool may start, as far as it is known how large they are.
    fresh = [replace(largest, free=largest.empty, count=more, takes_pods=True)] if largest is not None and more else []
    other_places = [pods for pods in facts.pool_others if largest_for(pods, pool) is not None]
    others, nodes = _place([node for node in pool.nodes if node.takes_pods], other_places)
    left, _ = place_on(nodes, facts.plan)
    waiting = [*others, replace(facts.plan, count=left)]
    new_nodes = nodes_needed(waiting, pool) if largest is not None else None
    short = place_on(_place(fresh, others)[1], replace(facts.plan, count=left))[0] if largest is not None else 0
    early, is_measured = _early(facts, times)
    begins = times.ready - early
    span = times.until - max(begins, now if times.ready > now else begins)
    per_node = places(facts.plan.requests, largest.empty) if largest is not None else 0
    node_price = facts.price * per_node if facts.price and per_node else None
    seconds = Decimal(int(span.total_seconds()))
    return Rush(
        fits_now=count - left,
        new_nodes=new_nodes,
        may_add=more,
        per_node=per_node,
        short=short,
        early=early,
        is_measured=is_measured,
        begins=begins,
        span=span,
        node_price=node_price,
        cost=None if node_price is None or new_nodes is None else node_price * min(new_nodes, more) * seconds / 3600,
        refusals=tuple(_refusals(facts, times, now, fresh, other_places)),
    )


def _place(nodes: list[AlikeNodes], plans: Sequence[PodPlan]) -> tuple[list[PodPlan], list[AlikeNodes]]:
    """Put the pods on the nodes, one plan after the other. Return those that find no room, and the nodes after that."""
    left = []
    for plan in plans:
        count, nodes = place_on(nodes, plan)
        left += [replace(plan, count=count)] if count else []
    return left, nodes


def _early(facts: RushFacts, times: RushTimes) -> tuple[timedelta, bool]:
    """Return how early the places begin, and whether that was measured or decided rather than guessed."""
    if times.early is not None:
        return times.early, True
    may_grow = facts.pool.maximum > 0
    waits = [facts.node] if may_grow else []
    if may_grow or facts.images.lack or facts.images.unknown:
        waits.append(facts.pull)
    known = timedelta(minutes=ceil(sum(wait.seconds or 0.0 for wait in waits) / 60)) + MARGIN
    is_measured = all(wait.seconds is not None for wait in waits)
    return min(known if is_measured else max(known, UNMEASURED), EARLIEST), is_measured


def _refusals(
    facts: RushFacts, times: RushTimes, now: datetime, fresh: list[AlikeNodes], other_places: Sequence[PodPlan]
) -> Iterator[RushRefusal]:
    if times.until <= now or times.until <= times.ready:
        yield RushRefusal(_("The time of the plan has passed."), _("Choose a time that is yet to come."))
    if refusal := too_many(facts.plan.count, facts.others, facts.most):
        yield refusal
    pool, plan = facts.pool, facts.plan
    single = fit((replace(plan, count=1),), LaunchFacts({pool.name: pool}))
    if single.code in ("never_fits", "no_nodes"):
        yield RushRefusal(single.sentence, single.next_step)
        return
    empty = [replace(nodes, free=nodes.empty) for nodes in pool.nodes if nodes.takes_pods]
    if not fresh and largest_for(plan, pool) is None:
        return  # it is not known how large the pool's nodes are
    others, nodes = _place([*empty, *fresh], other_places)
    left = place_on(nodes, plan)[0]
    if left:
        yield _too_small(facts, plan.count - left, [*others, replace(plan, count=left)])


def too_many(count: int, others: int, most: int) -> RushRefusal | None:
    """Return why there are not so many warm places beside the `others` of their hours; None when the central configuration allows them."""
    asked = others + count
    if asked <= most:
        return None
    if most == 0:
        sentence = _("Warm places are turned off: “Most warm places” in the central configuration is 0.")
        return RushRefusal(sentence, _("Ask an admin to set it to {asked:,} or more.", asked=asked))
    sentence = _("The central configuration allows {places} at once.")
    if others:
        sentence = _("The central configuration allows {places} at once, and {others} of these hours count too.")
    free, step = most - others, _("Ask an admin to set “Most warm places” to {asked:,} or more.")
    if free > 0:
        step = _("Plan at most {places}, or ask an admin to set “Most warm places” to {asked:,} or more.")
    allowed, counted = plural(most, "warm place", "warm places"), plural(others, "other place", "other places")
    step = step.format(places=plural(free, "place", "places"), asked=asked)
    return RushRefusal(sentence.format(places=allowed, others=counted), step)


def _too_small(facts: RushFacts, most: int, left: Sequence[PodPlan]) -> RushRefusal:
    pool = facts.pool
    and_others = _(" beside the other warm places of these hours") if facts.pool_others else ""
    missing = nodes_needed(left, pool) or 0
    needed = max(pool.maximum, pool.size) + missing
    if pool.maximum:
        nodes = plural(pool.maximum, "node", "nodes")
        size = _("The pool {name} may have {nodes}", name=pool.name, nodes=nodes)
        step = _("Raise the pool’s maximum to {needed:,}.")
        if most:
            step = _("Plan at most {places}, or raise the pool’s maximum to {needed:,}.")
    else:
        nodes = plural(pool.size, "node", "nodes")
        size = _("The pool {name} has {nodes} and no autoscaler", name=pool.name, nodes=nodes)
        step = _("Plan at most {places}, or add nodes to the pool.") if most else _("Add nodes to the pool.")
    fits = ngettext(
        "{pool}, on which {count:,} place of {tier} fits{beside}, even when nothing else runs there.",
        "{pool}, on which {count:,} places of {tier} fit{beside}, even when nothing else runs there.",
        most,
        pool=size,
        tier=facts.plan.tier,
        beside=and_others,
    )
    nodes = plural(needed, "node", "nodes")
    needs = ngettext("{count:,} place needs {nodes}.", "{count:,} places need {nodes}.", facts.plan.count, nodes=nodes)
    return RushRefusal(f"{fits} {needs}", step.format(places=plural(most, "place", "places"), needed=needed))
