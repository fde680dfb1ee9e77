"""What is kept of a cluster's samples, and what a worker costs."""

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given, strategies as st

from grid.clusters.costs import ABSENT, changed, deletion_cost, notes_on
from grid.clusters.frameworks.base import ClusterReport, WorkerReport
from grid.clusters.progress import ObservedCluster
from grid.clusters.samples import sample_of, superfluous
from grid.core.labels import KEYS, POD_DELETION_COST
from grid.kube.objects import Pod
from grid.models import ClusterSample
from tests.support.builders import decode, pod

NOW = datetime(2026, 3, 9, 12, 0, tzinfo=UTC)


def sample(number: int, at: datetime, workers: int = 2) -> ClusterSample:
    return ClusterSample(pk=number, at=at, ready=workers, wanted=workers)


def steady(hours: float) -> list[ClusterSample]:
    number = int(hours * 240)
    return [sample(n, NOW - timedelta(seconds=15 * (number - n))) for n in range(number)]


def kept(samples: list[ClusterSample]) -> list[ClusterSample]:
    gone = set(superfluous(samples, now=NOW))
    return [sample for sample in samples if sample.pk not in gone]


def test_samples_thin_out_by_age() -> None:
    left = kept(steady(7 * 24))

    def count(older: timedelta, younger: timedelta) -> int:
        return sum(older >= NOW - sample.at > younger for sample in left)

    assert count(timedelta(hours=1), timedelta(0)) == 240
    assert abs(count(timedelta(days=1), timedelta(hours=1)) - 23 * 60) <= 1
    assert abs(count(timedelta(days=7), timedelta(days=1)) - 6 * 144) <= 1
    assert len(left) < 2600


@given(st.lists(st.tuples(st.integers(1, 400), st.integers(0, 3)), max_size=200))
def test_thinning_is_idempotent_and_keeps_changes_of_size(steps: list[tuple[int, int]]) -> None:
    samples: list[ClusterSample] = []
    at = NOW - timedelta(days=3)
    for number, (gap, workers) in enumerate(steps):
        at += timedelta(seconds=15 * gap)
        samples.append(sample(number, at, workers))
    left = kept(samples)
    assert kept(left) == left

    def sizes(some: list[ClusterSample]) -> list[tuple[datetime, int]]:
        return [(after.at, after.ready) for before, after in itertools.pairwise(some) if before.ready != after.ready]

    assert sizes(left) == sizes(samples)


@given(st.integers(0, 10**7), st.integers(0, 2**50), st.integers(0, 10**7), st.integers(0, 2**50))
def test_tasks_cost_more_than_bytes_and_costs_fit(a: int, x: int, b: int, y: int) -> None:
    cost, other = deletion_cost(a, x), deletion_cost(b, y)
    assert 0 <= cost < 2**31
    if min(a, 2000) > min(b, 2000):
        assert cost > other
    elif a == b and x <= y:
        assert cost <= other


def test_unknown_workers_go_first_and_idle_ones_next() -> None:
    order = [None, WorkerReport(0), WorkerReport(0, 1), WorkerReport(0, 10**9), WorkerReport(1), WorkerReport(2, 5)]
    costs = [int(notes_on(report)[POD_DELETION_COST]) for report in order]
    assert costs == sorted(costs)
    assert len(set(costs)) == len(costs)
    assert costs[0] == ABSENT


@given(st.integers(), st.integers(), st.integers())
def test_any_number_of_a_head_can_be_stored(tasks: int, held: int, pending: int) -> None:
    notes = notes_on(WorkerReport(tasks, held))
    assert -(2**31) <= int(notes[POD_DELETION_COST]) < 2**31
    assert set(msgspec.json.decode(notes[KEYS.worker_report])) == {"tasks", "bytes"}
    taken = sample_of(ObservedCluster(), None, minimum=1, pending_tasks=pending)
    assert taken.pending_tasks is not None
    assert 0 <= taken.pending_tasks < 2**31


def worker(notes: Mapping[str, str] | None = None) -> Pod:
    return decode(pod("w", node="n", annotations=dict(notes) if notes else None), Pod)


def test_start_and_end_of_work_are_written_at_once() -> None:
    busy, idle = notes_on(WorkerReport(5)), notes_on(WorkerReport(0))
    just_written = {"uid-of-w": 100.0}

    def writes(before: Mapping[str, str] | None, now_holds: WorkerReport | None, now: float) -> bool:
        report = ClusterReport({"w": now_holds} if now_holds else {}, 0, 0)
        return bool(changed(report, [worker(before)], just_written, now=now))

    assert writes(None, WorkerReport(0), 200.0)
    assert writes(idle, WorkerReport(1), 101.0)
    assert writes(busy, WorkerReport(0), 101.0)
    assert not writes(busy, WorkerReport(6), 101.0)
    assert writes(busy, WorkerReport(6), 116.0)
    assert not writes(busy, WorkerReport(5), 500.0)
    assert writes(busy, None, 101.0), "the head has lost it"
