"""Several processes that give slots at the same moment, each with its own connection to one database file: no slot twice."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from threading import Barrier, Thread

from django.db import connection

from grid.clusters.changes import resize
from grid.controller.retention import drop_executions
from grid.core.errors import Rejected
from grid.executions.stopping import request_stop
from grid.models import AuditEntry, DailyUsage, Execution, QueueOrder, State, User, Workspace
from grid.models.dataplane import LOCAL
from grid.queue import ordering
from grid.usage import usage
from grid.usage.dailyusage import add_up_ended, held as held_usage
from grid.usage.intervals import Changes, Interval
from grid.workspaces.workspaces import delete, resume
from tests.support.shop import NOW, Shop, admit_waiting

HOUR = timedelta(hours=1)


def at_once(*work: Callable[[], object]) -> list[str]:
    """Runs everything in threads of its own, starting together; what was refused."""
    barrier, refusals, failures = Barrier(len(work)), list[str](), list[BaseException]()

    def run(function: Callable[[], object]) -> None:
        barrier.wait(timeout=10)
        try:
            function()
        except Rejected as error:
            refusals.append(str(error))
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [Thread(target=run, args=(function,)) for function in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert failures == []
    return refusals


def held() -> int:
    holding = Execution.objects.filter(slots_reserved_at__isnull=False, slots_freed_at__isnull=True)
    return sum(holding.values_list("slots", flat=True))


def test_two_admissions_give_no_slot_twice_nor_half_pairs(on_file: Shop) -> None:
    for place in range(4):
        on_file.launch_with_cluster(after=place)
        on_file.launch(after=place + 0.5)
    admitted: list[str] = []

    at_once(*[lambda: admitted.extend(admit_waiting(LOCAL, now=NOW))] * 3)

    # In turn: a pair of 7, one, a pair, one, a pair, one: 24. The fourth pair waits, and what stands behind it.
    assert len(admitted) == len(set(admitted)) == 9
    assert held() == 24
    for cluster in Execution.objects.filter(kind="cluster").select_related("attached_to"):
        assert cluster.attached_to is not None
        assert cluster.state == cluster.attached_to.state


def test_two_operators_and_admissions_lose_no_decision(on_file: Shop) -> None:
    """Each launch is decided about by both operators while it may be admitted; whoever comes too late is told so."""
    waits = [on_file.launch(after=place) for place in range(30)]  # 25 have room
    operator, admin = on_file.people.operator, on_file.people.admin
    admitted: list[str] = []
    too_late: list[str] = []

    def decide(by: User, rows: Sequence[Execution]) -> None:
        for place, row in enumerate(rows):
            try:
                if place % 2:
                    ordering.move(row.pk, "front", by=by, now=NOW)
                else:
                    ordering.hold(row.pk, by=by, reason="Maintenance", now=NOW)
            except Rejected as error:
                too_late.append(str(error))

    def admit() -> None:
        admitted.extend(admit_waiting(LOCAL, now=NOW))

    at_once(lambda: decide(operator, waits[20:]), lambda: decide(admin, waits[20:][::-1]), admit, admit)
    admit()

    assert len(admitted) == len(set(admitted)) == held() <= 25
    assert all("left the queue in the meantime" in refusal or "held already" in refusal for refusal in too_late)
    kept = set(QueueOrder.objects.exclude(held_at=None).values_list("pk", flat=True))
    assert not kept & set(admitted)
    assert not QueueOrder.objects.filter(pk__in=admitted).exists()
    assert AuditEntry.objects.count() == 20 - len(too_late)
    assert Execution.objects.queued().count() == 30 - len(admitted)


def test_two_resizes_and_an_admission_stay_within_the_limit(on_file: Shop) -> None:
    """12 of 25 slots are held; each of the three wants 10 more, and there is room for one of them."""
    both = [on_file.launch_cluster(), on_file.launch_cluster(after=1)]
    admit_waiting(LOCAL, now=NOW)
    on_file.launch_cluster(after=2, workers_maximum=9)

    def grow(execution: Execution) -> Callable[[], None]:
        return lambda: resize(execution, minimum=1, maximum=15, by="alice", now=NOW)

    refusals = at_once(grow(both[0]), grow(both[1]), lambda: admit_waiting(LOCAL, now=NOW))

    assert held() == 22
    assert len(refusals) in (1, 2)
    assert all("10 more slots, and of 25 only 3 are free" in refusal for refusal in refusals)


def resuming(shop: Shop) -> tuple[Execution, Callable[[], None]]:
    """A workspace's stopped execution, and what resumes it."""
    first = shop.launch()
    request_stop(first, by="alice", now=NOW)

    def again() -> None:
        resume(first.pk, environment=shop.workspace, tier=shop.tier, with_cluster=True, now=NOW)

    return first, again


def test_a_workspace_that_is_resumed_twice_lives_once(on_file: Shop) -> None:
    first, again = resuming(on_file)
    assert at_once(again, again, again) == ["It has not ended yet. Stop it first."] * 2
    assert Execution.objects.unsettled().get().workspace_id == first.pk


def test_workspace_resumed_and_deleted_at_once_is_either(on_file: Shop) -> None:
    first, again = resuming(on_file)
    assert len(at_once(again, lambda: delete(first.pk, now=NOW))) == 1
    is_deleted = Workspace.objects.get().deleted_at is not None
    assert Execution.objects.unsettled().exists() is not is_deleted


def test_stop_during_admission_leaves_no_half_of_pair(on_file: Shop) -> None:
    workspace, cluster = on_file.launch_with_cluster()
    at_once(lambda: request_stop(workspace, by="alice", now=NOW), lambda: admit_waiting(LOCAL, now=NOW))
    workspace.refresh_from_db()
    cluster.refresh_from_db()
    assert workspace.stop_requested_at == NOW
    assert workspace.state == cluster.state
    assert held() == (0 if workspace.state == "stopped" else 7)


def test_usage_that_ends_while_two_controllers_add_up_counts_once(on_file: Shop) -> None:
    ids = [on_file.launch(after=number).pk for number in range(20)]
    for id in ids:
        usage.record(id, Changes((Interval(id, "pod", "node-1", False, NOW - 20 * HOUR, None),)))

    def end() -> None:
        for id in ids:
            usage.end_all(id, NOW)
            sums.append(pod_seconds())
        ended.append(True)

    def add_up() -> None:
        while not ended or add_up_ended(NOW, 3):
            add_up_ended(NOW, 3)
            sums.append(pod_seconds())

    def pod_seconds() -> int:
        return sum(row[-3] for row in held_usage(("day", "project_id"), date(2026, 1, 1), NOW.date(), NOW))

    sums, ended = list[int](), list[bool]()
    at_once(end, add_up, add_up)
    assert set(sums) == {20 * 20 * 3600}, "at any moment"
    assert sum(DailyUsage.objects.values_list("pod_seconds", flat=True)) == 20 * 20 * 3600


def test_two_controllers_add_no_dropped_usage_twice(on_file: Shop) -> None:
    for number in range(30):
        execution = on_file.launch(after=number)
        usage.record(execution.pk, Changes((Interval(f"pod-{number}", "pod", "node-1", False, NOW, NOW + HOUR),)))
    Execution.objects.update(state=State.STOPPED, ended_at=NOW, settled_at=NOW)
    later = NOW + 1000 * 24 * HOUR

    def drop() -> None:
        while add_up_ended(later, 3) + drop_executions(later, 7):
            pass

    at_once(drop, drop)
    assert not Execution.objects.exists()
    assert sum(DailyUsage.objects.values_list("pod_seconds", flat=True)) == 30 * 3600
