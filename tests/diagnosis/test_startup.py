"""The phases of a start: from what is known, and never more than that."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.diagnosis.startup import Phase, StartFacts, StartPhases, start_phases
from grid.diagnosis.startupevents import go_seconds, start_events
from grid.kube.objects import Event, Node, Pod
from tests.support.builders import MOMENT, condition, container_status, decode, event as kube_event, node, pod, stamp

PROBE = {"tcpSocket": {"port": 8888}}
IMAGE = "registry.example/lab:4.6"
PULLED = f'Successfully pulled image "{IMAGE}" in 47.1s (48s including waiting). Image size: 1800000000 bytes.'
PRESENT = f'Container image "{IMAGE}" already present on machine'


def at(seconds: float) -> datetime:
    return MOMENT + timedelta(seconds=seconds)


def event(reason: str, seconds: float, message: str = "", *, field: str = "spec.containers{run}", **more: Any) -> Event:
    """An event that the node's own clock and the API server's date alike."""
    when = stamp(at(seconds))
    raw = kube_event(f"{reason}-{seconds}-{field}", reason=reason, message=message, at=at(seconds))
    raw |= {"firstTimestamp": when, "lastTimestamp": when, "count": 1, **more}
    raw["involvedObject"] = {"kind": "Pod", "name": "workspace-a", "fieldPath": field}
    return decode(raw, Event)


def started_pod(
    *,
    created: float = 1,
    bound: float | None = 1,
    started: float | None = 52,
    ready: float | None = 55,
    inits: tuple[tuple[float, float], ...] = (),
    probe: bool = True,
    restarts: int = 0,
) -> Pod:
    conditions = [condition("PodScheduled", "True", at=at(bound))] if bound is not None else []
    if ready is not None:
        conditions.append(condition("Ready", "True", at=at(ready)))
    state = {"running": {"startedAt": stamp(at(started))}} if started is not None else {"waiting": {"reason": "x"}}
    raw = pod(
        "workspace-a",
        node="node-1" if bound is not None else "",
        created=at(created),
        conditions=conditions,
        statuses=[container_status(state=state, restarts=restarts)],
        spec={
            "containers": [{"name": "run", "image": IMAGE, **({"readinessProbe": PROBE} if probe else {})}],
            "initContainers": [{"name": f"init-{number}", "image": IMAGE} for number, _ in enumerate(inits)],
        },
    )
    raw["status"]["initContainerStatuses"] = [
        container_status(
            f"init-{number}",
            state={"terminated": {"exitCode": 0, "startedAt": stamp(at(begin)), "finishedAt": stamp(at(end))}},
        )
        for number, (begin, end) in enumerate(inits)
    ]
    return decode(raw, Pod)


COLD = [event("Scheduled", 1), event("Pulling", 3), event("Pulled", 51, PULLED), event("Started", 52)]


def warm(after: float) -> list[Event]:
    """A start from an image that is there, so many seconds later."""
    return [event("Scheduled", 1 + after), event("Pulled", 2 + after, PRESENT), event("Started", 3 + after)]


def phases(
    pod: Pod | None,
    events: list[Event],
    *,
    until: float = 55.4,
    ran: bool = True,
    node: Node | None = None,
    admitted: float | None = 0.5,
    is_cluster: bool = False,
    has_cluster: bool = False,
) -> StartPhases:
    return start_phases(
        StartFacts(
            requested_at=at(0),
            admitted_at=None if admitted is None else at(admitted),
            until=at(until),
            ran=ran,
            pod=pod,
            events=start_events(events, pod),
            node=node,
            is_cluster=is_cluster,
            has_cluster=has_cluster,
        )
    )


def merged(start: StartPhases) -> tuple[str, float]:
    names, seconds = start.merged
    return " ".join(names), round(seconds, 3)


def new_node(created: float, ready: float) -> Node:
    return decode(node("node-1", created=at(created), conditions=[condition("Ready", "True", at=at(ready))]), Node)


def test_a_cold_start_is_told_phase_by_phase() -> None:
    start = phases(started_pod(), COLD)
    assert start.seconds == pytest.approx(
        {
            Phase.QUEUED: 0.5,
            Phase.CREATING: 0.5,
            Phase.NODE_WAIT: 0,
            Phase.SCHEDULING: 0,
            Phase.VOLUMES: 2,
            Phase.PULLING: 48,
            Phase.STARTING: 1,
            Phase.ANSWERING: 3.4,
        }
    )
    assert start.total == pytest.approx(55.4)
    assert (start.image_cached, start.image_bytes, start.node.is_new) == (False, 1_800_000_000, False)


def test_wait_for_its_cluster_is_no_creation_of_objects() -> None:
    start = phases(started_pod(), COLD, has_cluster=True)
    assert (start.seconds[Phase.CLUSTER_WAIT], start.seconds.get(Phase.CREATING)) == (0.5, None)
    (_queued, waiting) = phases(None, [], until=300, ran=False, has_cluster=True).spans
    assert (waiting.phases, waiting.is_open) == ((Phase.CLUSTER_WAIT,), True)


def test_wait_for_a_new_node_is_told_in_parts() -> None:
    waited = [event("FailedScheduling", 1), event("TriggeredScaleUp", 11), *warm(80)]
    start = phases(started_pod(bound=81, started=83, ready=86), waited, until=86, node=new_node(60, 79))
    assert (start.seconds[Phase.NODE_WAIT], start.seconds[Phase.SCHEDULING]) == (78, 2)
    assert start.node.is_new
    assert (start.node.decision, start.node.creation, start.node.joining) == (10, 49, 19)


def test_node_ready_again_later_does_not_explain_the_wait() -> None:
    waited = [event("TriggeredScaleUp", 11), *warm(80)]
    start = phases(started_pod(bound=81, started=83, ready=86), waited, until=86, node=new_node(60, 500))
    assert merged(start) == ("node_wait scheduling", 80)
    assert (start.node.is_new, start.node.joining) == (True, None)


def test_wait_for_room_on_an_existing_node_started_none() -> None:
    waited = [event("FailedScheduling", 1), *warm(40)]
    start = phases(started_pod(bound=41, started=43, ready=46), waited, until=46, node=new_node(-5000, -4990))
    assert (start.seconds[Phase.NODE_WAIT], start.seconds[Phase.SCHEDULING]) == (40, 0)
    assert start.node.is_new is False


def test_unexplained_long_wait_is_for_room_or_the_scheduler() -> None:
    start = phases(started_pod(bound=41, started=43, ready=46), warm(40), until=46)
    assert merged(start) == ("node_wait scheduling", 40)
    assert start.node.is_new is None


def test_without_events_volumes_image_and_start_are_one() -> None:
    start = phases(started_pod(), [])
    assert merged(start) == ("volumes pulling starting", 51)
    assert Phase.PULLING not in start.seconds
    assert (start.image_cached, start.image_bytes) == (None, None)


def test_pull_without_an_end_is_merged_with_starting() -> None:
    start = phases(started_pod(), [each_event for each_event in COLD if each_event.reason != "Pulled"])
    assert start.seconds[Phase.VOLUMES] == 2
    assert merged(start) == ("pulling starting", 49)
    assert start.image_cached is None


def test_pull_without_beginning_is_timed_by_its_end_message() -> None:
    start = phases(started_pod(), [each_event for each_event in COLD if each_event.reason != "Pulling"])
    assert (start.seconds[Phase.PULLING], start.seconds[Phase.VOLUMES]) == (48, 2)


NGINX = "spec.initContainers{front}"
FRONT_PULLED = 'Successfully pulled image "nginx" in 1.2s (1.2s including waiting). Image size: 1000000 bytes.'
FRONT = [event("Pulling", 2, field=NGINX), event("Pulled", 3, FRONT_PULLED, field=NGINX)]


def test_size_of_another_image_is_not_the_program_s() -> None:
    """nginx was pulled in a second, and the program's image is pulled for 38 s: that is not 1 MB in 38 s."""
    pulling = phases(started_pod(started=None, ready=None), [*FRONT, event("Pulling", 4)], until=42, ran=False)
    assert (pulling.image_cached, pulling.image_bytes) == (False, None)
    there = phases(started_pod(), [*FRONT, event("Pulled", 4, PRESENT), event("Started", 52)])
    assert (there.image_cached, there.image_bytes) == (False, None)
    assert phases(started_pod(), [*FRONT, *COLD]).image_bytes == 1_801_000_000


@pytest.mark.parametrize(("own", "size"), [("47.1s", 1_800_000_000), ("43.5s", 1_800_000_000), ("12s", None)])
def test_pull_behind_others_tells_nothing_of_its_size(own: str, size: int | None) -> None:
    waited = event("Pulled", 51, PULLED.replace("47.1s", own))
    start = phases(started_pod(), [*COLD[:2], waited, COLD[3]])
    assert (start.seconds[Phase.PULLING], start.image_cached) == (48, False), "the start did take that long"
    assert start.image_bytes == size


def test_events_of_restarts_do_not_change_the_start() -> None:
    again = [event("Pulled", 200, PRESENT), event("Started", 201), event("Pulling", 199)]
    assert phases(started_pod(), [*again, *COLD]) == phases(started_pod(), COLD)


def test_events_of_another_pod_of_the_name_are_ignored() -> None:
    own = decode(pod("workspace-a"), Pod)
    other = event("Pulled", 2, PRESENT)
    raw = kube_event("other", about=pod("workspace-a", uid="before"), reason="Started")
    assert start_events([decode(raw, Event)], own).started == {}
    assert start_events([other], own).images[0].was_present


def test_clock_five_minutes_ahead_moves_no_phase() -> None:
    ahead = [
        _skewed(each_event, 300) if each_event.reason in ("Pulling", "Pulled", "Started") else each_event
        for each_event in COLD
    ]
    assert phases(started_pod(started=352, ready=355), ahead).seconds == phases(started_pod(), COLD).seconds


def test_a_time_that_contradicts_its_neighbours_is_not_used() -> None:
    """The program would have started before the pod was bound, and no event tells of the node's clock."""
    start = phases(started_pod(started=-100, ready=55), [])
    assert merged(start) == ("volumes pulling starting answering", 54.4)


def test_program_seen_late_was_ready_before() -> None:
    assert phases(started_pod(), COLD, until=600).total == 55


def test_a_job_has_no_first_answer() -> None:
    start = phases(started_pod(probe=False, ready=None), COLD, until=52.3)
    assert Phase.ANSWERING not in start.seconds
    assert start.seconds[Phase.STARTING] == pytest.approx(1.3)


def test_init_containers_are_set_up_with_their_images() -> None:
    own = [
        event("Pulled", 2, PRESENT, field="spec.initContainers{init-0}"),
        event("Pulling", 12),
        event("Pulled", 51, PULLED.replace("48s", "39s")),
    ]
    start = phases(started_pod(inits=((3, 12),)), own)
    assert (start.seconds[Phase.SETUP], start.seconds[Phase.PULLING]) == (10, 39)
    assert start.image_cached is False


def test_start_under_way_ends_with_its_present_phase() -> None:
    under_way = phases(started_pod(started=None, ready=None), COLD[:2], until=30, ran=False)
    assert (under_way.spans[-1].phases, under_way.spans[-1].is_open) == ((Phase.PULLING,), True)
    assert under_way.spans[-1].seconds == 27
    waiting = phases(started_pod(bound=None, started=None, ready=None), [event("FailedScheduling", 2)], ran=False)
    assert waiting.spans[-1].phases == (Phase.NODE_WAIT,)
    assert [span.phases for span in phases(None, [], admitted=None, ran=False).spans] == [(Phase.QUEUED,)]


def test_a_cluster_s_start_ends_with_its_first_worker() -> None:
    start = phases(started_pod(), COLD, until=70, is_cluster=True)
    assert (start.seconds[Phase.ANSWERING], start.seconds[Phase.FIRST_WORKER]) == (3, 15)


@pytest.mark.parametrize(
    ("text", "seconds"), [("850ms", 0.85), ("1h1m2.5s", 3662.5), ("12.5µs", 12.5e-6), ("soon", None), ("", None)]
)
def test_durations_are_read_as_go_writes_them(text: str, seconds: float | None) -> None:
    assert go_seconds(text) == (None if seconds is None else pytest.approx(seconds))


_SECONDS = st.one_of(st.none(), st.floats(-100, 400).map(lambda value: round(value, 1)))
_EVENTS = st.lists(
    st.builds(
        event,
        st.sampled_from(["Scheduled", "Pulling", "Pulled", "Started", "FailedScheduling", "TriggeredScaleUp"]),
        st.integers(-50, 350),
        st.sampled_from([PULLED, PRESENT, "text"]),
        field=st.sampled_from(["spec.containers{run}", "spec.initContainers{init-0}", ""]),
        count=st.integers(1, 4),
    ),
    max_size=8,
)


@given(
    seen=st.builds(
        started_pod,
        created=st.floats(-20, 50),
        bound=_SECONDS,
        started=_SECONDS,
        ready=_SECONDS,
        inits=st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=2).map(tuple),
    ),
    events=_EVENTS,
    joined=_SECONDS,
    admitted=_SECONDS,
    until=st.floats(0, 300),
    ran=st.booleans(),
    is_cluster=st.booleans(),
)
def test_phases_follow_one_another_and_add_up_despite_disorder(
    seen: Pod,
    events: list[Event],
    joined: float | None,
    admitted: float | None,
    until: float,
    ran: bool,
    is_cluster: bool,
) -> None:
    its_node = None if joined is None else new_node(joined, joined + 10)
    start = phases(seen, events, until=until, ran=ran, node=its_node, admitted=admitted, is_cluster=is_cluster)
    assert start.spans[0].began_at == at(0)
    for before, after in zip(start.spans, start.spans[1:], strict=False):
        assert before.ended_at == after.began_at
    assert all(span.seconds >= 0 for span in start.spans)
    assert start.spans[-1].ended_at <= at(until)
    last = start.spans[-1]
    assert last.is_open == (not ran) or (not ran and last.phases[-1] is Phase.ANSWERING and not is_cluster)
    names, together = start.merged
    assert sum(start.seconds.values()) + together == pytest.approx(start.total)
    assert names == () or (len(names) > 1 and not set(names) & start.seconds.keys())
    order = [phase for phase in Phase if phase not in (Phase.PULLING, Phase.SETUP)]  # these come once a container
    firsts = [order.index(phase) for span in start.spans for phase in span.phases if phase in order]
    assert firsts == sorted(firsts)


def _skewed(each_event: Event, seconds: float) -> Event:
    """The same event, dated by a node whose clock is ahead."""
    assert each_event.first_timestamp is not None
    ahead = stamp(each_event.first_timestamp + timedelta(seconds=seconds))
    own = (each_event.first_timestamp - MOMENT).total_seconds()
    return event(each_event.reason, own, each_event.message, firstTimestamp=ahead, lastTimestamp=ahead)
