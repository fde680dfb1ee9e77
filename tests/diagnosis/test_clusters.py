"""What a person is told about a cluster: the sentence about its workers, what they share, and what stands in its way."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from grid.core.labels import POD_DELETION_COST
from grid.diagnosis.clusters import ClusterSnapshot, Member, deletion_order, explain_cluster, summary
from grid.diagnosis.diagnosis import Diagnosis, EvidenceRow, Severity
from grid.kube.objects import Autoscaler, RawObject
from tests.clusters.clustering import autoscaler, head_pod, waiting_worker, worker_pod
from tests.diagnosis.situations import as_text
from tests.diagnosis.snapshots import (
    LEAVING,
    NOW,
    codes,
    event,
    growing,
    member,
    on_demand,
    pulling,
    ready,
    snapshot,
    starting,
)
from tests.support.builders import MOMENT, condition, container_status, decode, stamp
from tests.support.golden import assert_golden


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (
            snapshot([*ready(6), *map(growing, "abcdefgh"), pulling("i"), pulling("j")], desired=16),
            "6 of 16 workers; 8 wait for node 2 of 3, 2 for image pull.",
        ),
        (snapshot(ready(3), desired=3), "3 of 3 workers."),
        (snapshot(ready(1), desired=1), "1 of 1 worker."),
        (snapshot([*ready(1), growing("a", "1->2")], desired=2), "1 of 2 workers; 1 waits for node 2 of 2."),
        (snapshot([growing("a", "1->2")], desired=2, ready_nodes=2), "0 of 2 workers; 1 waits for a node, 1 is being created."),
        (snapshot([member(waiting_worker("c", "a"))]), "0 of 1 worker; 1 waits for a node."),
        (snapshot([*ready(2), LEAVING], desired=2), "2 of 2 workers; 1 is leaving."),
        (snapshot(ready(12), desired=9), "9 of 9 workers; 3 more are to be removed."),
        (snapshot([*ready(2), LEAVING], desired=1), "1 of 1 worker; 1 more is to be removed, 1 is leaving."),
        (snapshot([*ready(2), member(starting("a"))], desired=2), "2 of 2 workers; 1 starts, 1 more is to be removed."),
        (snapshot(ready(2), desired=5), "2 of 5 workers; 3 are being created."),
        (snapshot([*ready(1), member(starting("a")), member(starting("b"))], desired=3), "1 of 3 workers; 2 start."),
        (snapshot([], head=None), "The head is being created; workers wait for it."),
        (
            snapshot([], head=member(head_pod("c", node="", phase="Pending", ready=False))),
            "The head waits for a node; workers wait for it.",
        ),
        (
            snapshot([member(starting("a"))], head=member(head_pod("c", ready=False))),
            "The head is starting; 0 of 1 worker; 1 waits for the head.",
        ),
        (snapshot(ready(2), autoscales=False, minimum=3), "2 of 3 workers; 1 is being created."),
        (snapshot(ready(4), desired=30), "4 of 20 workers; 16 are being created."),
    ],
)  # fmt: skip
def test_sentence_counts_working_workers_and_reasons_of_waiting_others(seen: ClusterSnapshot, sentence: str) -> None:
    assert summary(seen) == sentence


def ended(exit_code: int, reason: str = "Error", *, seconds: float = 0) -> RawObject:
    return {
        "terminated": {"exitCode": exit_code, "reason": reason, "finishedAt": stamp(NOW - timedelta(seconds=seconds))}
    }


def no_volume(pod: RawObject) -> Member:
    unbound = condition("PodScheduled", "False", "Unschedulable", 'persistentvolumeclaim "data" not found')
    pod["status"]["conditions"] = [unbound]
    return member(pod)


def killed(name: str, restarts: int) -> Member:
    again = container_status(ready=True, restarts=restarts, lastState=ended(137, "OOMKilled"))
    return member(worker_pod("c", name, statuses=[again]))


def crashing(name: str, *, code: int = 1, restarts: int = 2) -> Member:
    waits = container_status(
        state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=ended(code), restarts=restarts
    )
    return member(worker_pod("c", name, ready=False, statuses=[waits]))


def unpullable(name: str, image: str) -> Member:
    waits = container_status(state={"waiting": {"reason": "ErrImagePull", "message": "not found"}})
    pod = worker_pod(
        "c", name, ready=False, phase="Pending", containers=[{"name": "run", "image": image}], statuses=[waits]
    )
    return member(pod)


def crashed_and_starting(name: str, *, exit_code: int = 1, seconds: float = 5) -> Member:
    """A worker that runs again since its end so long ago, and is not ready yet."""
    began = {"running": {"startedAt": stamp(NOW - timedelta(seconds=seconds - 1))}}
    again = container_status(state=began, lastState=ended(exit_code, seconds=seconds), restarts=1)
    return member(worker_pod("c", name, ready=False, statuses=[again]))


def restarted_head() -> Member:
    state = {"running": {"startedAt": stamp(NOW - timedelta(seconds=4))}}
    return head(statuses=[container_status(state=state, lastState=ended(1, seconds=5), restarts=1)])


def head(**fields: Any) -> Member:
    return member(head_pod("c", ready=False, **fields))


def head_in(state: RawObject) -> Member:
    return head(statuses=[container_status(state=state)])


def head_that_pulls() -> Member:
    pod = head_pod("c", ready=False, statuses=[container_status(state={"waiting": {"reason": "ContainerCreating"}})])
    return member(pod, event(pod, "Pulling", 'Pulling image "python:3.11"'))


def busy(maximum: int, *, cpu: int = 97, memory: int = 0) -> Autoscaler:
    """Of memory it measures only what is more than nothing."""
    raw = autoscaler("c", maximum=maximum, current=maximum, desired=maximum, cpu=cpu)
    if memory:
        target = {"name": "memory", "target": {"averageUtilization": 80}}
        raw["spec"]["metrics"].append({"type": "Resource", "resource": target})
        measured = {"name": "memory", "current": {"averageUtilization": memory}}
        raw["status"]["currentMetrics"].append({"type": "Resource", "resource": measured})
    return decode(raw, Autoscaler)


def wanted(*numbers: int, every: int = 60) -> tuple[tuple[datetime, int], ...]:
    """The last of them `every` seconds ago."""
    return tuple(
        (NOW - timedelta(seconds=every * (len(numbers) - place)), number) for place, number in enumerate(numbers)
    )


FULL_DISK = 'Container run exceeded its local ephemeral storage limit "20Gi". '
EVICTED = member(worker_pod("c", "e", ready=False, phase="Failed", status={"reason": "Evicted", "message": FULL_DISK}))


def at_maximum() -> Member:
    full = condition("PodScheduled", "False", "Unschedulable", "0/6 nodes are available: 6 Insufficient cpu.")
    waiting = waiting_worker("c", "w", conditions=[full])
    return member(
        waiting, event(waiting, "NotTriggerScaleUp", "pod didn't trigger scale-up: 2 max node group size reached")
    )


SITUATIONS = {
    "all is well": snapshot(ready(3), desired=3),
    "the head waits for its node": snapshot([], head=head(node="", phase="Pending")),
    "the head pulls": snapshot([], head=head_that_pulls()),
    "the head waits for its volume": snapshot([], head=no_volume(head_pod("c", node="", phase="Pending", ready=False))),
    "the head crashed": snapshot(ready(1), desired=1, head=head_in(ended(1))),
    "the head has ended": snapshot(ready(1), desired=1, head=head(phase="Succeeded")),
    "the head has ended, no worker is there": snapshot([], head=head(phase="Succeeded")),
    "the head leaves": snapshot(ready(1), desired=1, head=head(deletionTimestamp=stamp(NOW))),
    "the head starts again beside a worker that starts": snapshot(
        [*ready(1), member(starting("a"))], desired=2, head=head_in({"running": {"startedAt": stamp(NOW)}})
    ),
    "one starts": snapshot([*ready(1), member(starting("a"))], desired=2),
    "one waits for its volume, one for its image": snapshot(
        [*ready(1), no_volume(waiting_worker("c", "a")), pulling("b")], desired=3
    ),
    "two wait for the head": snapshot([member(starting("a")), member(starting("b"))], desired=2, head=head()),
    "each waits for another thing": snapshot(
        [growing("a"), growing("b", "1->4"), member(waiting_worker("c", "d")), member(starting("e")), crashing("f"), LEAVING], desired=9,
    ),
    "one was out of memory": snapshot([killed("a", 1)], desired=1),
    "two were out of memory": snapshot([killed("a", 1), killed("b", 2)], desired=2),
    "one crashes": snapshot([*ready(1), crashing("a")], desired=2),
    "two crash": snapshot([*ready(1), crashing("a"), crashing("b")], desired=3),
    "two crash for one reason, and one for another": snapshot(
        [crashing("a", code=137), crashing("b"), crashing("d", restarts=9)], desired=3
    ),
    "two images cannot be pulled": snapshot([unpullable("a", "dask:1"), unpullable("b", "dask:2"), unpullable("d", "dask:2")], desired=3),
    "the head crashed and starts again": snapshot(ready(1), desired=1, head=restarted_head()),
    "one crashed and starts again": snapshot([*ready(1), crashed_and_starting("a")], desired=2),
    "one that leaves had crashed": snapshot(
        [*ready(1), member(worker_pod("c", "a", ready=False, deletionTimestamp=stamp(NOW - timedelta(minutes=9))))], desired=1
    ),
    "one worker is all there may be": snapshot(ready(1), maximum=1, autoscaler=busy(1)),
    "two are not enough": snapshot(ready(2), maximum=2, autoscaler=busy(2, memory=90)),
    "one that leaves is one more": snapshot([*ready(2), LEAVING], maximum=2, autoscaler=busy(2)),
    "one was evicted, one finds its pool at the maximum": snapshot([*ready(2), EVICTED, at_maximum()], desired=4),
    "the number turns": snapshot(ready(1), desired=1, wanted_before=wanted(1, 2, 1, 2, 1)),
}  # fmt: skip


def test_in_each_situation_a_cluster_is_told_as_stored() -> None:
    lines: list[str] = []
    for name, seen in SITUATIONS.items():
        lines += [f"# {name}", summary(seen), *(as_text(diagnosis) for diagnosis in explain_cluster(seen, now=NOW))]
    assert_golden("words-of-clusters", "\n".join(lines), ending="txt")


def test_ordinary_start_is_fine_and_restarted_head_is_not() -> None:
    head = member(head_pod("c", ready=False))
    assert codes(snapshot([], head=head)) == []
    assert codes(snapshot(ready(1), desired=1, head=head)) == ["head_down"], "workers were there already"


@pytest.mark.parametrize(("exit_code", "expected"), [(0, []), (1, ["workers_failing"])])
@pytest.mark.parametrize("is_ready", [True, False], ids=["ready", "starting"])
def test_worker_that_only_followed_its_head_is_no_trouble(exit_code: int, expected: list[str], is_ready: bool) -> None:
    state = {"running": {"startedAt": stamp(NOW - timedelta(seconds=19))}}
    last = ended(exit_code, "Completed", seconds=20)
    status = container_status(ready=is_ready, state=state, restarts=1, lastState=last)
    again = member(worker_pod("c", "a", ready=is_ready, statuses=[status]))
    assert codes(snapshot([*ready(1), again], desired=2)) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(-61, ["workers_failing"]), (-60, []), (80, []), (81, ["workers_failing"])]
)
def test_worker_failed_while_its_head_started_is_no_trouble(seconds: int, expected: list[str]) -> None:
    began, up = NOW - timedelta(minutes=3), NOW - timedelta(minutes=3) + timedelta(seconds=20)
    running = container_status(ready=True, state={"running": {"startedAt": stamp(began)}})
    head = member(head_pod("c", statuses=[running], conditions=[condition("Ready", "True", at=up)]))
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": stamp(began + timedelta(seconds=seconds))}}
    again = member(worker_pod("c", "a", statuses=[container_status(ready=True, restarts=1, lastState=ended)]))
    assert codes(snapshot([again], desired=1, head=head)) == expected
    status = container_status(state={"running": {"startedAt": stamp(NOW)}}, restarts=1, lastState=ended)
    unready_worker = member(worker_pod("c", "b", ready=False, statuses=[status]))
    assert codes(snapshot([*ready(1), unready_worker], desired=2, head=head)) == expected
    assert codes(snapshot([again], desired=1, head=None)) == ["workers_failing"]
    unready = member(head_pod("c", statuses=[running], conditions=[condition("Ready", "False", at=up)]))
    assert "workers_failing" in codes(snapshot([again], desired=1, head=unready)), "it is not up yet"
    unheard = member(head_pod("c", statuses=[], conditions=[condition("Ready", "True", at=up)]))
    assert codes(snapshot([again], desired=1, head=unheard)) == ["workers_failing"], "nobody says when it began"


def test_busy_cluster_at_its_maximum_asks_for_higher_one() -> None:
    assert codes(snapshot(ready(3), maximum=3, autoscaler=busy(3))) == ["at_maximum"]
    assert codes(snapshot(ready(2), maximum=3, autoscaler=busy(3))) == [], "not all of them work yet"
    assert codes(snapshot(ready(3), maximum=3, autoscaler=busy(3, cpu=86))) == [], (
        "within the tolerance Kubernetes would not grow either"
    )


def test_demand_driven_cluster_says_that_maximum_is_too_low() -> None:
    full = on_demand(maximum=3, current=3, each="133334m")
    (diagnosis,) = explain_cluster(snapshot(ready(3), maximum=3, autoscaler=full), now=NOW)
    assert diagnosis.code == "at_maximum"
    assert "the framework would like to have 400 workers." in diagnosis.sentence
    enough = on_demand(maximum=20, current=20, each="1050m")
    assert codes(snapshot(ready(20), autoscaler=enough)) == [], "Kubernetes would not grow for 21 instead of 20"


def test_thrashing_cluster_asks_for_a_longer_wait() -> None:
    assert codes(snapshot(ready(1), desired=1, wanted_before=wanted(1, 4, 1, 4, 1))) == ["thrashing"]
    assert codes(snapshot(ready(1), desired=1, wanted_before=wanted(1, 4, 1, 4, 1, every=180))) == ["thrashing"]
    assert codes(snapshot(ready(1), desired=1, wanted_before=wanted(1, 4, 1, 4, 1, every=181))) == []
    assert codes(snapshot(ready(1), desired=1, wanted_before=wanted(1, 2, 4, 6, 6, 3, 1))) == []
    assert codes(snapshot(ready(1), desired=1, wanted_before=wanted(1, 4, 1, 4, 1, every=600))) == [], (
        "over an hour that is life"
    )


def test_problems_come_before_notes() -> None:
    crashed = head_in(ended(1))
    assert codes(snapshot(ready(2), maximum=2, autoscaler=busy(2), head=crashed)) == ["head_down", "at_maximum"]


def order_of(*workers: RawObject) -> list[str]:
    ordered = deletion_order([member(worker) for worker in workers], now=NOW)
    return [worker.pod.metadata.name.rpartition("-")[2] for worker in ordered]


def test_removal_order_is_that_of_kubernetes() -> None:
    assert order_of(
        worker_pod("c", "dear", cost=9),
        worker_pod("c", "cheap", cost=-3, node="node-b"),
        worker_pod("c", "young", cost=-3, node="node-b", created=NOW),
        starting("unready", cost=50),
        worker_pod("c", "pulls", cost=60, phase="Pending", ready=False),
        waiting_worker("c", "nowhere", cost=99),
        worker_pod("c", "gone", deletionTimestamp=stamp(NOW)),
    ) == ["nowhere", "pulls", "unready", "young", "cheap", "dear"]


def test_removal_prefers_workers_that_share_their_node() -> None:
    assert order_of(
        worker_pod("c", "alone", node="node-b", created=NOW), worker_pod("c", "a1"), worker_pod("c", "a2")
    ) == ["a1", "a2", "alone"]


def test_removal_prefers_recently_ready_or_restarted_on_equal_nodes() -> None:
    def ready_at(name: str, minute: float, *, restarts: int = 0) -> RawObject:
        at = MOMENT + timedelta(minutes=minute)
        statuses = [container_status(ready=True, restarts=restarts)]
        return worker_pod("c", name, statuses=statuses, conditions=[condition("Ready", "True", at=at)])

    assert order_of(ready_at("long", 0), ready_at("b", 4.9)) == ["b", "long"]
    assert order_of(ready_at("a", 0), ready_at("b", 0.1)) == ["a", "b"], "about the same: Kubernetes goes by the uid"
    assert order_of(ready_at("a", 0), ready_at("again", 0, restarts=2)) == ["again", "a"]


def test_worker_whose_node_is_silent_was_never_restarted() -> None:
    bound = worker_pod("c", "bound", phase="Pending", ready=False)
    assert order_of(bound, worker_pod("c", "young", phase="Pending", ready=False, created=NOW)) == ["young", "bound"]
    heard = worker_pod("c", "heard", phase="Pending", ready=False, created=NOW, statuses=[container_status()])
    assert order_of(bound, heard) == ["heard", "bound"]


def test_a_cost_that_is_no_number_counts_as_none() -> None:
    odd = worker_pod("c", "odd", annotations={POD_DELETION_COST: "dear"})
    assert order_of(worker_pod("c", "a", cost=1), odd, worker_pod("c", "b", cost=-1)) == ["b", "odd", "a"]


ROW = EvidenceRow(2, ("n1", "n2"), "full", "for_now")
WHY = Diagnosis("busy", "Busy.", "wait", "you", "Wait.", ("said",), (ROW,), "executions", True)


def waiting(name: str, sentence: str, severity: Severity = "wait") -> Member:
    return replace(member(waiting_worker("c", name)), diagnosis=replace(WHY, sentence=sentence, severity=severity))


def test_waiting_worker_is_told_with_its_table_and_link() -> None:
    diagnoses = explain_cluster(snapshot([waiting("a", "Busy.")]), now=NOW)
    assert diagnoses == (replace(WHY, code="workers_pending", sentence="1 worker: Busy."),)


def test_waiting_head_is_told_with_its_table_and_link() -> None:
    head = replace(member(head_pod("c", node="", phase="Pending", ready=False)), diagnosis=WHY)
    diagnoses = explain_cluster(snapshot([], head=head), now=NOW)
    assert diagnoses == (replace(WHY, code="head_down", sentence="The head is not up: Busy."),)


def test_workers_are_grouped_by_reason_as_stored() -> None:
    """How long and how often, or the worker's own name, make no other reason; the rarest of many are only counted."""
    six = [f"Reason {number}." for number in range(6)]
    own = "No claim cluster-c-worker-6468bd54f7-{}-tmp."
    groups = {
        "two pools": ["Pool x is full.", "Pool y is full.", "Pool y is full."],
        "how long": ["Busy for 5 minutes.", "Busy for 1 minute."],
        "how often": ["It ends (2 restarts): 1.", "It ends (1 restart): 1."],
        "growing, by steps": ["Grows (from 1 to 2 of at most 5).", "Grows (from 1 to 3 of at most 5)."],
        "growing, by one step": ["Grows (from 1 to 2 of at most 5)."] * 2,
        "their own names": [own.format("0"), own.format("1")],
        "six reasons": six,
        "seven reasons, one of them twice": [*six, "Reason 5.", "Reason 6."],
    }
    blocks = []
    for name, reasons in groups.items():
        workers = [waiting(str(at), reason, "problem" if at == 7 else "wait") for at, reason in enumerate(reasons)]
        diagnoses = explain_cluster(snapshot(workers), now=NOW)
        blocks.append(f"# {name}: {', '.join(reasons)}")
        blocks += [f"{each.code}, {each.severity} for {each.who}: {each.sentence}" for each in diagnoses]
    assert_golden("words-of-workers-by-reason", "\n".join(blocks), ending="txt")
