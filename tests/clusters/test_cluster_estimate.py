"""What a cluster would take: slots, nodes, prices and the words about them; read `tests/golden/words-of-cluster-estimates.txt`."""

from dataclasses import replace
from decimal import Decimal

from hypothesis import given, strategies as st

from dashboard.clusters.viewmodels.cluster_estimate import ClusterPlan, Estimate, Machine, estimate, nodes_of
from dashboard.executions.viewmodels.launch import Slots, slots
from grid.diagnosis.launchfit import AlikeNodes, LaunchPool, PodPlan, Pools, nodes_needed, places
from grid.diagnosis.resources import resource_amounts
from tests.support.golden import assert_golden

NODE = {"cpu": 8000, "memory": 32 * 2**30, "pods": 110}
GPU = "nvidia.com/gpu"
ROOM = slots(used=1, queued=0, maximum=25)


def machine(
    cores: str = "1", memory: str = "4Gi", *, pool: str = "default", gpus: int = 0, price: str = "0.05"
) -> Machine:
    requests = resource_amounts({"cpu": cores, "memory": memory, "pods": "1", **({GPU: str(gpus)} if gpus else {})})
    return Machine(PodPlan(f"{cores} and {memory}", pool, requests), Decimal(price))


def pools(nodes: int = 2, maximum: int = 5) -> dict[str, LaunchPool]:
    return {"default": LaunchPool("default", (AlikeNodes({}, NODE, nodes),) if nodes else (), maximum)}


def estimated(
    worker: Machine,
    *,
    minimum: int = 1,
    maximum: int = 5,
    room: Slots = ROOM,
    known: Pools | None = None,
    companion: Machine | None = None,
) -> Estimate:
    plan = ClusterPlan(machine(), worker, minimum, maximum, companion)
    return estimate(plan, room, pools() if known is None else known)


def as_text(shown: Estimate) -> str:
    """The whole estimate: its sentence, its table, and its notes."""
    rows = [f"| {row.label}: {', '.join(row.amounts)}" for row in shown.rows]
    notes = [f"{note.severity}: {note.sentence}" for note in shown.notes]
    return "\n".join([shown.sentence, f"| For {', '.join(shown.columns)}", *rows, *notes])


def of_slots() -> dict[str, Estimate]:
    full, small, unlimited = replace(machine(), places=4, running=3), replace(machine(), places=1), machine("2")
    taken = replace(small, running=1)
    return {
        "a head and workers": estimated(machine()),
        "a companion": estimated(machine(), companion=machine("7", "28Gi", price="0.38")),
        "a fixed number of workers, free of charge": estimated(machine(price="0"), minimum=3, maximum=3),
        "more slots than the user may hold": estimated(machine(), maximum=40),
        "more slots than are free": estimated(machine(), room=slots(used=22, queued=0, maximum=25)),
        "launching is switched off": estimated(machine(), room=slots(used=0, queued=0, maximum=0)),
        "a tier with one place left for two": estimate(ClusterPlan(unlimited, full, 1, 5, companion=full), ROOM, None),
        "a tier with one place left for one": estimate(ClusterPlan(unlimited, full, 1, 5), ROOM, None),
        "a tier with one place for two": estimate(ClusterPlan(small, small, 1, 5, companion=small), ROOM, None),
        "a head and workers on a tier with one place": estimate(ClusterPlan(small, small, 1, 5), ROOM, None),
        "a head and workers on a tier whose one place is taken": estimate(ClusterPlan(taken, taken, 1, 5), ROOM, None),
    }


def of_pools() -> dict[str, Estimate]:
    gpu = {"default-gpu": LaunchPool("default-gpu", (AlikeNodes({}, {**NODE, GPU: 1}),), 2)}
    of_gpus = ClusterPlan(machine(), machine("3", "12Gi", pool="default-gpu", gpus=1), 1, 2)
    at_zero = LaunchPool("default", (), 3, remembered=AlikeNodes(NODE, NODE), seen="24 November 2026")
    known, for_ever = {"default": at_zero}, {"default": replace(at_zero, maximum=0)}
    return {
        "two workers on a node": estimated(machine("3500m", "14Gi")),
        "much of a node unused": estimated(machine("1", "28Gi")),
        "a worker that fits no node": estimated(machine("9")),
        "a head that fits no node": estimate(ClusterPlan(machine("64"), machine(), 1, 2), ROOM, pools()),
        "a pool of one node at its maximum": estimated(machine(), known=pools(1, 1)),
        "a pool too small for the most workers": estimated(machine(), maximum=20, known=pools(1, 2)),
        "a pool at zero": estimated(machine(), known=pools(0, 5)),
        "a pool at zero for ever": estimated(machine(), known=pools(0, 0)),
        "workers in a pool of GPUs": estimate(of_gpus, ROOM, pools() | gpu),
        "a pool at zero whose nodes are remembered": estimated(machine("7", "28Gi"), maximum=2, known=known),
        "a worker that fits none of the remembered nodes": estimated(machine("64"), known=known),
        "a pool at zero for ever whose nodes are remembered": estimated(machine("64"), known=for_ever),
        "the cluster not known": estimate(ClusterPlan(machine(), machine(), 1, 5), ROOM, None),
    }


def test_estimates_are_as_stored() -> None:
    blocks = [f"# {name}\n{as_text(shown)}" for name, shown in (of_slots() | of_pools()).items()]
    assert_golden("words-of-cluster-estimates", "\n".join(blocks), ending="txt")


def test_each_pool_is_counted_for_itself() -> None:
    gpu = {"default-gpu": LaunchPool("default-gpu", (AlikeNodes({}, {**NODE, GPU: 1}),), 2)}
    plan = ClusterPlan(machine(), machine("3", "12Gi", pool="default-gpu", gpus=1), 1, 2)
    assert nodes_of(plan, 2, pools() | gpu) == {"default-gpu": 2, "default": 1}


sizes = st.tuples(st.integers(1, 10), st.integers(1, 10), st.integers(0, 2))


def room(cpu: int, memory: int, gpus: int) -> dict[str, int]:
    return {"cpu": cpu, "memory": memory, "example.com/gpu": gpus}


@given(
    st.lists(st.tuples(sizes, st.integers(1, 12)), max_size=4), st.tuples(*[st.integers(4, 20)] * 2, st.integers(0, 4))
)
def test_counting_in_groups_equals_placing_one_by_one(
    pods: list[tuple[tuple[int, int, int], int]], size: tuple[int, int, int]
) -> None:
    pods.sort(key=lambda group: (group[0][2], *group[0][:2]), reverse=True)
    pool = LaunchPool("default", (AlikeNodes({}, room(*size)),))
    counted = nodes_needed([PodPlan("T", "default", room(*asked), count=count) for asked, count in pods], pool)
    opened: list[dict[str, int]] = []
    for asked, count in pods:
        for _ in range(count):
            if not places(room(*asked), room(*size)):
                assert counted is None
                return
            free = next((group for group in opened if places(room(*asked), group)), None)
            if free is None:
                opened.append(free := room(*size))
            for name, amount in room(*asked).items():
                free[name] -= amount
    assert counted == len(opened)
