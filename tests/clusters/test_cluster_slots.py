"""Workers that are ending keep their slots: a cluster that shrinks and grows again meanwhile has never more pods than slots."""

import contextlib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from grid.clusters.changes import resize
from grid.clusters.slots import Workers, bounds, count
from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER
from grid.core.errors import Rejected
from grid.kube.objects import Pod
from grid.kube.resources import AUTOSCALERS, DEPLOYMENTS, PODS
from grid.models import Execution, UsageInterval
from tests.clusters.test_cluster_life import Configure, the, to_running
from tests.controller.world import World, fresh, in_world
from tests.support.builders import NAMESPACE, decode, pod
from tests.support.shop import Shop
from tests.support.virtual import loop_time, passes


class Kubernetes:
    """A running cluster whose workers drain until a test says that they are done; the controller looks after each thing that happens."""

    def __init__(self, world: World, execution: Execution, controller: Any) -> None:
        self.world = world
        self.execution = execution
        self.controller = controller
        self.name = f"cluster-{execution.pk}-worker"
        self.evicted: set[str] = set()

    @property
    def replicas(self) -> int:
        return int(the(self.world, DEPLOYMENTS, self.name)["spec"]["replicas"])

    def workers(self) -> list[Any]:
        return [pod for pod in self.world.pods() if pod["metadata"]["name"].startswith(self.name)]

    def ending(self) -> list[Any]:
        return [pod for pod in self.workers() if "deletionTimestamp" in pod["metadata"]]

    def scale(self, wanted: int) -> None:
        """The autoscaler's own controller, within its bounds."""
        before, maximum = self.replicas, fresh(self.execution).workers_maximum
        self.world.wanted[self.name] = wanted
        self.world.autoscale()
        assert self.replicas >= min(before, wanted, maximum), "a bound of ours took workers away"

    def round(self) -> None:
        """The Deployment's controller, and the nodes take what is new."""
        self.world.deployments.round()
        for made in self.workers():
            if "nodeName" not in made["spec"]:
                self.world.schedule(made)
                self.world.start(made)

    def drained(self, number: int) -> None:
        for gone in self.ending()[:number]:
            self.evicted.discard(gone["metadata"]["name"])
            self.world.cluster.remove(PODS, gone["metadata"]["name"], namespace=NAMESPACE)

    def evict(self, number: int) -> None:
        for taken in [worker for worker in self.workers() if worker not in self.ending()][:number]:
            name = taken["metadata"]["name"]
            self.evicted.add(name)
            self.world.cluster.server.delete(PODS, name, NAMESPACE)

    async def settle(self) -> None:
        before = self.replicas
        for _ in range(2):
            await passes(1.1)
            await self.world.step(self.controller)
        assert self.replicas >= min(before, fresh(self.execution).workers_maximum), "no check takes workers away"
        assert len(self.workers()) <= self.execution.slots - 1 + len(self.evicted)


async def running(shop: Shop, **changes: Any) -> Kubernetes:
    world, execution = World(), shop.launch_cluster(**changes)
    controller = world.controller(monotonic=loop_time)
    await to_running(world, controller, execution)
    kubernetes = Kubernetes(world, execution, controller)
    kubernetes.round()
    await kubernetes.settle()
    return kubernetes


def maximum(world: World) -> int:
    (scaler,) = world.cluster.objects(AUTOSCALERS)
    return int(scaler["spec"]["maxReplicas"])


def test_living_workers_use_a_slot_each() -> None:
    def worker(name: str, phase: str, **more: Any) -> Any:
        made = pod(name, labels={"app.kubernetes.io/component": "worker"})
        made["status"], made["metadata"] = {"phase": phase}, {**made["metadata"], **more}
        return made

    gone = {"deletionTimestamp": "2026-10-01T12:00:00Z"}
    head = worker("head", "Running")
    head["metadata"]["labels"] = {"app.kubernetes.io/component": "head"}
    made = [worker("a", "Running"), worker("b", "Pending"), worker("c", "Running", **gone), worker("d", "Failed")]
    made += [worker("e", "Succeeded", **gone), head]
    assert count([decode(item, Pod) for item in made]) == Workers(staying=2, ending=1)


@pytest.mark.parametrize(
    ("minimum", "most", "slots", "replicas", "ending", "allowed"),
    [
        (1, 20, 21, 1, 19, (1, 1)),
        (1, 20, 21, 1, 0, (1, 20)),
        (1, 20, 21, 18, 6, (1, 18)),  # six were evicted: what runs in their place stays
        (10, 20, 21, 1, 15, (5, 5)),  # the minimum was raised while workers end
        (1, 5, 21, 20, 3, (1, 5)),  # the maximum was lowered: that takes workers away
        (1, 5, 21, 1, 12, (1, 5)),  # and its slots are not given back yet
        (1, 20, 21, 0, 40, (1, 1)),
    ],
)
def test_ending_workers_leave_room_for_remaining_slots_only(
    minimum: int, most: int, slots: int, replicas: int, ending: int, allowed: tuple[int, int]
) -> None:
    assert bounds(minimum, most, slots=slots, replicas=replicas, ending=ending) == allowed


@in_world
async def test_growing_cluster_waits_for_slots_of_draining_workers(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 60)
    kubernetes = await running(shop, workers_minimum=1, workers_maximum=20)
    world = kubernetes.world
    for wanted in (20, 1):
        kubernetes.scale(wanted)
        kubernetes.round()
        await kubernetes.settle()
    assert (len(kubernetes.ending()), maximum(world)) == (19, 1)
    patches = world.cluster.count("patch", AUTOSCALERS)
    for _ in range(20):
        await kubernetes.settle()
    assert world.cluster.count("patch", AUTOSCALERS) == patches == 1
    await kubernetes.controller.audit()
    await kubernetes.settle()
    assert maximum(world) == 1, "the audit finds nothing wrong"
    gone = 0
    for number in (4, 10, 5):
        kubernetes.drained(number)
        gone += number
        await kubernetes.settle()
        assert maximum(world) == 1 + gone
        kubernetes.scale(20)
        kubernetes.round()
        await kubernetes.settle()
    assert (len(kubernetes.workers()), kubernetes.ending()) == (20, [])
    assert world.cluster.count("patch", AUTOSCALERS) <= 7


@in_world
async def test_growth_during_our_write_is_not_taken_away(shop: Shop) -> None:
    kubernetes = await running(shop, workers_minimum=1, workers_maximum=5)
    world = kubernetes.world
    for wanted in (5, 1):
        kubernetes.scale(wanted)
        kubernetes.round()
    await world.step(kubernetes.controller)
    assert maximum(world) == 1
    deployment = the(world, DEPLOYMENTS, kubernetes.name)
    deployment["spec"]["replicas"] = 3  # decided before, written after
    world.cluster.put(DEPLOYMENTS, deployment)
    await passes(1.1)
    await world.step(kubernetes.controller)
    assert maximum(world) == 3


# Most of them change the number of workers by much, because only that brings many pods that end together with many that are wanted.
ACTION = st.one_of(
    st.tuples(st.just("become"), st.sampled_from([1, 12, 20])),
    st.tuples(st.just("become"), st.integers(1, 20)),
    st.tuples(st.just("resize"), st.sampled_from([3, 12, 20])),
    st.tuples(st.sampled_from(["scale", "drained"]), st.integers(1, 20)),
    st.tuples(st.just("evict"), st.integers(1, 3)),
    st.tuples(st.sampled_from(["round", "wait", "audit"]), st.just(0)),
)


@pytest.mark.parametrize("examples", [2, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("autoscale", [True, False])
def test_pods_never_exceed_slots_in_any_order(shop: Shop, configure: Configure, autoscale: bool, examples: int) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 60)

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(ACTION, min_size=5, max_size=20))
    def any_order(actions: list[tuple[str, int]]) -> None:
        @in_world
        async def run() -> None:
            start = 1 if autoscale else 12
            kubernetes = await running(shop, autoscale=autoscale, workers_minimum=start, workers_maximum=12)
            for what, number in actions:
                await act(kubernetes, what, number, autoscale)
                await kubernetes.settle()
            kubernetes.round()
            kubernetes.drained(100)
            await kubernetes.settle()
            cluster = fresh(kubernetes.execution)
            if autoscale:
                assert maximum(kubernetes.world) == cluster.workers_maximum, "as it was when nothing ends any more"
            else:
                assert kubernetes.replicas == cluster.workers_minimum

        run()
        UsageInterval.objects.all().delete()
        Execution.objects.all().delete()

    any_order()


async def act(kubernetes: Kubernetes, what: str, number: int, autoscale: bool) -> None:
    if what == "wait":
        await passes(40)
    elif what == "audit":
        await kubernetes.controller.audit()
    elif what == "resize":
        minimum = max(1, number // 2) if autoscale else number
        with contextlib.suppress(Rejected):
            resize(fresh(kubernetes.execution), minimum=minimum, maximum=number, by="alice", now=kubernetes.world.now)
    elif what == "round":
        kubernetes.round()
    elif what in ("evict", "drained"):
        getattr(kubernetes, what)(number)
    elif autoscale:
        kubernetes.scale(number)
    if what in ("become", "resize"):
        await kubernetes.settle()
        kubernetes.round()
