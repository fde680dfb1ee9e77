"""The metrics of jobs are read from their logs while they run and at their end: each value once, whoever reads, and in nobody's way."""

import json
import random
from collections.abc import Callable
from typing import Any, cast

import pytest

from grid.controller.controller import Controller
from grid.core.errors import ClusterUnavailable, NotFound
from grid.database.seam import Database
from grid.executions.stopping import request_stop
from grid.jobs.runmetrics import collector, store
from grid.jobs.runmetrics.collector import PERIOD_SECONDS
from grid.jobs.runmetrics.store import MOST_NAMES, MOST_POINTS
from grid.models import MetricReading, RunMetric
from tests.controller.world import World, fresh, in_world, to_running
from tests.support.builders import NAMESPACE
from tests.support.shop import Shop


class Scene:
    """A job that runs, a controller whose clock a test moves, and what the job's program writes."""

    def __init__(self, shop: Shop) -> None:
        self.world, self.execution = World(), shop.launch(kind="job", environment=shop.job)
        self.seconds, self.written = 0.0, 0
        self.controller = self.lead()

    def lead(self) -> Controller:
        """A new term of leadership."""
        self.controller = self.world.controller(monotonic=lambda: self.seconds)
        return self.controller

    async def begin(self) -> None:
        await to_running(self.world, self.controller)
        self.world.refresh(self.controller)
        await self.controller.metrics.run_once()  # which sees the pod for the first time

    def writes(self, *lines: dict[str, Any] | str, second: int | None = None) -> None:
        texts = []
        for line in lines:
            self.written += 1
            at = self.written // 3 if second is None else second  # three lines in each second
            text = line if isinstance(line, str) else json.dumps(line)
            texts.append(f"2026-02-02T10:{at // 60:02}:{at % 60:02}.{self.written:09}Z {text}")
        self.world.cluster.set_log(self.execution.object_name, texts, namespace=NAMESPACE, container="run", append=True)

    async def looks(self, *, after: float = 2 * PERIOD_SECONDS) -> None:
        """The collector's turn."""
        self.seconds += after
        await self.controller.metrics.run_once()

    async def ends(self, code: int = 0) -> None:
        self.world.finish(self.world.pod_of(self.execution), code)
        for _ in range(3):
            await self.world.step(self.controller)
            self.world.refresh(self.controller)

    def values(self, name: str = "loss") -> list[float]:
        points = RunMetric.objects.get(execution=self.execution, name=name).points
        return [value for _, _, value in points]


async def begun(shop: Shop) -> Scene:
    scene = Scene(shop)
    await scene.begin()
    return scene


def line(value: float, name: str = "loss") -> dict[str, Any]:
    return {"metric": name, "value": value, "step": value}


@in_world
async def test_values_are_kept_during_job_and_at_end(shop: Shop) -> None:
    scene = await begun(shop)
    scene.writes("starting", line(1), line(2), {"step": 2, "accuracy": 0.5, "loss": 3})
    await scene.looks()
    assert (scene.values(), scene.values("accuracy")) == ([1, 2, 3], [0.5])
    scene.writes(line(4), line(5))
    await scene.ends()
    row = RunMetric.objects.get(execution=scene.execution, name="loss")
    assert (row.count, row.last, row.lowest, row.highest) == (5, 5, 1, 5)
    assert fresh(scene.execution).state == "succeeded"


@pytest.mark.parametrize("seed", range(4))
@in_world
async def test_changing_controllers_neither_double_nor_lose_values(shop: Shop, seed: int) -> None:
    scene, rng = Scene(shop), random.Random(seed)
    await scene.begin()
    total = 0
    for _ in range(30):
        new = rng.randrange(4)
        scene.writes(*(line(total + number) for number in range(new)))
        total += new
        if rng.random() < 0.4:
            scene.lead()
            scene.world.refresh(scene.controller)
        if rng.random() < 0.7:
            await scene.looks()
    scene.lead()
    scene.world.refresh(scene.controller)
    await scene.ends()
    assert scene.values() == list(range(total))


@in_world
async def test_two_controllers_at_once_store_each_value_once(shop: Shop) -> None:
    scene = await begun(shop)
    old = scene.controller
    scene.writes(line(1))
    await scene.looks()
    scene.lead()
    scene.world.refresh(scene.controller)
    scene.writes(line(2))
    await scene.looks()
    scene.writes(line(3))
    await old.metrics.run_once()  # deposed, it believes that it has read up to 1
    await scene.looks()
    assert scene.values() == [1, 2, 3]


@in_world
async def test_killed_process_neither_loses_nor_doubles_values(shop: Shop) -> None:
    scene = await begun(shop)
    written = 0
    for call in range(1, 6):
        scene.writes(line(written), line(written + 1))
        written += 2
        scene.controller = scene.world.controller(monotonic=lambda: scene.seconds)
        calls = 0

        async def dies(work: Callable[..., Any], /, *args: Any, at: int = call, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == at:
                raise SystemError("killed")
            result = work(*args, **kwargs)
            if calls == at - 1:
                raise SystemError("killed afterwards")
            return result

        scene.controller._context.database = cast("Database", dies)
        scene.world.refresh(scene.controller)
        await scene.looks()
    scene.lead()
    scene.world.refresh(scene.controller)
    await scene.ends()
    assert scene.values() == list(range(written))


@in_world
async def test_metric_names_are_bounded_and_unkept_values_counted(shop: Shop) -> None:
    scene = await begun(shop)
    scene.writes(*(line(number, f"metric {number}") for number in range(MOST_NAMES + 20)), '{"step": 1, "loss": NaN}')
    await scene.looks()
    scene.writes(line(7, "one more"), line(8, "metric 0"))
    await scene.looks()
    row = MetricReading.objects.get()
    assert (RunMetric.objects.count(), row.unkept, row.refused) == (MOST_NAMES, 21, 1)
    assert scene.values("metric 0") == [0, 8]


@in_world
async def test_value_flood_is_thinned_and_read_in_portions(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MOST_BYTES", 20_000)
    scene = await begun(shop)
    scene.writes(*(line(number) for number in range(3000)))
    await scene.looks()
    assert 0 < RunMetric.objects.get().count < 1000
    for _ in range(20):
        await scene.looks(after=collector.TICK_SECONDS)
    row = RunMetric.objects.get()
    assert (row.count, row.lowest, row.highest, row.last) == (3000, 0, 2999, 2999)
    assert len(row.points) <= MOST_POINTS


@in_world
async def test_a_stopped_job_keeps_what_it_had_measured(shop: Shop) -> None:
    scene = await begun(shop)
    scene.writes(line(1))
    request_stop(fresh(scene.execution), by="alice", now=scene.world.now)
    await scene.world.step(scene.controller)
    assert (fresh(scene.execution).state, scene.values()) == ("stopping", [1])


@in_world
async def test_end_waits_for_absent_api_server_but_not_log(shop: Shop) -> None:
    scene = await begun(shop)
    scene.writes(line(1))
    scene.world.finish(scene.world.pod_of(scene.execution), 0)
    scene.world.refresh(scene.controller)
    scene.world.cluster.fail_next(ClusterUnavailable("away"), verb="logs")
    await scene.controller.poll()
    await scene.controller.work()
    assert fresh(scene.execution).state == "running"
    scene.lead()
    scene.world.cluster.fail_next(NotFound("its node is gone"), times=2, verb="logs")
    for _ in range(3):
        await scene.world.step(scene.controller)
    assert fresh(scene.execution).state == "succeeded"
    assert not RunMetric.objects.exists()


@in_world
async def test_bug_in_metrics_keeps_no_job_from_ending(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = await begun(shop)
    scene.writes(line(1))

    def fails(*args: Any, **kwargs: Any) -> bool:
        raise KeyError("a bug")

    monkeypatch.setattr(store, "add", fails)
    await scene.looks()
    await scene.ends()
    assert fresh(scene.execution).state == "succeeded"
