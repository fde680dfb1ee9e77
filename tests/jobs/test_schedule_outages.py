"""Schedules when what ended is not known yet, and when two clocks disagree: no run is stopped or skipped for one that has ended."""

import asyncio
from datetime import timedelta

import pytest

from grid.controller.firstround import PATIENCE_SECONDS, FirstRound
from grid.core.errors import ClusterUnavailable
from grid.jobs.scheduler import FINISHING_SECONDS
from grid.kube.resources import PODS
from grid.models import Execution, Job, JobRun, Schedule, State
from tests.controller.world import World, in_world
from tests.jobs.test_schedules import HOUR, fresh, history_of, job, run_at, runs, scheduled
from tests.platformhealth.test_running import running as controlled
from tests.support.shop import NOW, Shop
from tests.support.virtual import until

__all__ = ["job"]


def attempt_of(number: int) -> Execution:
    return Execution.objects.get(run__number=number)


@pytest.mark.parametrize("overlap", ["skip", "replace"])
def test_ended_run_not_yet_moved_on_counts_as_ended(job: Job, overlap: str) -> None:
    schedule = scheduled(job, overlap=overlap)
    run_at(1)
    Execution.objects.filter(run__number=2).update(state=State.SUCCEEDED, ended_at=NOW, settled_at=NOW)
    run_at(2)
    assert runs(schedule) == [(2, "10:00", "succeeded"), (3, "11:00", "")]
    assert (history_of(schedule), attempt_of(3).state) == ([], "queued")


@pytest.mark.parametrize("overlap", ["skip", "replace"])
def test_scheduled_time_waits_for_a_finishing_run(job: Job, overlap: str) -> None:
    schedule = scheduled(job, overlap=overlap)
    run_at(1)
    finishing = Execution.objects.filter(run__number=2)
    finishing.update(state=State.FINISHING, state_since=NOW + 2 * HOUR, reason="completed")
    run_at(2)
    assert (runs(schedule), history_of(schedule), schedule.next_at) == ([(2, "10:00", "")], [], NOW + 2 * HOUR)
    assert finishing.get().stop_requested_at is None
    finishing.update(state=State.SUCCEEDED, ended_at=NOW, settled_at=NOW)
    run_at(2, minutes=1)
    assert runs(schedule) == [(2, "10:00", "succeeded"), (3, "11:00", "")]


def test_stuck_pod_is_not_waited_for_forever(job: Job) -> None:
    schedule = scheduled(job)
    run_at(1)
    since = NOW + 2 * HOUR - timedelta(seconds=FINISHING_SECONDS)
    Execution.objects.filter(run__number=2).update(state=State.FINISHING, state_since=since, reason="completed")
    run_at(2)
    assert history_of(schedule) == ["4 Mar 11:00 skipped: run 2 had not ended."]


def test_already_run_schedule_moves_on_and_delays_no_other(job: Job) -> None:
    """A controller whose clock was ahead has run it; the clock of whoever edited it then was behind."""
    first, second = scheduled(job), scheduled(job, time_zone="Europe/Berlin")
    run_at(1)
    Schedule.objects.update(next_at=NOW + HOUR)
    JobRun.objects.filter(schedule=second).update(schedule=None, outcome="succeeded", ended_at=NOW)
    JobRun.objects.filter(schedule=first).update(outcome="succeeded", ended_at=NOW)
    run_at(1)
    assert (fresh(first).next_at, len(runs(first))) == (NOW + 2 * HOUR, 1)
    assert history_of(first) == ["4 Mar 10:00 skipped: there is a run for that time already."]
    assert len(runs(second)) == 1
    run_at(2)
    assert [at for _, at, _ in runs(first)] == ["10:00", "11:00"]


@in_world
async def test_endings_without_leader_are_known_before_schedules_run(shop: Shop, job: Job) -> None:
    schedule = scheduled(job, overlap="skip")
    world = World()
    async with controlled(world):
        world.passes(3600)
        await until(lambda: len(runs(schedule)) == 1, within=30)
        first = attempt_of(2)
        await until(lambda: len(world.pods()) == 1, within=10)
        world.schedule(world.pod_of(first))
        await until(lambda: attempt_of(2).state == "preparing", within=5)
        world.start(world.pod_of(first))
        await until(lambda: attempt_of(2).state == "running", within=5)
    world.finish(world.pod_of(first), 0)
    world.passes(2 * 3600)  # two times pass; the last of them is due
    world.cluster.fail_next(ClusterUnavailable("No answer."), 3, verb="list")
    async with controlled(world):
        await until(lambda: attempt_of(2).state in ("finishing", "succeeded"), within=60)
        for pod in world.pods():
            world.cluster.remove(PODS, pod["metadata"]["name"], namespace=pod["metadata"]["namespace"])
        await until(lambda: len(runs(schedule)) == 2, within=20)
    assert runs(schedule) == [(2, "10:00", "succeeded"), (3, "12:00", "")]
    assert not any("had not ended" in sentence for sentence in history_of(schedule))


@in_world
async def test_first_round_waits_for_pods_and_executions(shop: Shop) -> None:
    is_known, enqueued = [False], list[str]()
    first_round = FirstRound(lambda: is_known[0], {"a", "b"}, enqueued.append)
    task = asyncio.create_task(first_round.run())
    await asyncio.sleep(2 * PATIENCE_SECONDS)
    assert enqueued == []
    is_known[0] = True
    await until(lambda: sorted(enqueued) == ["a", "b"], within=1)
    first_round.reconciled("a")
    await asyncio.sleep(1)
    assert not task.done()
    first_round.reconciled("b")
    await until(task.done, within=1)
