"""How far a pod has come on its node, from its events and from what its node reports."""

from datetime import timedelta
from typing import Any

import pytest

from grid.diagnosis.nodeimages import size_of
from grid.kube.objects import Event, Node, Pod
from grid.queue.wait_estimate.observing import OccupantTally, OnNode, on_node, rank_of
from tests.support import builders
from tests.support.builders import MOMENT, decode, stamp

IMAGE, SIZE = "python:3.11", 900_000_000
REPORT = {"images": [{"names": ["docker.io/library/python:3.11"], "sizeBytes": SIZE}]}
OTHERS = {"images": [{"names": ["registry.k8s.io/pause:3.10"], "sizeBytes": 300_000}]}
POD = builders.pod("w", node="a")
PULLED = f'Successfully pulled image "{IMAGE}" in 8s (8s including waiting). Image size: {SIZE} bytes.'


def happened(reason: str, message: str, *, after: float) -> Any:
    at = MOMENT + timedelta(seconds=after)
    event = builders.event(reason.lower(), about=POD, reason=reason, message=message, at=at)
    event["involvedObject"]["fieldPath"] = "spec.containers{run}"
    return event


def seen(*events: Any, status: dict[str, Any] | None = None, elsewhere: dict[str, Any] | None = None) -> OnNode | None:
    """Twenty seconds after it was bound."""
    node = decode(builders.node("a", status=status or {}), Node)
    other = decode(builders.node("b", status=elsewhere or {}), Node)
    decoded = [decode(event, Event) for event in events]
    return on_node(
        decode(POD, Pod), decoded, node, lambda image: size_of(image, (node, other)), now=MOMENT + timedelta(seconds=20)
    )


PULLING = happened("Pulling", f'Pulling image "{IMAGE}"', after=4)


@pytest.mark.parametrize(
    ("events", "status", "elsewhere", "expected"),
    [
        ([], None, None, OnNode(IMAGE, 20)),
        ([], REPORT, None, OnNode(IMAGE, 20, has_image=True, size=SIZE)),
        ([], OTHERS, REPORT, OnNode(IMAGE, 20, has_image=False, size=SIZE)),
        ([PULLING], OTHERS, REPORT, OnNode(IMAGE, 20, 16, has_image=False, size=SIZE)),
        (
            [PULLING, happened("Pulled", PULLED, after=12)],
            OTHERS,
            None,
            OnNode(IMAGE, 20, 8, has_image=True, size=SIZE),
        ),
        (
            [happened("Pulled", f'Container image "{IMAGE}" already present on machine', after=1)],
            None,
            None,
            OnNode(IMAGE, 20, 0, has_image=True),
        ),
    ],
)
def test_image_state_is_told_by_events_and_nodes(
    events: list[Any], status: dict[str, Any] | None, elsewhere: dict[str, Any] | None, expected: OnNode
) -> None:
    assert seen(*events, status=status, elsewhere=elsewhere) == expected


def test_pull_of_another_image_is_not_the_program_s() -> None:
    """nginx's image is pulled; of the program's the events say nothing yet."""
    front = happened("Pulling", 'Pulling image "nginx"', after=4)
    front["involvedObject"]["fieldPath"] = "spec.initContainers{front}"
    assert seen(front) == OnNode(IMAGE, 20)


def test_a_pod_without_a_node_is_on_none() -> None:
    assert on_node(decode(builders.pod("w"), Pod), (), None, lambda image: None, now=MOMENT) is None


def test_only_what_may_end_is_counted_of_a_node() -> None:
    started = {"startTime": stamp(MOMENT)}
    pods = [
        builders.pod("run", node="a", phase="Running", labels={"id": "e1"}),
        builders.pod("timed", node="a", phase="Running", spec={"activeDeadlineSeconds": 90}, status=started),
        builders.pod("ending", node="a", phase="Running", deletionTimestamp=stamp(MOMENT + timedelta(seconds=30))),
        builders.pod("foreign", node="a", phase="Running"),
        builders.pod("over", node="a", phase="Succeeded", labels={"id": "e2"}),
    ]
    tally = OccupantTally(lambda pod: pod.metadata.labels.get("id", ""), MOMENT + timedelta(seconds=10))
    tally.count(decode(builders.node("a"), Node), {"cpu": 1500}, [decode(pod, Pod) for pod in pods])
    room = tally.room(())
    assert [(pod.execution, pod.ends_within) for pod in room.occupants] == [("e1", float("inf")), ("", 80), ("", 20)]
    assert room.free["a"]["cpu"] == 2500


def test_priority_goes_before_age() -> None:
    urgent = decode(builders.pod("b", spec={"priority": 100}, created=MOMENT + timedelta(seconds=5)), Pod)
    assert sorted([decode(builders.pod("a"), Pod), urgent], key=rank_of)[0] is urgent
