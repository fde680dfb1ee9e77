"""Answers before a launch: does it start now, on a new node, later, or never? Pure.

Looks at the pools' nodes as they are now. The zone of a volume and affinities are not looked at; the scheduler has the last word.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from grid.core.translation import gettext as _, ngettext
from grid.core.wording import about, listed, plural
from grid.diagnosis.diagnosis import Severity, Who
from grid.diagnosis.launchplaces import (
    AlikeNodes,
    LaunchPool,
    PodPlan,
    Pools,
    Resources,
    largest_for,
    nodes_needed,
    open_to,
    place_on,
    places,
    size_of,
)
from grid.diagnosis.nodeimages import ImagePull
from grid.diagnosis.places import taint_text, untolerated
from grid.diagnosis.resources import PODS, amount_words, compared
from grid.diagnosis.shortages import NamespaceRefusal

__all__ = [
    "AlikeNodes", "Fit", "FitCode", "LaunchFacts", "LaunchPool", "PodPlan", "Pools", "QueuePlace", "Resources",
    "fit", "largest_for", "never_fits", "nodes_needed", "place_on", "places",
]  # fmt: skip

FitCode = Literal[
    "starts_now", "needs_nodes", "queues", "waits_for_room", "refused", "no_nodes", "never_fits", "not_known"
]
# From the best to the worst; a launch of several pods is as good as its worst.
_ORDER = ("starts_now", "needs_nodes", "waits_for_room", "no_nodes", "never_fits")


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """The place in its owner's or its tier's line that the launch would get, 0 where it would stand aside, with the reason in words and how
    it would start sooner, if it could; `for_good` when it could never leave the queue."""

    position: int
    message: str
    sooner: str = ""
    for_good: bool = False


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """All facts of an answer. `pools` is None while the cluster is unknown, `full` says why the queue takes no more, and `refusal` why the
    namespace would refuse the pods. `expected` are sentences about how long it would wait in the queue, or for room. `usual_start` is
    how many seconds such launches take to start on a node that is there, and `pull` that of the image."""

    pools: Pools | None
    queue: QueuePlace | None = None
    full: str = ""
    refusal: NamespaceRefusal | None = None
    expected: tuple[str, ...] = ()
    usual_start: float | None = None
    pull: ImagePull | None = None
    trouble: str = ""  # the headline of the cluster's, without a full stop


@dataclass(frozen=True, slots=True)
class Fit:
    """The answer. `then` are sentences about what comes after, and `free_places` is how many such launches the pool could take now.
    `is_certain` is False when nobody knows how large the node will be that is started, or whether the cloud delivers it."""

    code: FitCode
    severity: Severity
    headline: str
    sentence: str
    next_step: str = ""
    who: Who = ""
    then: tuple[str, ...] = ()
    free_places: int = 0
    is_certain: bool = True

    @property
    def can_start(self) -> bool:
        """True when it is known that only time, and nothing that somebody has to change, keeps it from starting."""
        return self.is_certain and self.code in ("starts_now", "needs_nodes")


def fit(plans: Sequence[PodPlan], facts: LaunchFacts) -> Fit:
    """Return the answer for the pods of one launch."""
    queue = facts.queue
    if queue is not None and queue.for_good:
        return Fit("never_fits", "problem", _("Can never start"), queue.message, queue.sooner, "admin")
    if facts.full:
        return Fit("refused", "problem", _("Not accepted now"), facts.full)
    if facts.pools is None:
        answer = _not_known(facts.trouble)
    else:
        pools = list(dict.fromkeys(plan.pool for plan in plans))
        states = {name: facts.pools.get(name, LaunchPool(name)) for name in pools}
        each = [_in_pool(states[name], [plan for plan in plans if plan.pool == name]) for name in pools]
        answer = max(each, key=lambda each_fit: (_ORDER.index(each_fit.code), not each_fit.is_certain))
    if answer.code in ("never_fits", "no_nodes"):
        return answer
    if facts.refusal is not None:
        return _refused(facts.refusal)
    if queue is not None:
        return _queues(queue, answer, facts.expected)
    if facts.trouble and facts.pools is not None:
        older = _("{trouble}: this is what was known before.", trouble=facts.trouble)
        return replace(answer, then=(*answer.then, older))
    return replace(answer, then=(*answer.then, *_start(answer, facts)))


def _start(answer: Fit, facts: LaunchFacts) -> Iterable[str]:
    if answer.code == "waits_for_room":
        yield from facts.expected
    if answer.code in ("starts_now", "needs_nodes", "waits_for_room"):
        pull = facts.pull.sentence(on_new_node=answer.code == "needs_nodes") if facts.pull is not None else ""
        yield from [pull] if pull else []
    if answer.code == "starts_now" and facts.usual_start is not None:
        yield _("Launches like this one usually take {usual_start} to start.", usual_start=about(facts.usual_start))


def never_fits(plan: PodPlan, pools: Pools) -> Fit | None:
    """Return the answer for a pod that is larger than any node of its pool, even an empty one; None when it is not, or when the pool has no
    node now: a launch refused by what is remembered could never show that the pool's nodes have become larger."""
    pool = pools.get(plan.pool)
    if pool is None or not pool.nodes:
        return None
    answer = fit((plan,), LaunchFacts(pools))
    return answer if answer.code == "never_fits" else None


def _refused(refusal: NamespaceRefusal) -> Fit:
    headline = _("The namespace refuses it now")
    step = _(
        "You can launch it anyway: it is tried again until there is room, or until its time to be deployed is over."
    )
    if refusal.for_good:
        headline = _("The namespace never takes it")
        step = _("Choose another tier, or ask an admin of the cluster to change that.")
    return Fit("refused", "problem", headline, refusal.sentence, step, "admin")


def _not_known(trouble: str) -> Fit:
    why = trouble or _("The cluster is still being read")
    sentence = _("{why}, so it is not known whether there is room.", why=why)
    step = _("You can launch it anyway: it starts as soon as there is room.")
    return Fit("not_known", "wait", _("Not known"), sentence, step)


def _queues(queue: QueuePlace, after: Fit, expected: Sequence[str]) -> Fit:
    then = [after.sentence] if after.code == "not_known" else []
    if after.code in ("needs_nodes", "waits_for_room"):
        then = [_("After that: {sentence}", sentence=after.sentence)]
    wait = expected or (_("How long that takes is not known yet."),)
    return Fit("queues", "wait", _("Waits in the queue"), queue.message, queue.sooner, "you", then=(*wait, *then))


def _in_pool(pool: LaunchPool, plans: Sequence[PodPlan]) -> Fit:
    answer = _of_nodes(pool, plans)
    if answer.code != "needs_nodes" or not pool.is_backed_off:
        return answer
    then = (_("The cloud could not deliver a node of this pool, and is asked again after a while."), *answer.then)
    step = _("Choose another tier to start sooner.")
    return replace(answer, then=then, next_step=step, who="operator", is_certain=False)


def _of_nodes(pool: LaunchPool, plans: Sequence[PodPlan]) -> Fit:
    """Return the answer by the nodes and by how many there may be; the largest pods are placed first."""
    if not pool.nodes and not (pool.maximum and pool.known):
        return _without_nodes(pool, plans)
    for plan in plans:
        if not open_to(pool, plan):
            return _tainted(pool, plan)
        if largest_for(plan, pool) is None:
            return _too_large(pool, plan)
    if not pool.nodes:
        return _first_nodes(pool, plans)
    nodes, left = [alike for alike in pool.nodes if alike.takes_pods], list[PodPlan]()
    for plan in sorted(plans, key=size_of, reverse=True):  # first fit
        count, nodes = place_on(nodes, plan)
        if count:
            left.append(replace(plan, count=count))
    return _full(pool, plans, left) if left else _starts(pool, plans)


def _starts(pool: LaunchPool, plans: Sequence[PodPlan]) -> Fit:
    if len(plans) > 1 or plans[0].count > 1:
        return Fit("starts_now", "ok", _("Starts now"), _("The pool {name} has room for all of it.", name=pool.name))
    plan = plans[0]
    free = sum(places(plan.requests, alike.free) * alike.count for alike in open_to(pool, plan) if alike.takes_pods)
    places_left = plural(free, "free place", "free places")
    sentence = _("The pool {name} has {places} for {tier}.", name=pool.name, places=places_left, tier=plan.tier)
    return Fit("starts_now", "ok", _("Starts now"), sentence, free_places=free)


def _full(pool: LaunchPool, plans: Sequence[PodPlan], left: Sequence[PodPlan]) -> Fit:
    more = nodes_needed(left, pool) or 0
    free = pool.maximum - pool.size
    wanted, placed = _count(plans), _count(plans) - _count(left)
    singular = _("The pool {name} has no free place on its only node")
    several = _("The pool {name} has no free place on its {count:,} nodes")
    has = ngettext(singular, several, pool.size, name=pool.name)
    if placed:
        singular = _("The pool {name} has room for {placed:,} of {wanted:,} pods on its only node")
        several = _("The pool {name} has room for {placed:,} of {wanted:,} pods on its {count:,} nodes")
        has = ngettext(singular, several, pool.size, name=pool.name, placed=placed, wanted=wanted)
    if more <= free:
        singular = _("{has}; it may have {maximum:,}, and a new one is started for you.")
        several = _("{has}; it may have {maximum:,}, and {count:,} new ones are started for you.")
        sentence = ngettext(singular, several, more, has=has, maximum=pool.maximum)
        return Fit("needs_nodes", "wait", _needs(more), sentence, then=(_start_time(pool),))
    step = _("It starts by itself when something else there ends. Choose another tier to start sooner.")
    why = _("and no autoscaler is known that adds one")
    if pool.maximum:
        why = _("and it may not have more than {maximum:,}", maximum=pool.maximum)
    if more > 1 and free > 0:
        why = _("it may have {maximum:,}, and this needs {more:,} new ones", maximum=pool.maximum, more=more)
    unready = sum(alike.count for alike in pool.nodes if not alike.takes_pods)
    closed = ngettext(
        "{count:,} of its nodes is cordoned or not ready.", "{count:,} of its nodes are cordoned or not ready.", unready
    )
    then = (closed,) if unready else ()
    return Fit("waits_for_room", "wait", _("Waits for room"), f"{has}, {why}.", step, "operator", then=then)


def _count(plans: Iterable[PodPlan]) -> int:
    return sum(plan.count for plan in plans)


def _needs(new_nodes: int) -> str:
    return _("Needs {new_nodes}", new_nodes=plural(new_nodes, "new node", "new nodes"))


def _start_time(pool: LaunchPool) -> str:
    if pool.start_seconds is None:
        return _("How long a node takes to start here is not known yet.")
    return _("A node usually takes {start_seconds} to start here.", start_seconds=about(pool.start_seconds))


def _first_nodes(pool: LaunchPool, plans: Sequence[PodPlan]) -> Fit:
    """Return the answer of a pool that has no node now, when its nodes as remembered take each of the pods."""
    more, has = nodes_needed(plans, pool) or 0, _("The pool {name} has no node now", name=pool.name)
    if more > pool.maximum:
        sentence = _("{has}; it may have {maximum:,}, and this needs {more:,}{as_seen}.")
        sentence = sentence.format(has=has, maximum=pool.maximum, more=more, as_seen=_as_seen(pool))
        step = _("What finds no place waits until something else there ends. Choose another tier to start sooner.")
        return Fit("waits_for_room", "wait", _("Waits for room"), sentence, step, "operator")
    singular = _("{has}; it may have {maximum:,}, and one is started for you.")
    several = _("{has}; it may have {maximum:,}, and {count:,} are started for you.")
    sentence = ngettext(singular, several, more, has=has, maximum=pool.maximum)
    fits = _("It fits{as_seen}.") if _count(plans) == 1 else _("All of it fits{as_seen}.")
    then = _start_time(pool), fits.format(as_seen=_as_seen(pool))
    return Fit("needs_nodes", "wait", _needs(more), sentence, then=then)


def _as_seen(pool: LaunchPool) -> str:
    """Return of when the pool's nodes are known, as an end of a sentence; "" when they are there."""
    return "" if pool.nodes else _(", as its nodes were when last seen on {seen}", seen=pool.seen)


def _without_nodes(pool: LaunchPool, plans: Sequence[PodPlan]) -> Fit:
    if pool.maximum:
        sentence = _("The pool {name} has no node now; it may have {maximum:,}, and one is started for you.")
        sentence = sentence.format(name=pool.name, maximum=pool.maximum)
        unknown = _("Whether {tier} fits its nodes is known only when one has started.", tier=plans[0].tier)
        then = _start_time(pool), unknown
        return Fit("needs_nodes", "wait", _("Needs a new node"), sentence, then=then, is_certain=False)
    sentence = _("The pool {name} has no node, and no autoscaler is known that starts one.", name=pool.name)
    step = _("Choose another tier, or ask an operator to add nodes; until then it waits.")
    return Fit("no_nodes", "problem", _("No node"), sentence, step, "operator")


def _tainted(pool: LaunchPool, plan: PodPlan) -> Fit:
    taints = {taint_text(taint) for alike in pool.known for taint in untolerated(alike.taints, plan.tolerations)}
    sentence = ngettext(
        "Every node of the pool {name} is kept free by the taint {taints}, which {tier} does not tolerate{as_seen}.",
        "Every node of the pool {name} is kept free by the taints {taints}, which {tier} does not tolerate{as_seen}.",
        len(taints),
        name=pool.name,
        taints=listed(sorted(taints)),
        tier=plan.tier,
        as_seen=_as_seen(pool),
    )
    step = _("Choose another tier, or ask an admin to add the toleration to this one.")
    return Fit("no_nodes", "problem", _("No node takes it"), sentence, step, "admin")


def _too_large(pool: LaunchPool, plan: PodPlan) -> Fit:
    nodes = open_to(pool, plan)
    most = {name: max(alike.empty.get(name, 0) for alike in nodes) for name in plan.requests}
    short = [name for name in plan.requests if plan.requests[name] > most[name]]
    if short:
        has, asked = compared({name: most[name] for name in short}, plan.requests)
        sentence = _(
            "{tier} asks for {asked}; the largest node of the pool {name} offers {has} after overhead{as_seen}."
        )
    else:
        has, asked = "", listed(amount_words(name, amount) for name, amount in plan.requests.items() if name != PODS)
        sentence = _("{tier} asks for {asked}, and no node of the pool {name} offers them together{as_seen}.")
    sentence = sentence.format(tier=plan.tier, asked=asked, name=pool.name, has=has, as_seen=_as_seen(pool))
    step = _("Choose another tier, or ask an admin to make this one smaller.")
    return Fit("never_fits", "problem", _("Can never fit"), sentence, step, "admin")
