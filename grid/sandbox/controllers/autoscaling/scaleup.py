"""Scale-up: which pools must grow for the unschedulable pods, and why a pod makes none grow. Pure.

Pods are first placed, in the snapshot only, where they already fit: on existing nodes and on those still booting, so that one
pod never asks for a second node. The rest are packed onto empty nodes of each pool; the pool that wastes least grows, within its
maximum, until no pod can be helped any more.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from grid.sandbox.client import key_of
from grid.sandbox.controllers.podresources import Amounts, amounts
from grid.sandbox.controllers.scheduling import NodeState, Snapshot
from grid.sandbox.controllers.scheduling.claims import claim_problem
from grid.sandbox.controllers.scheduling.filters import Objection
from grid.sandbox.controllers.scheduling.question import Question
from grid.sandbox.pools import NodePool

MAXIMUM_REACHED = "max node group size reached"
IN_BACKOFF = "in backoff after failed scale-up"
_MEASURED = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class UnschedulablePod:
    """A pod that the scheduler could not place, with its requests."""

    pod: Mapping[str, Any]
    requests: Amounts


@dataclass(frozen=True, slots=True)
class PoolState:
    """A pool, its number of machines (booting ones included), and the template of an empty node."""

    pool: NodePool
    size: int
    template: NodeState
    in_backoff: bool = False


@dataclass(frozen=True, slots=True)
class Increase:
    pool: str
    before: int
    after: int
    maximum: int

    def __str__(self) -> str:
        return f"{self.pool} {self.before}->{self.after} (max: {self.maximum})"


@dataclass(frozen=True, slots=True)
class ScaleUp:
    """The plan of a scale-up: `triggered` maps each helped pod to the pool that grows, `refused` the others to the reason."""

    increases: tuple[Increase, ...]
    triggered: Mapping[str, Increase]
    refused: Mapping[str, str]


@dataclass(slots=True)
class _Option:
    """A pool's new nodes for the unschedulable pods, and the pods that fit on them."""

    state: PoolState
    nodes: list[NodeState]
    helped: list[UnschedulablePod]


def template_node(pool: NodePool, name: str, like: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a node of the pool before anything runs on it, with the allocatable amounts of `like` when there is a real node."""
    allocatable = (like or {}).get("status", {}).get("allocatable") or dict(pool.capacity)
    return {
        "metadata": {"name": name, "labels": pool.node_labels(name)},
        "spec": {"taints": pool.node_taints()},
        "status": {"allocatable": allocatable},
    }


def pool_state(
    pool: NodePool, size: int, like: Mapping[str, Any] | None = None, *, in_backoff: bool = False
) -> PoolState:
    node = template_node(pool, f"template-{pool.name}", like)
    return PoolState(pool, size, NodeState(node, amounts(node["status"]["allocatable"])), in_backoff)


def plan_scale_up(waiting: Sequence[UnschedulablePod], snapshot: Snapshot, pools: Sequence[PoolState]) -> ScaleUp:
    """Place what fits into the snapshot, and decide about the rest."""
    blocked = {key_of(item.pod): claim_problem(item.pod, snapshot) for item in waiting}
    rest = [item for item in waiting if blocked[key_of(item.pod)] or not _place_existing(item, snapshot)]
    helpable = [item for item in rest if not blocked[key_of(item.pod)]]
    sizes = {state.pool.name: state.size for state in pools}
    grown: dict[str, Increase] = {}
    helped: dict[str, str] = {}
    while helpable:
        options = [_pack(helpable, state, sizes[state.pool.name], snapshot) for state in pools]
        useful = [option for option in options if option.helped]
        if not useful:
            break
        best = min(useful, key=_waste)
        pool = best.state.pool
        sizes[pool.name] += len(best.nodes)
        grown[pool.name] = Increase(pool.name, best.state.size, sizes[pool.name], pool.maximum)
        helped |= {key_of(item.pod): pool.name for item in best.helped}
        helpable = [item for item in helpable if key_of(item.pod) not in helped]
    return ScaleUp(
        increases=tuple(grown.values()),
        triggered={key: grown[pool] for key, pool in helped.items()},
        refused={
            key_of(item.pod): _refusal(item, blocked[key_of(item.pod)], pools, sizes, snapshot)
            for item in rest
            if key_of(item.pod) not in helped
        },
    )


def _place_existing(item: UnschedulablePod, snapshot: Snapshot) -> bool:
    question = Question(item.pod, item.requests, snapshot)
    for state in snapshot.nodes.values():
        if question.objection(state) is None:
            state.place(item.pod, item.requests)
            return True
    return False


def _pack(waiting: Sequence[UnschedulablePod], state: PoolState, size: int, snapshot: Snapshot) -> _Option:
    """Place the pods first fit, largest first, onto as many empty nodes as the pool may still get."""
    option = _Option(state, [], [])
    room = 0 if state.in_backoff else state.pool.maximum - size
    for item in sorted(waiting, key=lambda item: _share(item.requests, state.template), reverse=True):
        fresh = _new_node(state, len(option.nodes))
        more = [fresh] if len(option.nodes) < room else []
        question = Question(item.pod, item.requests, _with_nodes(snapshot, [*option.nodes, fresh]))
        target = next((node for node in [*option.nodes, *more] if question.objection(node) is None), None)
        if target is None:
            continue
        if target is fresh:
            option.nodes.append(fresh)
        target.place(item.pod, item.requests)
        option.helped.append(item)
    return option


def _new_node(state: PoolState, number: int) -> NodeState:
    """Return an empty node with a name of its own, which its labels say too, so that pods which avoid each other get several."""
    node = template_node(state.pool, f"template-{state.pool.name}-{number}", state.template.node)
    return NodeState(node, state.template.allocatable)


def _with_nodes(snapshot: Snapshot, nodes: Iterable[NodeState]) -> Snapshot:
    return replace(snapshot, nodes=snapshot.nodes | {node.name: node for node in nodes})


def _objection(item: UnschedulablePod, state: PoolState, snapshot: Snapshot) -> Objection | None:
    fresh = _new_node(state, 0)
    return Question(item.pod, item.requests, _with_nodes(snapshot, [fresh])).objection(fresh)


def _share(requests: Mapping[str, int], node: NodeState) -> float:
    return sum(requests.get(name, 0) / max(1, node.allocatable.get(name, 0)) for name in _MEASURED)


def _waste(option: _Option) -> tuple[int, float]:
    """Return a sort key of the idle share: accelerators that nobody requested weigh more than any idle core."""
    idle = 0.0
    extended_idle = 0
    for node in option.nodes:
        idle += sum(1 - node.used.get(name, 0) / max(1, node.allocatable.get(name, 0)) for name in _MEASURED)
        extended_idle += sum("/" in name and not node.used.get(name) for name in node.allocatable)
    return extended_idle, idle / len(option.nodes)


def _refusal(
    item: UnschedulablePod, blocked: str, pools: Sequence[PoolState], sizes: Mapping[str, int], snapshot: Snapshot
) -> str:
    reasons: Counter[str] = Counter()
    for state in pools:
        if sizes[state.pool.name] >= state.pool.maximum:
            reasons[MAXIMUM_REACHED] += 1
        elif state.in_backoff:
            reasons[IN_BACKOFF] += 1
        elif blocked:
            reasons[blocked] += 1
        else:
            objection = _objection(item, state, snapshot)
            reasons.update(objection.reasons if objection else ())
    return "pod didn't trigger scale-up: " + ", ".join(sorted(f"{count} {text}" for text, count in reasons.items()))
