"""For how long a pod has held a node: when that begins, when it ends, and what is written of it."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.kube.objects import Pod
from grid.usage.intervals import Changes, Interval, Recorded, after, changes, interval
from tests.support.builders import MOMENT, condition, container_status, decode, pod, stamp

NOW = MOMENT + timedelta(hours=1)


def at(minute: float) -> datetime:
    return MOMENT + timedelta(minutes=minute)


def made(name: str = "p", *, bound: float | None = 5, finished: tuple[float, ...] = (), **fields: Any) -> Pod:
    """A pod that was bound to its node and whose containers have finished, so many minutes after MOMENT."""
    ends = [
        container_status(f"c{number}", state={"terminated": {"exitCode": 0, "finishedAt": stamp(at(minute))}})
        for number, minute in enumerate(finished)
    ]
    scheduled = [] if bound is None else [condition("PodScheduled", "True", at=at(bound))]
    values: dict[str, Any] = {"node": "node-1", "conditions": scheduled, "statuses": ends, "phase": "Running"}
    return decode(pod(name, **(values | fields)), Pod)


def held(of: Pod, **known: datetime) -> tuple[datetime, datetime | None]:
    times = interval(of, **({"now": NOW} | known))
    assert times is not None
    return times.began_at, times.ended_at


def test_a_pod_without_a_node_holds_none() -> None:
    assert interval(made(node="", bound=None), now=NOW) is None
    assert interval(made(node="", bound=None), gone_at=NOW, now=NOW) is None


def test_interval_begins_with_binding_or_its_notice() -> None:
    assert held(made(bound=5)) == (at(5), None)
    assert held(made(bound=None)) == (NOW, None)
    assert held(made(bound=None, status={"startTime": stamp(at(7))})) == (at(7), None)


def test_interval_ends_when_the_last_container_has_finished() -> None:
    assert held(made(deletionTimestamp=stamp(at(20)))) == (at(5), None), "it goes on while the pod ends"
    assert held(made(phase="Succeeded", finished=(30, 20))) == (at(5), at(30))
    assert held(made(phase="Failed", finished=(30, 20)), gone_at=at(50)) == (at(5), at(30))
    assert held(made(), gone_at=at(40)) == (at(5), at(40)), "or the pod is gone"


def test_evicted_pod_ends_with_disruption_or_unreadiness() -> None:
    scheduled, unready = condition("PodScheduled", "True", at=at(5)), condition("Ready", "False", at=at(20))
    disrupted = condition("DisruptionTarget", "True", at=at(15))
    assert held(made(phase="Failed", conditions=[scheduled, unready, disrupted])) == (at(5), at(15))
    assert held(made(phase="Failed", conditions=[scheduled, unready])) == (at(5), at(20))


def test_a_node_whose_clock_is_behind_erases_no_use() -> None:
    ran = {"terminated": {"exitCode": 0, "startedAt": stamp(at(1)), "finishedAt": stamp(at(11))}}
    late = made(bound=20, phase="Succeeded", statuses=[container_status(state=ran)])
    assert held(late) == (at(20), at(30))


def test_silent_containers_end_when_noticed_or_last_attended() -> None:
    assert held(made(phase="Failed", reason="Evicted")) == (at(5), NOW)
    assert held(made(phase="Failed", reason="Evicted"), attended_until=at(30)) == (at(5), at(30))
    half = [
        container_status("a", state={"terminated": {"exitCode": 0, "finishedAt": stamp(at(9))}}),
        container_status(),
    ]
    assert held(made(phase="Failed", statuses=half)) == (at(5), NOW)


def test_end_is_right_without_a_known_beginning() -> None:
    assert held(made(bound=None, phase="Failed", finished=(9,))) == (at(9), at(9))
    assert changes(Recorded({"p": at(5)}), [some("p", ended=9)], {}).ended == {"p": at(9)}


def test_clocks_that_differ_make_no_time_negative_or_future() -> None:
    assert held(made(bound=90)) == (NOW, None)
    assert held(made(bound=20, phase="Succeeded", finished=(10,))) == (at(20), at(20))
    assert held(made(bound=20, phase="Succeeded", finished=(100,))) == (at(20), NOW)
    assert held(made(bound=20), gone_at=at(10)) == (at(10), at(10))


def test_times_are_whole_seconds() -> None:
    late = NOW + timedelta(microseconds=700_000)
    assert held(made(bound=None), gone_at=late, now=late) == (NOW, NOW)


def some(uid: str, *, ended: float | None = None) -> Interval:
    return Interval(uid, uid, "node-1", False, at(5), None if ended is None else at(ended))


@pytest.mark.parametrize(
    ("recorded", "seen", "vanished", "expected"),
    [
        pytest.param(Recorded(), [some("a")], {}, Changes((some("a"),)), id="new"),
        pytest.param(Recorded(over=frozenset("a")), [some("a")], {}, Changes(), id="never again"),
        pytest.param(Recorded({"a": at(5)}), [], {"a": at(7)}, Changes(ended={"a": at(7)}), id="vanished"),
        pytest.param(Recorded({"a": at(5)}), [], {"a": at(3)}, Changes(ended={"a": at(5)}), id="not before it began"),
        pytest.param(
            Recorded({"a": at(5)}), [some("b")], {"a": at(7)}, Changes((some("b"),), {"a": at(7)}), id="another"
        ),
    ],
)
def test_changes_are_written_once(
    recorded: Recorded, seen: list[Interval], vanished: dict[str, datetime], expected: Changes
) -> None:
    written = changes(recorded, seen, vanished)
    assert written == expected
    assert not changes(after(recorded, written, {held.pod_uid for held in seen}), seen, {})


class Life:
    """A handful of pods by second: what each held, and what a controller wrote that looked now and then and died now and then."""

    def __init__(self) -> None:
        self.second = 0
        self.bound: dict[str, int] = {}
        self.ended: dict[str, int] = {}
        self.visible: set[str] = set()
        self.rows: dict[str, tuple[datetime, datetime | None]] = {}
        self.recorded: Recorded | None = None

    @property
    def now(self) -> datetime:
        return MOMENT + timedelta(seconds=self.second)

    def moment(self, second: int) -> datetime:
        return MOMENT + timedelta(seconds=second)

    def bind(self) -> None:
        uid = f"pod-{len(self.bound)}"
        self.bound[uid] = self.second
        self.visible.add(uid)

    def finish(self, number: int) -> None:
        alive = sorted(self.bound.keys() - self.ended.keys())
        if alive:
            self.ended[alive[number % len(alive)]] = self.second

    def dies(self) -> None:
        self.recorded = None

    def reconcile(self) -> None:
        if self.recorded is None:
            self.recorded = Recorded({uid: began for uid, (began, ended) in self.rows.items() if ended is None})
        seen = [
            Interval(uid, uid, "node-1", False, self.moment(self.bound[uid]), ended)
            for uid in self.visible
            for ended in [self.moment(self.ended[uid]) if uid in self.ended else None]
        ]
        written = changes(self.recorded, seen, {})
        for new in written.begun:
            self.rows.setdefault(new.pod_uid, (new.began_at, new.ended_at))  # the uid is unique
        for uid, end in written.ended.items():
            began, ended = self.rows[uid]
            self.rows[uid] = (began, ended or end)
        self.recorded = after(self.recorded, written, self.visible)


@given(st.lists(st.tuples(st.sampled_from(["bind", "finish", "reconcile", "dies"]), st.integers(0, 50)), max_size=60))
def test_record_equals_what_the_pods_held_at_any_look(steps: list[tuple[str, int]]) -> None:
    life = Life()
    for step, number in [*steps, ("dies", 1), ("reconcile", 1), ("reconcile", 1)]:
        life.second += number
        if step == "finish":
            life.finish(number)
        else:
            getattr(life, step)()
    expected = {
        uid: (life.moment(bound), life.moment(life.ended[uid]) if uid in life.ended else None)
        for uid, bound in life.bound.items()
    }
    assert life.rows == expected
    assert all(ended is None or ended >= began for began, ended in life.rows.values())
