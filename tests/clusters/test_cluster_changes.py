"""Another size for a living cluster, and another head: within the quota at every moment, refused with a sentence."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.clusters.changes import resize, restart_head, slots_to_keep
from grid.configuration import FRAMEWORK_SETTINGS, MAXIMUM_EXECUTIONS_PER_USER
from grid.core.errors import Rejected
from grid.executions.spec import ClusterSpec, parse_spec
from grid.executions.stopping import request_stop
from grid.models import Execution, LifecycleEntry
from grid.models.dataplane import LOCAL
from tests.support.frozen import write_frozen
from tests.support.shop import NOW, OWNER, Shop, admit_waiting

Configure = Callable[[Any, int], None]


def cluster_of(execution: Execution) -> ClusterSpec:
    spec = parse_spec(Execution.objects.get(pk=execution.pk)).cluster
    assert spec is not None
    return spec


def refused(execution: Execution, minimum: int, maximum: int) -> dict[str, str]:
    """The problems of such a resize by field; and it has changed nothing."""
    before = Execution.objects.values().get(pk=execution.pk)
    with pytest.raises(Rejected) as rejected:
        resize(execution, minimum=minimum, maximum=maximum, by="alice", now=NOW)
    assert Execution.objects.values().get(pk=execution.pk) == before
    return {problem.path: problem.message for problem in rejected.value.problems}


@pytest.fixture
def running(shop: Shop) -> Execution:
    """2 to 5 workers, 6 slots."""
    execution = shop.launch_cluster()
    admit_waiting(LOCAL, now=NOW)
    Execution.objects.filter(pk=execution.pk).update(state="running")
    execution.refresh_from_db()
    return execution


def test_a_cluster_grows_when_there_is_room(running: Execution) -> None:
    resize(running, minimum=4, maximum=10, by="alice", now=NOW)

    spec = cluster_of(running)
    assert (spec.workers_minimum, spec.workers_maximum, running.slots, running.revision) == (4, 10, 11, 2)
    line = LifecycleEntry.objects.get(execution=running, source="change")
    assert (line.reason, line.actor, line.words(OWNER)) == (
        "Resized",
        "alice",
        "alice changed it from 2 to 5 workers to 4 to 10 workers.",
    )
    # Everything else of the spec stays as it was at launch.
    assert (spec.framework, spec.scaling.target_cpu, spec.head_tier.id) == ("dask", 80, "small")


def test_shrinking_cluster_keeps_slots_until_workers_are_gone(running: Execution) -> None:
    resize(running, minimum=1, maximum=2, by="alice", now=NOW)
    assert (cluster_of(running).workers_maximum, running.slots) == (2, 6)

    assert slots_to_keep(running.slots, workers_maximum=2, worker_pods=5) == 6
    assert slots_to_keep(running.slots, workers_maximum=2, worker_pods=3) == 4
    assert slots_to_keep(running.slots, workers_maximum=2, worker_pods=0) == 3
    # Growing back into what it still holds takes nothing new.
    resize(running, minimum=1, maximum=5, by="alice", now=NOW)
    assert running.slots == 6


@given(slots=st.integers(1, 50), maximum=st.integers(1, 50), pods=st.integers(0, 50))
def test_kept_slots_cover_present_pods_and_never_grow(slots: int, maximum: int, pods: int) -> None:
    kept = slots_to_keep(slots, workers_maximum=maximum, worker_pods=pods)
    assert kept <= slots
    assert kept == slots or kept >= 1 + max(maximum, pods)


def test_growing_needs_free_slots_now(shop: Shop, running: Execution, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 10)
    shop.launch()
    admit_waiting(LOCAL, now=NOW)
    assert refused(running, 2, 9) == {
        "workers_maximum": (
            "This takes 4 more slots, and of 10 only 3 are free. "
            "Choose at most 8 workers, or stop something that you no longer need."
        )
    }
    resize(running, minimum=2, maximum=8, by="alice", now=NOW)
    assert running.slots == 9


def test_lowered_limit_stops_growing_but_allows_shrinking(running: Execution, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 3)
    assert "of 3 only 0 are free. Choose at most 5 workers" in refused(running, 2, 6)["workers_maximum"]
    configure(FRAMEWORK_SETTINGS["dask"]["maximum_workers"], 2)
    resize(running, minimum=1, maximum=4, by="alice", now=NOW)
    assert cluster_of(running).workers_maximum == 4
    assert "Your admin allows at most 2 workers" in refused(running, 1, 5)["workers_maximum"]


@pytest.mark.parametrize(
    ("minimum", "maximum", "fields"),
    [(0, 5, ["workers_minimum"]), (-1, -2, ["workers_minimum", "workers_maximum"]), (1, 101, ["workers_maximum"])],
)
def test_sizes_are_checked_as_at_launch(running: Execution, minimum: int, maximum: int, fields: list[str]) -> None:
    assert list(refused(running, minimum, maximum)) == fields


def test_a_fixed_cluster_keeps_one_number(shop: Shop) -> None:
    execution = shop.launch_cluster(autoscale=False, workers_minimum=3, workers_maximum=3)
    admit_waiting(LOCAL, now=NOW)
    assert "does not scale by itself" in refused(execution, 2, 4)["workers_maximum"]
    resize(execution, minimum=4, maximum=4, by="alice", now=NOW)
    assert (cluster_of(execution).workers_minimum, execution.slots) == (4, 5)
    line = execution.lifecycle.get(source="change")
    assert line.words(OWNER) == "alice changed it from 3 workers to 4 workers."


def test_the_same_size_again_writes_nothing(running: Execution) -> None:
    resize(running, minimum=2, maximum=5, by="alice", now=NOW)
    assert running.revision == 1
    assert not LifecycleEntry.objects.filter(source="change").exists()


def test_queued_cluster_takes_any_size_that_can_start(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 10)
    shop.launch_with_cluster()
    admit_waiting(LOCAL, now=NOW)
    _, cluster = shop.launch_with_cluster(after=1)
    resize(cluster, minimum=1, maximum=8, by="alice", now=NOW)
    assert cluster.slots == 9
    resize(cluster, minimum=1, maximum=3, by="alice", now=NOW)
    assert cluster.slots == 4
    assert refused(cluster, 1, 9) == {
        "workers_maximum": (
            "This takes 11 slots (the head, the workspace and each worker take one), and one user may hold 10. "
            "Choose at most 8 workers, or ask your admin."
        )
    }


def test_ending_cluster_is_not_changed_any_more(running: Execution) -> None:
    request_stop(running, by="alice", now=NOW)
    for state in ("running", "stopping", "stopped"):
        Execution.objects.filter(pk=running.pk).update(state=state)
        with pytest.raises(Rejected, match="has ended or is being stopped"):
            resize(running, minimum=1, maximum=3, by="alice", now=NOW)
        with pytest.raises(Rejected, match="has ended or is being stopped"):
            restart_head(running, by="alice", now=NOW)


def test_a_workspace_has_neither_workers_nor_a_head(shop: Shop) -> None:
    workspace = shop.launch()
    with pytest.raises(Rejected, match="Only a cluster has workers and a head"):
        resize(workspace, minimum=1, maximum=2, by="alice", now=NOW)
    with pytest.raises(Rejected, match="Only a cluster has workers and a head"):
        restart_head(workspace, by="alice", now=NOW)


def test_unreadable_spec_is_a_refusal_with_a_sentence(running: Execution) -> None:
    write_frozen(running, spec={"id": 3})
    with pytest.raises(Rejected, match="What was stored at launch cannot be read"):
        resize(running, minimum=1, maximum=2, by="alice", now=NOW)


def test_head_restart_is_a_dated_wish_that_survives_resizing(running: Execution) -> None:
    restart_head(running, by="alice", now=NOW)
    resize(running, minimum=1, maximum=4, by="alice", now=NOW)
    assert running.restart_requested_at == NOW
    lines = LifecycleEntry.objects.filter(execution=running, source="change").order_by("id")
    assert [line.reason for line in lines] == ["HeadRestarted", "Resized"]
    assert lines[0].words(OWNER).startswith("alice restarted the head; what its memory held is lost")


def test_head_that_does_not_run_is_not_restarted(shop: Shop) -> None:
    execution = shop.launch_cluster()
    for state in ("queued", "deploying"):
        Execution.objects.filter(pk=execution.pk).update(state=state)
        with pytest.raises(Rejected, match="is not running yet"):
            restart_head(execution, by="alice", now=NOW)
