"""The metrics of jobs: which lines measure something, each value once, whoever reads, however the log comes, and in nobody's way."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from grid.controller.controller import Controller
from grid.core.errors import ClusterUnavailable, NotFound
from grid.database.seam import Database
from grid.executions.stopping import request_stop
from grid.jobs.runmetrics import collector, store
from grid.jobs.runmetrics.collector import PERIOD_SECONDS
from grid.jobs.runmetrics.lines import LONGEST_LINE, LONGEST_NAME, LogReading, measured
from grid.jobs.runmetrics.store import MOST_NAMES, MOST_POINTS, Series, extended
from grid.logs.logplace import LogPlace
from grid.models import MetricReading, RunMetric
from tests.controller.world import World, fresh, in_world, to_running
from tests.support.builders import NAMESPACE
from tests.support.shop import Shop

HOSTILE = "<script>alert(1)</script>"
VALUES = st.lists(st.floats(-10, 10, width=16), max_size=1500)
# Several lines share a moment, and several moments a second.
GAPS = st.lists(st.sampled_from([0, 1, 400_000_000, 1_000_000_000, 7_000_000_000]), min_size=1, max_size=40)


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


@pytest.mark.parametrize(
    ("line", "step", "values", "refused"),
    [
        ('{"metric": "loss", "value": 0.31, "step": 12}', 12, {"loss": 0.31}, 0),
        ('  {"step": 12, "loss": 0.31, "accuracy": 0.9}\r', 12, {"loss": 0.31, "accuracy": 0.9}, 0),
        ('{"epoch": 2, "loss": 0.5}', 2, {"loss": 0.5}, 0),
        ('{"step": 7, "epoch": 2, "loss": 0.5}', 7, {"epoch": 2, "loss": 0.5}, 0),
        ('{"step": 1.5, "loss": 1, "best": true, "note": "x", "more": {"a": 1}, "no": null}', 1.5, {"loss": 1}, 0),
        ('{"step": 3, "loss": NaN, "accuracy": 0.5}', 3, {"accuracy": 0.5}, 1),
        (f'{{"metric": "loss", "value": {"9" * 400}}}', None, {}, 1),
        ('{"step": 1, "a\\u0000b": 1, "a\\u202eb": 2, "line\\nfeed": 3, " blank": 4}', 1, {}, 4),
        (json.dumps({"step": 1, "x" * LONGEST_NAME: 1, "y" * (LONGEST_NAME + 1): 2}), 1, {"x" * LONGEST_NAME: 1}, 1),
        (json.dumps({"step": 1, HOSTILE: 1, "__proto__": 2}), 1, {HOSTILE: 1, "__proto__": 2}, 0),
    ],
)
def test_a_line_with_numbers_is_measured(line: str, step: float | None, values: dict[str, float], refused: int) -> None:
    line_values = measured(line.encode())
    assert line_values is not None
    assert (line_values.step, dict(line_values.values), line_values.refused) == (step, values, refused)


@pytest.mark.parametrize(
    "line",
    [
        *("", "loss: 0.31", "{'step': 1, 'loss': 0.3}", '[{"step": 1, "loss": 1}]', '{"step": 1, "loss": 0x10}'),
        '{"level": "info", "ts": 1732500000.1, "msg": "started"}',
        *('{"step": 1}', '{"step": null, "loss": 1}', '{"step": NaN, "loss": 1}', '{"step": true, "loss": 1}'),
        *('{"metric": "loss", "value": "0.3"}', '{"metric": "loss", "value": 1e999}'),
        '{"step": 1, "loss": 1} {"step": 2, "loss": 1}',
        "{" * 5000 + "}" * 5000,
        '{"step": 1, "a": ' + "[" * 5000 + "NaN" + "]" * 5000 + "}",
        '{"step": 1, "loss": 1, "text": "' + "x" * LONGEST_LINE + '"}',
    ],
)
def test_any_other_line_measures_nothing(line: str) -> None:
    assert measured(line.encode()) is None


@given(st.binary(max_size=300))
def test_metric_lines_take_any_bytes(line: bytes) -> None:
    measured(line)
    measured(b'{"step": 1, ' + line + b"}")


@given(
    st.dictionaries(
        st.text(max_size=5), st.recursive(st.none() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=5)
    )
)
def test_json_lines_never_raise_or_yield_infinite_values(members: dict[str, Any]) -> None:
    line = measured(json.dumps({"step": 1, **members}).encode())
    for _, value in line.values if line else ():
        assert abs(value) < float("inf")


def in_portions(values: Sequence[float], sizes: Sequence[int]) -> Series:
    series, left = Series(), list(values)
    for size in [*sizes, len(left)]:
        series, left = extended(series, [(None, value) for value in left[:size]]), left[size:]
        series = Series(
            series.count, [(int(n), step, value) for n, step, value in json.loads(json.dumps(series.points))]
        )
    return series


@given(VALUES, st.lists(st.integers(0, 400), max_size=6))
def test_kept_values_do_not_depend_on_portions(values: list[float], sizes: list[int]) -> None:
    assert in_portions(values, sizes) == in_portions(values, [])


@given(VALUES)
def test_first_last_lowest_and_highest_values_are_kept(values: list[float]) -> None:
    series = in_portions(values, [])
    kept = [value for _, _, value in series.points]
    assert (series.count, len(kept) <= MOST_POINTS) == (len(values), True)
    if values:
        assert (kept[0], kept[-1], min(kept), max(kept)) == (values[0], values[-1], min(values), max(values))
        assert all(values[number] == value for number, _, value in series.points)


def test_few_values_stay_complete_and_many_are_thinned_evenly() -> None:
    few = extended(Series(), [(step, 1.0) for step in range(250)])
    assert len(few.points) == 250
    many = Series()
    for start in range(0, 1_000_000, 50_000):
        many = extended(many, [(step, float(step % 97)) for step in range(start, start + 50_000)])
    gaps = [after[0] - before[0] for before, after in zip(many.points, many.points[1:], strict=False)]
    assert (many.count, 250 <= len(many.points) <= MOST_POINTS) == (1_000_000, True)
    assert max(gaps) <= 2 * 4096


def log_of(gaps: Sequence[int]) -> list[str]:
    lines, at = [], 0
    for number, gap in enumerate(gaps):
        at += gap
        second, fraction = divmod(at, 1_000_000_000)
        lines.append(
            f'2026-02-02T10:{second // 60:02}:{second % 60:02}.{fraction:09}Z {{"metric": "n", "value": {number}}}\n'
        )
    return lines


def since(place: LogPlace, lines: Sequence[str]) -> bytes:
    """What the kubelet answers: whole seconds count."""
    return "".join(line for line in lines if line[:19] >= place.since[:19]).encode()


def numbers(reading: LogReading) -> list[int]:
    return [int(value) for _, value in reading.measurements.values.get("n", ())]


@given(GAPS, st.lists(st.integers(0, 40), max_size=5), st.integers(1, 200))
def test_log_lines_are_taken_once_despite_interruptions(gaps: list[int], cuts: list[int], chunk: int) -> None:
    lines = log_of(gaps)
    place, taken = LogPlace(), list[int]()
    for end in [*sorted(cuts), len(lines)]:
        reading, answer = LogReading(place), since(place, lines[:end])
        for start in range(0, len(answer), chunk):
            reading.feed(answer[start : start + chunk])
        place, taken = reading.place, taken + numbers(reading)
    assert taken == list(range(len(lines)))


def test_rotated_log_loses_only_what_kubelet_dropped() -> None:
    lines = log_of([0, 1, 1, 1, 1, 1])
    first = LogReading(LogPlace())
    first.feed("".join(lines[:4]).encode())
    second = LogReading(first.place)
    second.feed("".join(lines[5:]).encode())
    assert (numbers(first), numbers(second)) == ([0, 1, 2, 3], [5])


def test_unterminated_last_line_is_taken_only_at_end() -> None:
    (line,) = log_of([0])
    reading = LogReading(LogPlace())
    reading.feed(line.rstrip("\n").encode())
    assert (numbers(reading), reading.place) == ([], LogPlace())
    reading.finish()
    assert (numbers(reading), reading.place.lines) == ([0], 1)


def test_giant_line_takes_no_memory_and_next_is_read() -> None:
    reading = LogReading(LogPlace())
    reading.feed(b'2026-02-02T10:00:00.1Z {"metric": "n", "value": 1, "x": "')
    for _ in range(1000):
        reading.feed(b"x" * 10_000)
    assert len(reading._rest) < 20_000
    reading.feed(b'"}\n' + "".join(log_of([1_000_000_000])).encode())
    assert numbers(reading) == [0]
