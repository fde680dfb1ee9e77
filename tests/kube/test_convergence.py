"""Whatever happens, in whatever order: once it is quiet, the store equals the cluster."""

from typing import Literal, NamedTuple

from hypothesis import given, settings, strategies as st

from grid.core.errors import ClusterUnavailable, TooManyRequests
from grid.kube.listing import Timing
from grid.kube.resources import PODS
from tests.kube.following import following
from tests.support.builders import pod
from tests.support.cluster import FakeCluster
from tests.support.virtual import passes, until, virtual_time


class Step(NamedTuple):
    what: str
    number: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(
            [
                *("put", "put", "put", "remove", "drop", "break", "lose", "compact"),
                *("away", "back", "fail", "garble", "bookmark", "wait"),
            ]
        ),
        st.integers(0, 7),
    ),
    min_size=4,
    max_size=40,
)


def take(cluster: FakeCluster, step: Step) -> float:
    """Do it; how long to wait after."""
    name = f"p{step.number}"
    simple = {"drop": cluster.drop_watch, "break": cluster.break_watch}
    simple |= {"compact": cluster.compact, "bookmark": cluster.bookmark}
    match step.what:
        case "put":
            cluster.put(PODS, pod(name, node=f"n{step.number % 3}", labels={"round": str(cluster.count())}))
        case "remove" if any(obj["metadata"]["name"] == name for obj in cluster.objects(PODS)):
            cluster.remove(PODS, name, namespace="compute-grid")
        case "lose":
            cluster.lose_events(1 + step.number // 2)
        case "away" | "back":
            cluster.available = step.what == "back"
        case "fail":
            error = TooManyRequests("busy") if step.number % 2 else ClusterUnavailable("broken")
            cluster.fail_next(error, times=step.number)
        case "garble":
            cluster.inject(PODS, b'{"type": "MODI')
        case "wait":
            return 2.0**step.number / 4
        case other if other in simple:
            simple[other]()
    return 0.0


@settings(max_examples=100, deadline=None)
@given(
    steps=STEPS,
    seed=st.integers(0, 3),
    page_size=st.integers(1, 4),
    lists=st.sampled_from(["served", "served", "refused", "ignored"]),
)
@virtual_time
async def test_the_store_equals_the_cluster_once_it_is_quiet(
    steps: list[Step], seed: int, page_size: int, lists: Literal["served", "refused", "ignored"]
) -> None:
    cluster = FakeCluster()
    cluster.streaming_lists = lists
    cluster.list_seconds = 0.01
    for number in range(4):
        cluster.put(PODS, pod(f"p{number}", node=f"n{number % 3}"))
    async with following(cluster, seed=seed, timing=Timing(page_size=page_size)) as it:
        for step in steps:
            await passes(take(cluster, step))
        # Lost events are only ever found by a list, which a forgotten version brings about.
        cluster.heal()
        cluster.compact()
        cluster.drop_watch()
        await until(lambda: it.is_equal() and it.freshness().error == "", within=30)
        await passes(60)
        assert it.is_equal()
        assert (it.freshness().synced, it.freshness().error) == (True, "")
        by_node = {name: {pod.metadata.key for pod in it.store.by("node", name)} for name in ("n0", "n1", "n2")}
        assert set().union(*by_node.values()) == set(it.store.keys()), "the index has every pod, and no other"
        assert sum(map(len, by_node.values())) == len(it.store)
