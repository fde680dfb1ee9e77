"""Idle workspaces and those past their maximum lifetime are announced, kept and stopped by the controller, with the reason."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from grid.configuration import LIFETIME_EXTENSION, PROJECT_LIFETIME_BOUND, WORKSPACE_IDLE, WORKSPACE_LIFETIME
from grid.controller.controller import Controller
from grid.core.errors import Rejected
from grid.models import AuditEntry, Execution, LifecycleEntry, Notification, StopPlan
from grid.models.dataplane import LOCAL
from grid.workspaces.shutdown.records import ShutdownWatch, WatchedRun, carry_out, extend_lifetime, watched
from grid.workspaces.shutdown.rules import Look, LookOutcome, decide
from tests.controller.world import Killed, World, fresh, in_world, running, states_of
from tests.notifications.test_sender import at_once as in_line
from tests.queue.conftest import on_file
from tests.queue.test_at_once import at_once
from tests.support.shop import NOW, OWNER, Shop

__all__ = ["on_file"]  # a fixture

Configure = Callable[[Any, int], None]
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
IDLE_LOOK = LookOutcome(Look(is_known=True), "no kernel busy, no terminal activity, CPU under 1 %")
BUSY_LOOK = LookOutcome(Look(is_known=True, is_active=True), "1 kernel is busy")
UNKNOWN_LOOK = LookOutcome(Look(is_known=False), "not known, because its program does not answer")


@dataclass
class Eyes:
    """An observer that sees what a test says."""

    sees: LookOutcome = IDLE_LOOK
    asked: list[str] = field(default_factory=list)

    async def observe(self, runs: Sequence[WatchedRun], now: datetime) -> Mapping[str, LookOutcome]:
        self.asked += [run.id for run in runs]
        return {run.id: self.sees for run in runs}


@dataclass
class Scene:
    """A running workspace, and a watch whose clock the test moves."""

    world: World
    controller: Controller
    execution: Execution
    eyes: Eyes = field(default_factory=Eyes)

    def watch(self, database: Any = in_line) -> ShutdownWatch:
        return ShutdownWatch(LOCAL, database, lambda: self.world.now, self.eyes)

    async def minutes(self, count: int, *, seen: int = 0) -> None:
        """Looked at in each of them, or in the last `seen` alone, which is enough where only the lifetime counts."""
        if seen:
            self.world.passes(60 * (count - seen))
            count = seen
        watch = self.watch()
        for _ in range(count):
            self.world.passes(60)
            await watch.run_once()


def settle(runs: Sequence[WatchedRun], now: datetime) -> list[bool]:
    """Carry out what is decided about each; whether it was written."""
    decisions = [(run, decide(run.life, run.limits, now)) for run in runs]
    return [carry_out(run, decision, now) for run, decision in decisions if decision is not None]


async def scene(shop: Shop) -> Scene:
    world, controller, execution = await running(shop)
    return Scene(world, controller, fresh(execution))


def announced() -> list[str]:
    return list(Notification.objects.filter(event="stopping_soon").order_by("pk").values_list("sentence", flat=True))


def plan_of(execution: Execution) -> StopPlan:
    return StopPlan.objects.get(execution=execution)


def reasons(execution: Execution) -> list[str]:
    changes = LifecycleEntry.objects.filter(execution=execution, source="change").order_by("id")
    return list(changes.values_list("reason", flat=True))


@in_world
async def test_idle_workspace_is_announced_with_evidence_and_stopped(shop: Shop, configure: Configure) -> None:
    at = await scene(shop)
    configure(WORKSPACE_IDLE, 60)
    await at.minutes(30)
    assert announced() == []
    await at.minutes(1)
    sentence = (
        "Idle 30 min: no kernel busy, no terminal activity, CPU under 1 %. It is stopped in 30 minutes, at 10:01 UTC. To prevent "
        "that, choose “Keep it 2 h longer” on its page, or use it. What it has written to the project's files and to HOME stays; what "
        "its programs hold in memory is lost."
    )
    assert announced() == [sentence]
    await at.minutes(31)
    assert fresh(at.execution).stop_requested_at is None, "its last minute is not known yet"
    await at.minutes(1)
    assert (fresh(at.execution).stop_requested_by, at.execution.stop_reason) == ("Compute Grid", "idle")
    for _ in range(3):
        await at.world.step(at.controller)
        at.world.behave()
    await at.world.step(at.controller)
    assert states_of(at.execution)[-2:] == ["stopping", "stopped"]
    assert (
        fresh(at.execution).words(OWNER)
        == "Stopped by Compute Grid, because nobody used it for too long. The project's files are kept."
    )
    assert reasons(at.execution) == ["StopAnnounced", "StoppedByRule"]
    assert announced() == [sentence], "once"


@in_world
async def test_use_withdraws_the_stop_and_unknown_never_stops(shop: Shop, configure: Configure) -> None:
    at = await scene(shop)
    configure(WORKSPACE_IDLE, 60)
    await at.minutes(40)
    assert plan_of(at.execution).cause == "idle"
    at.eyes.sees = BUSY_LOOK
    await at.minutes(1)
    assert (plan_of(at.execution).cause, plan_of(at.execution).evidence) == ("", "1 kernel is busy")
    at.eyes.sees = IDLE_LOOK
    await at.minutes(31)
    assert len(announced()) == 2
    at.eyes.sees = UNKNOWN_LOOK
    await at.minutes(95)
    assert fresh(at.execution).stop_requested_at is None
    assert plan_of(at.execution).is_unknown
    at.eyes.sees = IDLE_LOOK
    await at.minutes(1)
    assert fresh(at.execution).stop_requested_at is None, "nobody knows what it did meanwhile"


@in_world
async def test_a_lifetime_ends_a_busy_workspace_and_its_cluster(shop: Shop, configure: Configure) -> None:
    workspace, cluster = shop.launch_with_cluster()
    world = World()
    controller = world.controller()
    for _ in range(4):
        await world.step(controller)
        world.behave()
    await world.step(controller)
    configure(WORKSPACE_LIFETIME, 2)
    at = Scene(world, controller, workspace, Eyes(BUSY_LOOK))
    await at.minutes(90, seen=2)
    sentence = (
        "Its maximum lifetime of 2 h ends: it is stopped in 30 minutes, at 11:00 UTC. To prevent that, choose “Keep it 2 h longer” on its "
        "page. What it has written to the project's files and to HOME stays; what its programs hold in memory is lost."
    )
    assert announced() == [sentence]
    await at.minutes(32, seen=2)
    assert fresh(workspace).stop_reason == "lifetime"
    await world.step(controller)
    assert fresh(cluster).stop_requested_at is not None
    assert at.eyes.asked == [], "without an idle limit nobody's program is asked"


@in_world
async def test_tier_and_project_have_own_limits(shop: Shop, configure: Configure) -> None:
    at = await scene(shop)
    shop.tier.lifetime_hours = 4
    shop.tier.save()
    shop.project.lifetime_hours = 10
    shop.project.save()

    def lifetime() -> timedelta | None:
        [run] = watched(LOCAL)
        return run.limits.lifetime

    assert lifetime() == 4 * HOUR, "no bound lets the project choose a longer one"
    configure(PROJECT_LIFETIME_BOUND, 8)
    assert lifetime() == 8 * HOUR
    shop.project.lifetime_hours = 3
    shop.project.save()
    assert lifetime() == 3 * HOUR
    assert fresh(at.execution).stop_requested_at is None


@in_world
async def test_keeping_moves_stop_within_bound_and_is_recorded(shop: Shop, configure: Configure) -> None:
    at = await scene(shop)
    configure(WORKSPACE_LIFETIME, 2)
    configure(LIFETIME_EXTENSION, 3)
    await at.minutes(91, seen=2)
    owner, stops_at = shop.people.owner, plan_of(at.execution).stops_at
    assert stops_at is not None
    assert extend_lifetime(at.execution, stops_at=stops_at, by=owner, now=at.world.now) == stops_at + 2 * HOUR
    entry = AuditEntry.objects.get(object_type="execution")
    assert (entry.actor, entry.object_id) == (owner, at.execution.pk)
    assert reasons(at.execution)[-1] == "KeptLonger"
    with pytest.raises(Rejected, match="alice has already kept it, until 13:00 UTC"):
        extend_lifetime(at.execution, stops_at=stops_at, by=owner, now=at.world.now)
    await at.minutes(120, seen=2)
    second = plan_of(at.execution).stops_at
    assert second == stops_at + 2 * HOUR
    assert len(announced()) == 2, "each announcement is told"
    assert extend_lifetime(at.execution, stops_at=second, by=owner, now=at.world.now) == stops_at + 3 * HOUR
    await at.minutes(60, seen=2)
    third = plan_of(at.execution).stops_at
    assert third is not None
    with pytest.raises(Rejected, match="at most until 3 h beyond it"):
        extend_lifetime(at.execution, stops_at=third, by=owner, now=at.world.now)
    await at.minutes(32, seen=2)
    assert fresh(at.execution).stop_reason == "lifetime"


@in_world
async def test_a_keep_between_the_look_and_the_stop_wins(shop: Shop, configure: Configure) -> None:
    at = await scene(shop)
    configure(WORKSPACE_LIFETIME, 2)
    await at.minutes(119)
    stops_at = plan_of(at.execution).stops_at
    assert stops_at is not None
    read = watched(LOCAL)
    extend_lifetime(at.execution, stops_at=stops_at, by=shop.people.operator, now=at.world.now)
    assert settle(read, at.world.now + HOUR) == [False]
    assert fresh(at.execution).stop_requested_at is None


@in_world
async def test_concurrent_controllers_announce_and_stop_once(shop: Shop, configure: Configure) -> None:
    at = await scene(shop)
    configure(WORKSPACE_LIFETIME, 2)
    for hours in (1.5, 2.1):
        read = watched(LOCAL)
        for _ in range(2):
            settle(read, NOW + hours * HOUR)
    assert len(announced()) == 1
    assert reasons(at.execution) == ["StopAnnounced", "StoppedByRule"]


@in_world
@pytest.mark.parametrize("after", [False, True])
async def test_killed_controller_announces_once_and_stops_in_time(
    shop: Shop, configure: Configure, after: bool
) -> None:
    at = await scene(shop)
    configure(WORKSPACE_IDLE, 60)
    calls = 0

    async def database(work: Any, /, *args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % 4 == 0 and not after:
            raise Killed
        result = work(*args, **kwargs)
        if calls % 4 == 0:
            raise Killed
        return result

    for _ in range(70):
        at.world.passes(60)
        try:
            await at.watch(database).run_once()
        except Killed:
            continue
    assert len(announced()) == 1
    assert fresh(at.execution).stop_reason == "idle"
    assert reasons(at.execution) == ["StopAnnounced", "StoppedByRule"]
    assert at.execution.stop_requested_at is not None
    assert at.execution.stop_requested_at >= NOW + HOUR


def test_concurrent_keeps_extend_the_workspace_once(on_file: Shop, configure: Configure, tmp_path: Path) -> None:
    execution = on_file.launch()
    Execution.objects.filter(pk=execution.pk).update(state="running", started_at=NOW)
    configure(WORKSPACE_LIFETIME, 2)
    now = NOW + 1.5 * HOUR
    settle(watched(LOCAL), now)
    stops_at = plan_of(execution).stops_at
    assert stops_at == NOW + 2 * HOUR
    people = (on_file.people.owner, on_file.people.operator, on_file.people.admin)
    refused = at_once(*(lambda by=by: extend_lifetime(execution, stops_at=stops_at, by=by, now=now) for by in people))
    assert len(refused) == 2
    assert all("has already kept it, until 13:00 UTC." in sentence for sentence in refused)
    assert plan_of(execution).kept_lifetime_until == NOW + 4 * HOUR
    assert AuditEntry.objects.filter(object_type="execution").count() == 1
