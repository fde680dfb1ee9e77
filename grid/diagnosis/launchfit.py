"""Answers before a launch: does it start now, on a new node, later, or never? Pure.

Looks at the pools' nodes as they are now. The zone of a volume and affinities are not looked at; the scheduler has the last word.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from grid.diagnosis.diagnosis import Severity, Who
from grid.diagnosis.imagepull import ImagePull
from grid.diagnosis.places import taint_text, untolerated
from grid.diagnosis.resources import PODS, amount_words, compared
from grid.diagnosis.shortages import NamespaceRefusal
from grid.kube.objects import Taint, Toleration
from grid.wording import about, listed, plural

Resources = Mapping[str, int]  # by Kubernetes' names: cpu in thousandths of a core, everything else in whole units
FitCode = Literal[
    "starts_now", "needs_nodes", "queues", "waits_for_room", "refused", "no_nodes", "never_fits", "not_known"
]
# From the best to the worst; a launch of several pods is as good as its worst.
_ORDER = ("starts_now", "needs_nodes", "waits_for_room", "no_nodes", "never_fits")


@dataclass(frozen=True, slots=True)
class PodPlan:
    """Equal pods of a launch: their tier's name, what each requests, and how many."""

    tier: str
    pool: str
    requests: Resources
    tolerations: tuple[Toleration, ...] = ()
    count: int = 1


@dataclass(frozen=True, slots=True)
class AlikeNodes:
    """Nodes that are alike. `free` is what each has left now, `empty` what it offers beside the pods that run on every node;
    `takes_pods` is False for nodes that are cordoned or not ready."""

    free: Resources
    empty: Resources
    count: int = 1
    taints: tuple[Taint, ...] = ()
    takes_pods: bool = True


@dataclass(frozen=True, slots=True)
class LaunchPool:
    """A node pool: its nodes, how many it may have (0: no autoscaler is known to start any), and how long one usually takes to start.
    `remembered` is an empty node as the pool's nodes were when last seen, on the day `seen`, for a pool that has none now.
    `is_backed_off` says that the cloud failed to deliver a node lately."""

    name: str
    nodes: tuple[AlikeNodes, ...] = ()
    maximum: int = 0
    start_seconds: float | None = None
    remembered: AlikeNodes | None = None
    seen: str = ""
    is_backed_off: bool = False

    @property
    def size(self) -> int:
        return sum(alike.count for alike in self.nodes)

    @property
    def known(self) -> tuple[AlikeNodes, ...]:
        """The nodes that tell how large new ones will be: those of now, or else the remembered one."""
        return self.nodes or ((self.remembered,) if self.remembered else ())


Pools = Mapping[str, LaunchPool]


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """The place in the queue that the launch would get, with the reason in words and how it would start sooner, if it could; `for_good`
    when it could never leave the queue."""

    position: int
    message: str
    sooner: str = ""
    for_good: bool = False


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """All facts of an answer. `pools` is None while the cluster is unknown, `full` says why the queue takes no more, `refusal` why the
    namespace would refuse the pods, and `expected` are sentences about how long it would wait in the queue, or for room. `usual_start` is
    how many seconds such launches take to start on a node that is there, and `pull` that of the image."""

    pools: Pools | None
    queue: QueuePlace | None = None
    full: str = ""
    refusal: NamespaceRefusal | None = None
    expected: tuple[str, ...] = ()
    usual_start: float | None = None
    pull: ImagePull | None = None


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
        return Fit("never_fits", "problem", "Can never start", queue.message, queue.sooner, "admin")
    if facts.full:
        return Fit("refused", "problem", "Not accepted now", facts.full)
    if facts.pools is None:
        answer = _not_known()
    else:
        pools = list(dict.fromkeys(plan.pool for plan in plans))
        states = {name: facts.pools.get(name, LaunchPool(name)) for name in pools}
        each = [_in_pool(states[name], [plan for plan in plans if plan.pool == name]) for name in pools]
        answer = max(each, key=lambda one: (_ORDER.index(one.code), not one.is_certain))
    if answer.code in ("never_fits", "no_nodes"):
        return answer
    if facts.refusal is not None:
        return _refused(facts.refusal)
    if queue is not None:
        return _queues(queue, answer, facts.expected)
    return replace(answer, then=(*answer.then, *_start(answer, facts)))


def _start(answer: Fit, facts: LaunchFacts) -> Iterable[str]:
    """Yield what is known of the start of a launch that no queue holds up."""
    if answer.code == "waits_for_room":
        yield from facts.expected
    if answer.code in ("starts_now", "needs_nodes", "waits_for_room"):
        pull = facts.pull.sentence(on_new_node=answer.code == "needs_nodes") if facts.pull is not None else ""
        yield from [pull] if pull else []
    if answer.code == "starts_now" and facts.usual_start is not None:
        yield f"Launches like this one usually take {about(facts.usual_start)} to start."


def never_fits(plan: PodPlan, pools: Pools) -> Fit | None:
    """Return the answer for a pod that is larger than any node of its pool, even an empty one; None when it is not, or when the pool has no
    node now: a launch refused by what is remembered could never show that the pool's nodes have become larger."""
    pool = pools.get(plan.pool)
    if pool is None or not pool.nodes:
        return None
    found = fit((plan,), LaunchFacts(pools))
    return found if found.code == "never_fits" else None


def largest_for(plan: PodPlan, pool: LaunchPool) -> AlikeNodes | None:
    """Return the nodes that take the most such pods while empty; None when none takes one."""
    best = max(_open_to(pool, plan), key=lambda alike: places(plan.requests, alike.empty), default=None)
    return best if best is not None and places(plan.requests, best.empty) else None


def nodes_needed(plans: Iterable[PodPlan], pool: LaunchPool) -> int | None:
    """Return how many empty nodes like the pool's largest take the pods, the largest pods first; None when one fits no node.

    Alike pods and nodes are counted at once, so that thousands of workers cost no more than one.
    """
    opened: list[AlikeNodes] = []
    for plan in sorted(plans, key=_size, reverse=True):
        count, opened = _fill(opened, plan)
        if not count:
            continue
        largest = largest_for(plan, pool)
        if largest is None:
            return None
        fresh = replace(largest, free=largest.empty, count=-(-count // places(plan.requests, largest.empty)))
        opened += _fill([fresh], replace(plan, count=count))[1]
    return sum(alike.count for alike in opened)


def places(requests: Resources, free: Resources) -> int:
    """Return how many pods of this size find room in these amounts; 0 also when a resource is missing."""
    return min((max(0, free.get(name, 0)) // amount for name, amount in requests.items() if amount > 0), default=1)


def ordinal(number: int) -> str:
    """Return "1st", "2nd", "3rd", "11th"."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def _refused(refusal: NamespaceRefusal) -> Fit:
    if refusal.for_good:
        step = "Choose another tier, or ask an admin of the cluster to change that."
        return Fit("refused", "problem", "The namespace never takes it", refusal.sentence, step, "admin")
    step = "You can launch it anyway: it is tried again until there is room, or until its time to be deployed is over."
    return Fit("refused", "problem", "The namespace refuses it now", refusal.sentence, step, "admin")


def _not_known() -> Fit:
    sentence = "The cluster does not answer now, so it is not known whether there is room."
    return Fit(
        "not_known", "wait", "Not known", sentence, "You can launch it anyway: it starts as soon as there is room."
    )


def _queues(queue: QueuePlace, after: Fit, expected: Sequence[str]) -> Fit:
    then = {
        "needs_nodes": (f"After that: {after.sentence}",),
        "waits_for_room": (f"After that: {after.sentence}",),
        "not_known": (after.sentence,),
    }.get(after.code, ())
    wait = expected or ("How long that takes is not known yet.",)
    headline = f"Queues as {ordinal(queue.position)}"
    return Fit("queues", "wait", headline, queue.message, queue.sooner, "you", then=(*wait, *then))


def _in_pool(pool: LaunchPool, plans: Sequence[PodPlan]) -> Fit:
    """Return the answer for the pods that one pool has to take."""
    answer = _of_nodes(pool, plans)
    if answer.code != "needs_nodes" or not pool.is_backed_off:
        return answer
    then = ("The cloud could not deliver a node of this pool, and is asked again after a while.", *answer.then)
    step = "Choose another tier to start sooner."
    return replace(answer, then=then, next_step=step, who="operator", is_certain=False)


def _of_nodes(pool: LaunchPool, plans: Sequence[PodPlan]) -> Fit:
    """Return the answer by the nodes and by how many there may be; the largest pods are placed first."""
    if not pool.nodes and not (pool.maximum and pool.known):
        return _without_nodes(pool, plans)
    for plan in plans:
        if not _open_to(pool, plan):
            return _tainted(pool, plan)
        if largest_for(plan, pool) is None:
            return _too_large(pool, plan)
    if not pool.nodes:
        return _first_nodes(pool, plans)
    left = _left_over(pool, plans)
    if not left:
        return _starts(pool, plans)
    return _full(pool, plans, left)


def _open_to(pool: LaunchPool, plan: PodPlan) -> list[AlikeNodes]:
    return [alike for alike in pool.known if not untolerated(alike.taints, plan.tolerations)]


def _left_over(pool: LaunchPool, plans: Sequence[PodPlan]) -> list[PodPlan]:
    """Return the pods that find no room now, by first fit."""
    nodes = [alike for alike in pool.nodes if alike.takes_pods]
    left = []
    for plan in sorted(plans, key=_size, reverse=True):
        count, nodes = _fill(nodes, plan)
        if count:
            left.append(replace(plan, count=count))
    return left


def _fill(nodes: Iterable[AlikeNodes], plan: PodPlan) -> tuple[int, list[AlikeNodes]]:
    """Put as many pods as fit on the nodes. Return how many are left over, and the nodes after that."""
    count, after = plan.count, list[AlikeNodes]()
    for alike in nodes:
        if not count:
            after.append(alike)
            continue
        each = places(plan.requests, alike.free) if not untolerated(alike.taints, plan.tolerations) else 0
        full = min(alike.count, count // each) if each else 0
        rest = count - full * each if each and full < alike.count else 0
        count -= full * each + rest
        for pods, number in ((each, full), (rest, 1 if rest else 0), (0, alike.count - full - (1 if rest else 0))):
            if number:
                after.append(replace(alike, free=_minus(alike.free, plan.requests, pods), count=number))
    return count, after


def _minus(free: Resources, requests: Resources, count: int) -> Resources:
    return {name: amount - requests.get(name, 0) * count for name, amount in free.items()} if count else free


def _size(plan: PodPlan) -> tuple[int, ...]:
    devices = sum(amount for name, amount in plan.requests.items() if "/" in name)
    return devices, plan.requests.get("cpu", 0), plan.requests.get("memory", 0)


def _starts(pool: LaunchPool, plans: Sequence[PodPlan]) -> Fit:
    if len(plans) > 1 or plans[0].count > 1:
        return Fit("starts_now", "ok", "Starts now", f"The pool {pool.name} has room for all of it.")
    plan = plans[0]
    free = sum(places(plan.requests, alike.free) * alike.count for alike in _open_to(pool, plan) if alike.takes_pods)
    sentence = f"The pool {pool.name} has {plural(free, 'free place')} for {plan.tier}."
    return Fit("starts_now", "ok", "Starts now", sentence, free_places=free)


def _full(pool: LaunchPool, plans: Sequence[PodPlan], left: Sequence[PodPlan]) -> Fit:
    more = nodes_needed(left, pool) or 0
    free = pool.maximum - pool.size
    nodes = "only node" if pool.size == 1 else plural(pool.size, "node")
    wanted, placed = _count(plans), _count(plans) - _count(left)
    has = f"The pool {pool.name} has no free place on its {nodes}"
    if placed:
        has = f"The pool {pool.name} has room for {placed:,} of {wanted:,} pods on its {nodes}"
    if more <= free:
        headline = f"Needs {plural(more, 'new node')}"
        sentence = f"{has}; it may have {pool.maximum:,}, and a new one is started for you."
        if more > 1:
            sentence = f"{has}; it may have {pool.maximum:,}, and {more:,} new ones are started for you."
        return Fit("needs_nodes", "wait", headline, sentence, then=(_start_time(pool),))
    step = "It starts by itself when something else there ends. Choose another tier to start sooner."
    why = (
        f"and it may not have more than {pool.maximum:,}"
        if pool.maximum
        else "and no autoscaler is known that adds one"
    )
    if more > 1 and free > 0:
        why = f"it may have {pool.maximum:,}, and this needs {more:,} new ones"
    unready = sum(alike.count for alike in pool.nodes if not alike.takes_pods)
    then = (f"{unready:,} of its nodes {'is' if unready == 1 else 'are'} cordoned or not ready.",) if unready else ()
    return Fit("waits_for_room", "wait", "Waits for room", f"{has}, {why}.", step, "operator", then=then)


def _count(plans: Iterable[PodPlan]) -> int:
    return sum(plan.count for plan in plans)


def _start_time(pool: LaunchPool) -> str:
    if pool.start_seconds is None:
        return "How long a node takes to start here is not known yet."
    return f"A node usually takes {about(pool.start_seconds)} to start here."


def _first_nodes(pool: LaunchPool, plans: Sequence[PodPlan]) -> Fit:
    """Return the answer of a pool that has no node now, when its nodes as remembered take each of the pods."""
    more, has = nodes_needed(plans, pool) or 0, f"The pool {pool.name} has no node now"
    if more > pool.maximum:
        sentence = f"{has}; it may have {pool.maximum:,}, and this needs {more:,}{_as_seen(pool)}."
        step = "What finds no place waits until something else there ends. Choose another tier to start sooner."
        return Fit("waits_for_room", "wait", "Waits for room", sentence, step, "operator")
    started = "one is started for you" if more == 1 else f"{more:,} are started for you"
    sentence = f"{has}; it may have {pool.maximum:,}, and {started}."
    fits = f"{'It fits' if _count(plans) == 1 else 'All of it fits'}{_as_seen(pool)}."
    return Fit("needs_nodes", "wait", f"Needs {plural(more, 'new node')}", sentence, then=(_start_time(pool), fits))


def _as_seen(pool: LaunchPool) -> str:
    """Return of when the pool's nodes are known, as an end of a sentence; "" when they are there."""
    return "" if pool.nodes else f", as its nodes were when last seen on {pool.seen}"


def _without_nodes(pool: LaunchPool, plans: Sequence[PodPlan]) -> Fit:
    if pool.maximum:
        sentence = f"The pool {pool.name} has no node now; it may have {pool.maximum:,}, and one is started for you."
        unknown = f"Whether {plans[0].tier} fits its nodes is known only when one has started."
        then = _start_time(pool), unknown
        return Fit("needs_nodes", "wait", "Needs a new node", sentence, then=then, is_certain=False)
    sentence = f"The pool {pool.name} has no node, and no autoscaler is known that starts one."
    step = "Choose another tier, or ask an operator to add nodes; until then it waits."
    return Fit("no_nodes", "problem", "No node", sentence, step, "operator")


def _tainted(pool: LaunchPool, plan: PodPlan) -> Fit:
    taints = {taint_text(taint) for alike in pool.known for taint in untolerated(alike.taints, plan.tolerations)}
    names = f"the taint {listed(sorted(taints))}" if len(taints) == 1 else f"the taints {listed(sorted(taints))}"
    sentence = f"Every node of the pool {pool.name} is kept free by {names}, which {plan.tier} does not tolerate{_as_seen(pool)}."
    step = "Choose another tier, or ask an admin to add the toleration to this one."
    return Fit("no_nodes", "problem", "No node takes it", sentence, step, "admin")


def _too_large(pool: LaunchPool, plan: PodPlan) -> Fit:
    nodes = _open_to(pool, plan)
    most = {name: max(alike.empty.get(name, 0) for alike in nodes) for name in plan.requests}
    short = [name for name in plan.requests if plan.requests[name] > most[name]]
    if short:
        has, asked = compared({name: most[name] for name in short}, plan.requests)
        sentence = f"{plan.tier} asks for {asked}; the largest node of the pool {pool.name} offers {has} after overhead{_as_seen(pool)}."
    else:
        asked = listed(amount_words(name, amount) for name, amount in plan.requests.items() if name != PODS)
        sentence = (
            f"{plan.tier} asks for {asked}, and no node of the pool {pool.name} offers them together{_as_seen(pool)}."
        )
    step = "Choose another tier, or ask an admin to make this one smaller."
    return Fit("never_fits", "problem", "Can never fit", sentence, step, "admin")
