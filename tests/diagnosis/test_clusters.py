"""What a person is told about a cluster: the sentence about its workers, and what stands in its way, case by case."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from grid.diagnosis.autoscalers import explain_autoscaler, loads
from grid.diagnosis.clusters import (
    ClusterSnapshot,
    Member,
    deletion_order,
    explain_cluster,
    summary,
)
from grid.diagnosis.pods import explain_pod
from grid.kube.objects import Autoscaler, Event, Pod, RawObject
from grid.labels import POD_DELETION_COST
from tests.dashboard.clustering import autoscaler, head_pod, waiting_worker, worker_pod
from tests.support import builders
from tests.support.builders import MOMENT, condition, container_status, decode, stamp

NOW = MOMENT + timedelta(minutes=5)
UNSCHEDULED = condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")


def member(pod: RawObject, *events: RawObject) -> Member:
    decoded = decode(pod, Pod)
    told = tuple(decode(one, Event) for one in events)
    return Member(decoded, explain_pod(decoded, told, now=NOW), told)


def event(pod: RawObject, reason: str, message: str) -> RawObject:
    return builders.event(f"{pod['metadata']['name']}-{reason}", about=pod, reason=reason, message=message, at=NOW)


def growing(name: str, size: str = "1->3") -> Member:
    pod = waiting_worker("c", name, conditions=[UNSCHEDULED])
    return member(pod, event(pod, "TriggeredScaleUp", f"pod triggered scale-up: [{{default {size} (max: 5)}}]"))


def pulling(name: str) -> Member:
    waits = container_status(state={"waiting": {"reason": "ContainerCreating"}})
    pod = worker_pod("c", name, ready=False, phase="Pending", statuses=[waits])
    return member(pod, event(pod, "Pulling", 'Pulling image "dask:1"'))


def starting(name: str, **fields: Any) -> RawObject:
    return worker_pod(
        "c", name, ready=False, statuses=[container_status(state={"running": {"startedAt": stamp(NOW)}})], **fields
    )


def ready(count: int, first: int = 0) -> list[Member]:
    return [member(worker_pod("c", f"r{number:03}")) for number in range(first, first + count)]


HEAD = member(head_pod("c"))
LEAVING = member(worker_pod("c", "gone", deletionTimestamp=stamp(NOW + timedelta(seconds=20))))


def look(workers: Sequence[Member], *, desired: int = 0, head: Member | None = HEAD, **fields: Any) -> ClusterSnapshot:
    values: dict[str, Any] = {"minimum": 1, "maximum": 20, "autoscales": True, "ready_nodes": 1, **fields}
    if "autoscaler" not in values and desired:
        values["autoscaler"] = decode(autoscaler("c", current=desired, desired=desired, maximum=20), Autoscaler)
    return ClusterSnapshot(head=head, workers=tuple(workers), **values)


def scaler(*conditions: RawObject, **fields: Any) -> Autoscaler:
    return decode(autoscaler("c", conditions=list(conditions) or None, **fields), Autoscaler)


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (
            look([*ready(6), *map(growing, "abcdefgh"), pulling("i"), pulling("j")], desired=16),
            "6 of 16 workers; 8 wait for node 2 of 3, 2 for image pull.",
        ),
        (look(ready(3), desired=3), "3 of 3 workers."),
        (look(ready(1), desired=1), "1 of 1 worker."),
        (look([*ready(1), growing("a", "1->2")], desired=2), "1 of 2 workers; 1 waits for node 2 of 2."),
        (look([growing("a", "1->2")], desired=2, ready_nodes=2), "0 of 2 workers; 1 waits for a node, 1 is being created."),
        (look([member(waiting_worker("c", "a"))]), "0 of 1 worker; 1 waits for a node."),
        (look([*ready(2), LEAVING], desired=2), "2 of 2 workers; 1 is leaving."),
        (look(ready(2), desired=5), "2 of 5 workers; 3 are being created."),
        (look([*ready(1), member(starting("a")), member(starting("b"))], desired=3), "1 of 3 workers; 2 start."),
        (look([], head=None), "The head is being created; workers wait for it."),
        (look([], head=member(head_pod("c", node="", phase="Pending", ready=False))), "The head waits for a node; workers wait for it."),
        (
            look([member(starting("a"))], head=member(head_pod("c", ready=False))),
            "The head is starting; 0 of 1 worker; 1 waits for the head.",
        ),
        (look(ready(2), autoscales=False, minimum=3), "2 of 3 workers; 1 is being created."),
        (look(ready(4), desired=30), "4 of 20 workers; 16 are being created."),
    ],
)  # fmt: skip
def test_the_sentence_says_how_many_work_and_what_the_others_wait_for(seen: ClusterSnapshot, sentence: str) -> None:
    assert summary(seen) == sentence


def codes(seen: ClusterSnapshot) -> list[str]:
    return [one.code for one in explain_cluster(seen, now=NOW)]


def test_of_a_cluster_that_is_well_nothing_is_said() -> None:
    assert codes(look(ready(3), desired=3)) == []


def test_a_head_that_is_not_up_comes_first_with_the_reason_of_its_pod() -> None:
    crashed = container_status(
        restarts=3, state={"waiting": {"reason": "CrashLoopBackOff"}},
        lastState={"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": stamp(NOW)}},
    )  # fmt: skip
    head = member(head_pod("c", ready=False, statuses=[crashed]))
    (found,) = explain_cluster(look(ready(2), desired=2, head=head), now=NOW)
    assert found.code == "head_down"
    assert found.severity == "problem"
    assert found.sentence.startswith("The head is not up: The program keeps crashing")
    assert found.sentence.endswith("Workers connect to it again by themselves when it is.")


def test_an_ordinary_start_is_no_trouble_and_a_head_that_starts_again_is() -> None:
    head = member(head_pod("c", ready=False))
    assert codes(look([], head=head)) == []
    assert codes(look(ready(1), desired=1, head=head)) == ["head_down"], "workers were there already"


def test_workers_that_wait_for_a_node_are_one_line_for_each_reason() -> None:
    (found,) = explain_cluster(look([*ready(1), growing("a"), growing("b")], desired=3), now=NOW)
    assert (found.code, found.severity) == ("workers_pending", "wait")
    assert found.sentence.startswith("2 workers: A new node is being started for you")
    assert any("triggered scale-up" in line for line in found.evidence)


def test_a_worker_whose_image_cannot_be_fetched_is_the_admins() -> None:
    broken = container_status(state={"waiting": {"reason": "ImagePullBackOff", "message": "not found"}})
    failing = member(worker_pod("c", "a", ready=False, phase="Pending", statuses=[broken]))
    (found,) = explain_cluster(look([*ready(1), failing], desired=2), now=NOW)
    assert (found.code, found.who) == ("workers_failing", "admin")


def test_workers_that_died_of_memory_are_told_to_take_more_of_it() -> None:
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": stamp(NOW)}}
    again = container_status(ready=True, restarts=2, lastState=killed)
    seen = look([member(worker_pod("c", name, statuses=[again])) for name in "ab"], desired=2)
    (found,) = explain_cluster(seen, now=NOW)
    assert (found.code, found.who) == ("workers_out_of_memory", "you")
    assert found.sentence.startswith("2 workers were ended for using more memory")
    assert "more memory" in found.next_step
    assert "4 restarts" in found.evidence[0]


@pytest.mark.parametrize(("exit_code", "expected"), [(0, []), (1, ["workers_failing"])])
def test_a_worker_that_only_followed_its_head_is_no_trouble(exit_code: int, expected: list[str]) -> None:
    ended = {
        "terminated": {"exitCode": exit_code, "reason": "Completed", "finishedAt": stamp(NOW - timedelta(seconds=20))}
    }
    again = container_status(ready=True, restarts=1, lastState=ended)
    assert codes(look([member(worker_pod("c", "a", statuses=[again]))], desired=1)) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-70, ["workers_failing"]), (-50, []), (10, []), (70, []), (90, ["workers_failing"])],
)
def test_a_worker_that_failed_while_its_head_started_is_no_trouble(seconds: int, expected: list[str]) -> None:
    began, up = NOW - timedelta(minutes=3), NOW - timedelta(minutes=3) + timedelta(seconds=20)
    running = container_status(ready=True, state={"running": {"startedAt": stamp(began)}})
    head = member(head_pod("c", statuses=[running], conditions=[condition("Ready", "True", at=up)]))
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": stamp(began + timedelta(seconds=seconds))}}
    again = member(worker_pod("c", "a", statuses=[container_status(ready=True, restarts=1, lastState=ended)]))
    assert codes(look([again], desired=1, head=head)) == expected
    assert codes(look([again], desired=1, head=None)) == ["workers_failing"]


NO_ANSWER = "unable to get metrics for resource cpu: no metrics returned from resource metrics API"
NO_SERVER = (
    "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for resource cpu: "
    "unable to fetch metrics from resource metrics API: the server could not find the requested resource"
)


@pytest.mark.parametrize(
    ("kind", "reason", "message", "code", "who"),
    [
        ("ScalingActive", "FailedGetResourceMetric", NO_SERVER, "metrics_missing", "operator"),
        ("ScalingActive", "FailedGetResourceMetric", NO_ANSWER, "metrics_missing", "operator"),
        ("ScalingActive", "FailedGetResourceMetric",
         "did not receive metrics for targeted pods (pods might be unready)", "metrics_missing", "operator"),
        ("ScalingActive", "FailedGetResourceMetric", "missing request for cpu in container run of Pod w", "requests_missing", "admin"),
        ("ScalingActive", "FailedGetExternalMetric", "unable to get external metric", "demand_missing", "operator"),
        ("ScalingActive", "AmbiguousSelector", "pods by selector app=web are controlled by multiple HPAs", "scaling_inactive",
         "operator"),
        ("AbleToScale", "FailedGetScale", 'deployments.apps "absent" not found', "cannot_scale", "operator"),
    ],
)  # fmt: skip
def test_an_autoscaler_that_cannot_act_says_why(kind: str, reason: str, message: str, code: str, who: str) -> None:
    broken = scaler(condition(kind, "False", reason, message))
    found = explain_autoscaler(broken, ready_since=None, now=NOW)
    assert found is not None
    assert (found.code, found.who, found.severity) == (code, who, "problem")
    assert reason in found.evidence[0]
    assert codes(look(ready(1), autoscaler=broken)) == [code]


@pytest.mark.parametrize(
    ("message", "failing", "ready", "code"),
    [
        ("did not receive metrics for targeted pods (pods might be unready)", 30, 30, "not_measured_yet"),
        ("did not receive metrics for targeted pods (pods might be unready)", 600, 30, "not_measured_yet"),
        ("did not receive metrics for targeted pods (pods might be unready)", 600, 300, "metrics_missing"),
        (NO_ANSWER, 600, 1, "not_measured_yet"),
        (NO_ANSWER, 600, 300, "metrics_missing"),
        (NO_SERVER, 600, 1, "metrics_missing"),
    ],
)
def test_a_worker_of_a_moment_ago_is_measured_soon(message: str, failing: int, ready: int, code: str) -> None:
    """However long the autoscaler has failed before there was anything to measure."""
    at, ready_since = NOW - timedelta(seconds=failing), NOW - timedelta(seconds=ready)
    young = scaler(condition("ScalingActive", "False", "FailedGetResourceMetric", message, at=at))
    found = explain_autoscaler(young, ready_since=ready_since, now=NOW)
    assert found is not None
    assert (found.code, found.severity) == (code, "wait" if code == "not_measured_yet" else "problem")
    pod = worker_pod("c", "a")
    for one in pod["status"]["conditions"]:
        one["lastTransitionTime"] = stamp(ready_since)
    assert codes(look([member(pod)], desired=1, autoscaler=young)) == [code]


def test_without_a_ready_worker_missing_measurements_are_no_news() -> None:
    broken = scaler(condition("ScalingActive", "False", "FailedGetResourceMetric", NO_SERVER))
    assert "metrics_missing" not in codes(look([member(starting("a"))], autoscaler=broken))


def test_a_cluster_of_fixed_size_is_not_asked_for_an_autoscaler() -> None:
    broken = scaler(condition("ScalingActive", "False", "FailedGetResourceMetric", NO_SERVER))
    assert codes(look(ready(1), autoscaler=broken, autoscales=False)) == []


def test_all_that_may_be_and_still_too_busy_asks_for_a_higher_maximum() -> None:
    busy = decode(autoscaler("c", maximum=3, current=3, desired=3, cpu=97), Autoscaler)
    (found,) = explain_cluster(look(ready(3), maximum=3, autoscaler=busy), now=NOW)
    assert found.code == "at_maximum"
    assert "CPU 97 %, target 80 %" in found.sentence
    assert "Raise the maximum" in found.next_step
    assert codes(look(ready(2), maximum=3, autoscaler=busy)) == [], "not all of them work yet"
    calm = decode(autoscaler("c", maximum=3, current=3, desired=3, cpu=86), Autoscaler)
    assert codes(look(ready(3), maximum=3, autoscaler=calm)) == [], (
        "within the tolerance Kubernetes would not grow either"
    )


def on_demand(*, maximum: int, current: int, each: str = "") -> Autoscaler:
    """It follows nothing but what the framework would like to have; `each` is what Kubernetes says of that for each worker."""
    raw = autoscaler("c", maximum=maximum, current=current, desired=current)
    metric = {"metric": {"name": "compute_grid_wanted_workers"}}
    target = {"type": "AverageValue", "averageValue": "1"}
    raw["spec"]["metrics"] = [{"type": "External", "external": {**metric, "target": target}}]
    measured = [{"type": "External", "external": {**metric, "current": {"averageValue": each}}}] if each else []
    raw["status"]["currentMetrics"] = measured
    return decode(raw, Autoscaler)


def test_what_the_framework_would_like_to_have_is_a_load_as_well() -> None:
    (load,) = loads(on_demand(maximum=2, current=3, each="133334m"), maximum=3)
    assert (load.now, load.against, load.is_over) == ("400 workers", "maximum 3 workers", True)
    (load,) = loads(on_demand(maximum=3, current=2, each="500m"), maximum=3)
    assert (load.now, load.is_over) == ("1 worker", False)
    (load,) = loads(on_demand(maximum=3, current=2), maximum=3)
    assert (load.now, load.is_over) == ("not known", False)
    (load,) = loads(on_demand(maximum=3, current=2, each="many"), maximum=3)
    assert load.current is None


def test_a_cluster_that_follows_demand_alone_says_that_its_maximum_is_too_low() -> None:
    full = on_demand(maximum=3, current=3, each="133334m")
    (found,) = explain_cluster(look(ready(3), maximum=3, autoscaler=full), now=NOW)
    assert found.code == "at_maximum"
    assert "the framework would like to have 400 workers." in found.sentence
    enough = on_demand(maximum=20, current=20, each="1050m")
    assert codes(look(ready(20), autoscaler=enough)) == [], "Kubernetes would not grow for 21 instead of 20"


def test_a_number_that_turns_and_turns_asks_for_a_longer_wait() -> None:
    def before(*wanted: int, every: int = 60) -> tuple[tuple[Any, int], ...]:
        return tuple((NOW - timedelta(seconds=every * (len(wanted) - place)), one) for place, one in enumerate(wanted))

    assert codes(look(ready(1), desired=1, wanted_before=before(1, 4, 1, 4, 1))) == ["thrashing"]
    assert codes(look(ready(1), desired=1, wanted_before=before(1, 2, 4, 6, 6, 3, 1))) == []
    assert codes(look(ready(1), desired=1, wanted_before=before(1, 4, 1, 4, 1, every=600))) == [], (
        "over an hour that is life"
    )


def test_problems_come_before_notes() -> None:
    busy = decode(autoscaler("c", maximum=2, current=2, desired=2, cpu=97), Autoscaler)
    head = member(head_pod("c", ready=False, statuses=[container_status(
        state={"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": stamp(NOW)}})]))  # fmt: skip
    assert codes(look(ready(2), maximum=2, autoscaler=busy, head=head)) == ["head_down", "at_maximum"]


def order_of(*workers: RawObject) -> list[str]:
    found = deletion_order([member(one) for one in workers], now=NOW)
    return [one.pod.metadata.name.rpartition("-")[2] for one in found]


def test_who_goes_first_is_who_kubernetes_would_choose() -> None:
    assert order_of(
        worker_pod("c", "dear", cost=9),
        worker_pod("c", "cheap", cost=-3, node="node-b"),
        worker_pod("c", "young", cost=-3, node="node-b", created=NOW),
        starting("unready", cost=50),
        worker_pod("c", "pulls", cost=60, phase="Pending", ready=False),
        waiting_worker("c", "nowhere", cost=99),
        worker_pod("c", "gone", deletionTimestamp=stamp(NOW)),
    ) == ["nowhere", "pulls", "unready", "young", "cheap", "dear"]


def test_of_equal_workers_goes_first_who_shares_its_node_with_most() -> None:
    assert order_of(
        worker_pod("c", "alone", node="node-b", created=NOW), worker_pod("c", "a1"), worker_pod("c", "a2")
    ) == ["a1", "a2", "alone"]


def test_of_workers_on_equal_nodes_goes_first_who_is_ready_for_a_shorter_time_or_was_restarted() -> None:
    def ready_at(name: str, minute: float, *, restarts: int = 0) -> RawObject:
        at = MOMENT + timedelta(minutes=minute)
        statuses = [container_status(ready=True, restarts=restarts)]
        return worker_pod("c", name, statuses=statuses, conditions=[condition("Ready", "True", at=at)])

    assert order_of(ready_at("long", 0), ready_at("b", 4.9)) == ["b", "long"]
    assert order_of(ready_at("a", 0), ready_at("b", 0.1)) == ["a", "b"], "about the same: Kubernetes goes by the uid"
    assert order_of(ready_at("a", 0), ready_at("again", 0, restarts=2)) == ["again", "a"]


def test_a_cost_that_is_no_number_counts_as_none() -> None:
    odd = worker_pod("c", "odd", annotations={POD_DELETION_COST: "dear"})
    assert order_of(worker_pod("c", "a", cost=1), odd, worker_pod("c", "b", cost=-1)) == ["b", "odd", "a"]


def test_loads_name_what_is_measured_with_its_target() -> None:
    assert [load.words for load in loads(scaler(cpu=45), maximum=5)] == ["CPU 45 %, target 80 %"]
    assert [load.words for load in loads(scaler(cpu=None), maximum=5)] == ["CPU not known, target 80 %"]
