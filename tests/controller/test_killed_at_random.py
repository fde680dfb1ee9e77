"""Controllers that are killed at any moment, in a few stories and in 500 drawn ones: nothing is lost, done twice or left behind."""

import itertools
import logging
import os
import random
import re
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from grid.core.labels import APP_COMPONENT, HEAD, KEYS, WORKER
from grid.diagnosis.requests import is_placeholder
from grid.executions.runs import Runs
from grid.executions.spec import parse_spec
from grid.executions.stopping import request_stop
from grid.jobs.jobsettings import read_record
from grid.jobs.schedulehistory import entry_words
from grid.kube.objects import Pod, RawObject
from grid.kube.resources import CONFIG_MAPS, PODS, REPLICA_SETS, SECRETS, VOLUME_CLAIMS
from grid.models import (
    AuditEntry,
    EnvironmentRevision,
    Execution,
    JobRun,
    Notification,
    RunFiles,
    Schedule,
    StartUp,
    State,
    UsageInterval,
    Workspace,
)
from tests.clusters.test_cluster_life import OWNED, left
from tests.conftest import make_people
from tests.controller.kill_story import WARM, Estate, Story, make_estate
from tests.controller.kill_world import KillWorld
from tests.controller.world import Fault, Killed, World, fresh, in_world, states_of
from tests.support import emptying
from tests.support.builders import decode
from tests.support.shop import Shop, make_shop

pytestmark = pytest.mark.slow
SEED = os.environ.get("KILLS_SEED", "1")
PARTS, KILLS, ROUNDS = 5, 500, 40
ORDER = list(State)
ONCE = ("started", "succeeded", "failed", "files_not_saved")
STOPPED = ["queued", "deploying", "preparing", "running", "stopping", "stopped"]
DONE = ["queued", "deploying", "preparing", "running", "finishing", "succeeded"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(1 if SEED.count(".") == 2 else PARTS), ids=lambda part: f"seed {SEED}.{part}")
def test_whatever_is_killed_nothing_is_lost_doubled_or_left(part: int, caplog: pytest.LogCaptureFixture) -> None:
    kills = number = 0
    shapes: dict[Any, Any] = {}
    while kills < KILLS // PARTS:
        seed = SEED if SEED.count(".") == 2 else f"{SEED}.{part}.{number}"
        kills += kills_of(make_estate(make_shop(make_people())), seed, shapes)
        errors = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
        assert not errors, f"KILLS_SEED={seed}"
        if seed == SEED:
            break
        emptying.empty("default")
        number += 1


def kills_of(estate: Estate, seed: str, shapes: dict[Any, Any]) -> int:
    """Tell the story of that seed and check it; return how many were killed."""
    story = Story(estate, random.Random(seed))

    @in_world
    async def tell() -> None:
        await story.live(ROUNDS)
        await story.come_to_rest()
        check_running(story, shapes)
        await story.end()
        check_end(story)

    try:
        tell()
    except BaseException as error:
        error.add_note(f"KILLS_SEED={seed}\n" + "\n".join(story.events))
        raise
    return story.replicas.kills


def check_running(story: Story, shapes: dict[Any, Any]) -> None:
    """All that nobody stopped runs, with each of its objects once; nothing else is in the cluster; the ledger says the same."""
    objects: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for kind in OWNED:
        for item in story.world.cluster.objects(kind):
            if id := execution_of(item):
                objects[id].append((kind.kind, item["metadata"]["name"].replace(id, "ID")))
    running = {item.pk: item for item in Execution.objects.unsettled()}
    assert objects.keys() == running.keys()
    for id, execution in running.items():
        assert (execution.state, execution.holds_slots) == (State.RUNNING, True)
        check_pods(story.world, execution)
        kinds = sorted(
            pair for pair in objects[id] if execution.kind != "cluster" or pair[0] not in (PODS.kind, REPLICA_SETS.kind)
        )
        assert kinds == shapes.setdefault(shape_of(execution), kinds)
    warm = [pod for pod in story.world.pods() if is_placeholder(decode(pod, Pod))]
    assert len(warm) == (WARM if story.is_warm else 0)


def execution_of(raw: RawObject) -> str:
    return str((raw["metadata"].get("labels") or {}).get(KEYS.execution, ""))


def shape_of(execution: Execution) -> tuple[Any, ...]:
    """Executions with the same have the same objects."""
    spec = parse_spec(execution)
    return execution.kind, execution.framework, bool(spec.files), bool(spec.files and spec.files.remote), bool(spec.job)


def check_pods(world: KillWorld, execution: Execution) -> None:
    """No more pods than slots, and those that it is to have."""
    pods = Counter(
        pod["metadata"]["labels"].get(APP_COMPONENT) for pod in world.pods() if execution_of(pod) == execution.pk
    )
    if execution.kind != "cluster":
        assert (pods.total(), execution.slots) == (1, 1)
        return
    assert pods[HEAD] == 1
    assert execution.workers_minimum <= pods[WORKER] <= execution.workers_maximum
    assert pods.total() <= execution.slots == execution.workers_maximum + 1


def check_end(story: Story) -> None:
    world = story.world
    assert left(world) == []
    assert world.cluster.count("delete", VOLUME_CLAIMS) == 0, "no file is lost"
    for execution in Execution.objects.all():
        check_life(execution)
    check_usage(world)
    check_files(world)
    check_notifications()
    check_runs()
    if story.schedule is not None:
        check_schedule(story.schedule, world)
    for workspace in Workspace.objects.all():
        assert workspace.restart_requested_at is None
    for made in EnvironmentRevision.objects.exclude(base=None):
        assert made.state == "ready"
        assert AuditEntry.objects.filter(object_type="environment", object_id=made.environment_id).count() == 1


def check_life(execution: Execution) -> None:
    states = states_of(execution)
    assert [ORDER.index(State(state)) for state in states] == sorted({ORDER.index(State(state)) for state in states}), (
        states
    )
    assert execution.is_final and execution.settled_at and states[-1] == execution.state
    assert bool(execution.slots_reserved_at) == bool(execution.slots_freed_at)
    assert StartUp.objects.filter(pk=execution.pk).exists(), (states, "how long its start took is known")


def check_usage(world: KillWorld) -> None:
    """Each pod that a controller saw on a node has one interval, from then on; those of one workspace or run follow each other."""
    intervals = UsageInterval.objects.select_related("execution").order_by("began_at", "pk")
    assert world.seen_bound <= {interval.pod_uid for interval in intervals} <= world.bound.keys()
    ends: dict[object, datetime] = {}
    for interval in intervals:
        execution, bound = world.bound[interval.pod_uid]
        assert (interval.execution_id, interval.began_at) == (execution, bound.replace(microsecond=0))
        assert (
            interval.ended_at is not None
            and interval.seconds == (interval.ended_at - interval.began_at).total_seconds()
        )
        assert interval.ended_at <= world.now
        holder = interval.execution.workspace_id or interval.execution.run_id
        if holder is not None:
            assert ends.get(holder, interval.began_at) <= interval.began_at, "one pod at a time"
            ends[holder] = interval.ended_at
    pods = Counter(execution for execution, _ in world.bound.values())
    kept = Execution.objects.exclude(kind="cluster").exclude(pk__in=world.lost)
    assert all(pods[interval.pk] <= 1 for interval in kept), "never made twice"


def check_files(world: KillWorld) -> None:
    """What executors reported and a controller saw is recorded as reported, and what went wrong is told once."""
    recorded = {files.execution_id: files for files in RunFiles.objects.all()}
    assert world.seen_told <= recorded.keys()
    for id, files in recorded.items():
        report = world.reported[id]
        assert (files.branch, files.kept, files.problem) == tuple(
            report.get(name, "") for name in ("branch", "kept", "problem")
        )
        of_sweep = Execution.objects.filter(pk=id).exclude(run__sweep="").exists()
        notified = Notification.objects.filter(execution=id, event="files_not_saved").count()
        assert notified == bool(files.problem) or (of_sweep and notified == 0)


def check_notifications() -> None:
    of_executions = Notification.objects.filter(event__in=ONCE, execution__isnull=False)
    times_told = Counter(of_executions.values_list("user", "execution", "event"))
    assert [key for key, times in times_told.items() if times > 1] == []


def check_runs() -> None:
    """Each run has ended as its last attempt did, with no more attempts than it may have, one after another."""
    for run in JobRun.objects.select_related("settings"):
        attempts = list(run.attempts.order_by("attempt"))
        assert [attempt.attempt for attempt in attempts] == list(range(1, len(attempts) + 1))
        assert len(attempts) <= read_record(run.settings.record).job.retries + 1
        assert run.outcome
        if attempts and run.outcome == "succeeded":
            assert attempts[-1].state == State.SUCCEEDED
        for earlier, later in itertools.pairwise(attempts):
            assert earlier.state in (State.FAILED, State.ERROR)
            assert earlier.settled_at is not None and earlier.settled_at <= later.requested_at
        if run.after is not None and attempts:
            assert run.after.outcome == "succeeded"


def check_schedule(schedule: Schedule, world: KillWorld) -> None:
    """Each time has one run, or the history says why it has none."""
    schedule.refresh_from_db()
    runs = list(JobRun.objects.filter(schedule=schedule).values_list("due_at", flat=True))
    accounted = Counter(f"{due:%-d %b %H:%M}" for due in runs if due)
    when = r"(\d+ \w+ \d\d:\d\d)"
    for _at, sentence in map(entry_words, schedule.history):
        if match := re.match(f"{when} skipped", sentence):
            accounted[match[1]] += 1
        elif match := re.match(f"{when}(?: to {when})? missed", sentence):
            first, last = (
                datetime.strptime(f"2026 {text}", "%Y %d %b %H:%M") for text in (match[1], match[2] or match[1])
            )
            while first <= last:
                accounted[f"{first:%-d %b %H:%M}"] += 1
                first += timedelta(minutes=5)
    assert set(accounted.values()) <= {1}, (accounted, schedule.history)
    due, end = schedule.created_at.replace(second=0, microsecond=0), max(accounted, default="")
    while f"{due:%-d %b %H:%M}" != end and accounted:
        due += timedelta(minutes=1)
        assert due.minute % 5 or accounted[f"{due:%-d %b %H:%M}"], (due, accounted, schedule.history)


async def live(world: World, execution: Execution, fault: Fault, *, stop: bool) -> int:
    """A whole life, with a new controller whenever one was killed; how many calls the first one made."""
    controller = world.controller(fault)
    for _ in range(12):
        try:
            await world.step(controller)
        except Killed:
            controller = world.controller()
            continue
        if fresh(execution).state in ("stopped", "succeeded") and execution.slots_freed_at:
            return fault.calls
        if stop and execution.state == "running":
            request_stop(execution, by="alice", now=world.now)
        world.behave()
        world.passes(1)
    raise AssertionError(f"not ended: {states_of(execution)}")


def check(world: World, execution: Execution, expected: list[str]) -> None:
    assert states_of(execution) == expected, "each state once, in order"
    assert world.most_pods == 1
    assert world.cluster.count("create", PODS) <= 2, (
        "only a lost answer makes it ask twice, and then it finds what exists"
    )
    assert [len(world.cluster.objects(kind)) for kind in (PODS, CONFIG_MAPS, SECRETS)] == [0, 0, 0]
    assert len(world.cluster.objects(VOLUME_CLAIMS)) == 2, "the project's and its owner's own"
    assert execution.slots_reserved_at is not None
    assert execution.slots_freed_at is not None
    held = UsageInterval.objects.get(execution=execution)
    assert held.ended_at is not None
    assert execution.slots_reserved_at <= held.began_at <= held.ended_at <= execution.slots_freed_at
    assert held.seconds == (held.ended_at - held.began_at).total_seconds()


@pytest.mark.parametrize("kind", ["workspace", "job"])
@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
def test_next_controller_completes_after_a_kill_at_any_call(shop: Shop, kind: str, after: bool) -> None:
    chosen: dict[str, Any] = {"kind": kind, "environment": shop.job if kind == "job" else shop.workspace}
    expected = DONE if kind == "job" else STOPPED

    @in_world
    async def killed_at_each() -> None:
        world, execution = World(), shop.launch(**chosen)
        calls = await live(world, execution, Fault(), stop=kind == "workspace")
        check(world, execution, expected)
        assert calls > 25
        for at in range(1, calls + 1):
            world, execution = World(), shop.launch(**chosen)
            await live(world, execution, Fault(at=at, after=after), stop=kind == "workspace")
            check(world, execution, expected)

    killed_at_each()


@in_world
async def test_a_write_on_an_old_revision_is_not_made(shop: Shop) -> None:
    """The stop arrives between the controller's reading and its writing."""
    world, execution = World(), shop.launch()
    controller = world.controller()
    await world.step(controller)
    world.behave()
    world.refresh(controller)
    reconciler = controller._reconciler
    runs = cast(Runs, reconciler._strategies[execution.kind])
    main_pod = runs.main_pod

    async def stopped_meanwhile(row: Any) -> Any:
        pod = await main_pod(row)
        request_stop(execution, by="alice", now=world.now)
        return pod

    runs.main_pod = stopped_meanwhile  # type: ignore[method-assign]
    await reconciler.reconcile(execution.pk)
    assert fresh(execution).state == "deploying"
    assert states_of(execution) == ["queued", "deploying"]
