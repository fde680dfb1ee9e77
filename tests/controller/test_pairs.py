"""A workspace or job and its cluster are admitted, refused, given up and stopped together; each may be stopped alone."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from grid.configuration import MAXIMUM_EXECUTIONS_PER_USER, OVER_QUOTA_TIMEOUT
from grid.executions.stopping import request_stop
from grid.models import Execution, HardwareTier, LastAdmission, State
from grid.models.dataplane import LOCAL
from grid.queue import snapshot
from tests.support.admitting import admit_waiting
from tests.support.reading import OWNER
from tests.support.shop import NOW, Shop

Configure = Callable[[Any, int], None]


def states() -> dict[str, str]:
    """By kind."""
    return dict(Execution.objects.values_list("kind", "state"))


def test_both_are_admitted_at_once_and_told_in_order(shop: Shop) -> None:
    workspace, cluster = shop.launch_with_cluster()
    assert admit_waiting(LOCAL, now=NOW) == [workspace.pk, cluster.pk]
    assert states() == {"workspace": "deploying", "cluster": "deploying"}
    assert set(Execution.objects.values_list("slots_reserved_at", flat=True)) == {NOW}
    (held,) = snapshot.take(LOCAL, now=NOW).snapshot.holding
    assert (held.tier, held.executions, held.slots) == ("small", 2, 7)


def test_pair_without_room_waits_with_the_same_message(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 7)
    shop.launch()
    admit_waiting(LOCAL, now=NOW)
    workspace, cluster = shop.launch_with_cluster(after=1)
    shop.launch(after=2)

    assert admit_waiting(LOCAL, now=NOW) == []
    message = (
        "You use 1 of 7 slots; this starts by itself when 7 are free (1 for the workspace and 6 for the cluster). "
    )
    message += "It is number 1 of yours."
    for row in (workspace, cluster):
        row.refresh_from_db()
        assert (row.state, row.reason, row.words(OWNER)) == ("queued", "over_user_slots", message)
    assert "It is number 2 of yours." in Execution.objects.latest("requested_at").words(OWNER)


def test_killed_between_the_two_rows_nothing_is_admitted(shop: Shop) -> None:
    """What the database does with a transaction whose process is gone."""
    shop.launch_with_cluster()

    class Gone(BaseException):
        pass

    def dies_at_the_second(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("UPDATE") and Execution.objects.filter(state="deploying").exists():
            raise Gone
        return execute(sql, params, many, context)

    with connection.execute_wrapper(dies_at_the_second), pytest.raises(Gone):
        admit_waiting(LOCAL, now=NOW)
    assert states() == {"workspace": "queued", "cluster": "queued"}
    assert len(admit_waiting(LOCAL, now=NOW)) == 2


def test_pair_that_waits_too_long_ends_together(shop: Shop, configure: Configure) -> None:
    shop.launch_with_cluster()
    configure(MAXIMUM_EXECUTIONS_PER_USER, 3)
    admit_waiting(LOCAL, now=NOW)
    assert states() == {"workspace": "queued", "cluster": "queued"}
    admit_waiting(LOCAL, now=NOW + timedelta(seconds=OVER_QUOTA_TIMEOUT.default + 1))
    assert states() == {"workspace": "error", "cluster": "error"}
    assert set(Execution.objects.values_list("reason", flat=True)) == {"over_quota_timeout"}


def test_stopping_a_waiting_workspace_stops_its_cluster_too(shop: Shop) -> None:
    workspace, cluster = shop.launch_with_cluster()
    request_stop(workspace, by="alice", now=NOW)

    assert states() == {"workspace": "stopped", "cluster": "stopped"}
    cluster.refresh_from_db()
    assert cluster.words(OWNER) == "Stopped with the workspace that it belongs to, by alice, before it started."
    assert (cluster.ended_at, cluster.stop_requested_by) == (NOW, "alice")
    assert admit_waiting(LOCAL, now=NOW) == []


def test_stopping_a_waiting_cluster_leaves_its_workspace(shop: Shop) -> None:
    workspace, cluster = shop.launch_with_cluster()
    request_stop(cluster, by="alice", now=NOW)

    assert states() == {"workspace": "queued", "cluster": "stopped"}
    workspace.refresh_from_db()
    line = workspace.lifecycle.get(source="change")
    assert (line.reason, line.words(OWNER)) == (
        "WithoutCluster",
        "alice stopped its cluster before it started; this continues without a cluster.",
    )
    assert admit_waiting(LOCAL, now=NOW) == [workspace.pk]


def test_pair_takes_a_place_on_each_limited_tier(shop: Shop) -> None:
    head = HardwareTier.objects.create(id="head", name="Head", node_pool="default", cores="1", memory="1Gi")
    HardwareTier.objects.create(
        id="limited", name="Limited", node_pool="default", cores="1", memory="1Gi", maximum_simultaneous=2
    )
    limited = HardwareTier.objects.get(pk="limited")
    shop.launch_with_cluster(tier=limited, head_tier=head)
    shop.launch_with_cluster(tier=head, head_tier=limited, after=1, workers_maximum=3)
    third, _ = shop.launch_with_cluster(tier=limited, head_tier=limited, after=2, workers_maximum=3)
    assert len(admit_waiting(LOCAL, now=NOW)) == 4

    third.refresh_from_db()
    assert third.words(OWNER).startswith("The tier Limited runs 2 of at most 2 executions at once")
    holding = {(held.tier, held.executions, held.slots) for held in snapshot.take(LOCAL, now=NOW).snapshot.holding}
    assert holding == {("small", 2, 2), ("limited", 1, 6), ("limited", 1, 0), ("head", 1, 4), ("head", 1, 0)}


def test_cluster_whose_workspace_is_gone_never_starts(shop: Shop) -> None:
    workspace, cluster = shop.launch_with_cluster()
    Execution.objects.filter(pk=workspace.pk).update(state="error")
    assert admit_waiting(LOCAL, now=NOW) == []
    request_stop(cluster, by="the controller", now=NOW)
    assert cluster.state == State.STOPPED


def test_admission_is_remembered_per_user_on_each_tier(shop: Shop) -> None:
    other = HardwareTier.objects.create(id="other", name="Other", node_pool="default", cores="1", memory="1Gi")
    shop.launch_with_cluster(head_tier=other)
    admit_waiting(LOCAL, now=NOW)
    shop.launch(after=5)
    later = NOW + timedelta(minutes=1)
    admit_waiting(LOCAL, now=later)
    user = shop.people.owner
    remembered = LastAdmission.objects.values_list("user", "tier", "at")
    assert set(remembered) == {(user.pk, shop.tier.pk, later), (user.pk, "other", NOW)}
