"""Executions' logs leave: each line, in order, past restarts of ours and of theirs; and a receiver that is away holds up nobody."""

import asyncio
import copy
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from django.utils import timezone

from grid.controller.controller import Controller
from grid.core.errors import ClusterUnavailable
from grid.executions import ledger
from grid.executions.caches import execution_of
from grid.executions.ledger import LedgerRecord
from grid.kube.objects import Pod
from grid.kube.resources import PODS
from grid.logs import verboselogging
from grid.logs.logplace import START, LogPlace
from grid.logs.logshipping import lines as store
from grid.logs.logshipping.lines import LineBuffer, LineSource, LoggedLine, Portion, halves
from grid.logs.logshipping.receiver import Verdict
from grid.logs.logshipping.shipper import BUFFER_BYTES, LogShipper
from grid.models import AuditEntry, Execution, ShippedLog, State, VerboseLogging
from grid.platformhealth import lights
from tests.conftest import People, client_of, execution_page
from tests.controller.world import World, fresh, in_world, to_running
from tests.executions.executing import make_execution, make_project
from tests.support.builders import NAMESPACE, container_status
from tests.support.shop import Shop
from tests.support.virtual import cancelled, passes, repeat, until

SENT, AGAIN = Verdict("sent"), Verdict("again", why="it answered with status 503")
PAGE = "/verbose-logs/"


class Receiver:
    """Takes lines, unless told otherwise."""

    name = "Loki at logs.example.com"

    def __init__(self) -> None:
        self.verdict, self.taken, self.asked, self.closed = SENT, list[str](), 0, False
        self.most_lines = 2**30

    async def post(self, portions: Sequence[Portion], now: datetime) -> Verdict:
        self.asked += 1
        if sum(len(portion.lines) for portion in portions) > self.most_lines:
            return Verdict("smaller")
        if self.verdict.result == "sent":
            self.taken += [line.text for portion in portions for line in portion.lines]
        return self.verdict

    def close(self) -> None:
        self.closed = True


class Scene:
    """A job that runs, and the shipper of a controller."""

    def __init__(self, shop: Shop) -> None:
        self.world, self.execution, self.receiver = World(), shop.launch(kind="job", environment=shop.job), Receiver()
        self.written = 0
        self.begin_term()

    def begin_term(self, buffer_bytes: int = BUFFER_BYTES) -> None:
        loop = asyncio.get_running_loop()
        self.controller: Controller = self.world.controller(monotonic=loop.time)
        context = self.controller._context
        self.shipper = LogShipper(context, self.receiver, rng=random.Random(1), buffer_bytes=buffer_bytes)
        self.controller._reconciler.add_observer(self.shipper)

    async def reads_to_end(self, pod: Pod) -> None:
        await self.shipper.pod_ends(cast(LedgerRecord, ledger.read(execution_of(pod))), pod)

    async def runs(self) -> "Scene":
        await to_running(self.world, self.controller)
        self.world.refresh(self.controller)
        return self

    def writes(self, *texts: str, previous: bool = False) -> None:
        lines = []
        for text in texts:
            self.written += 1
            lines.append(f"2026-02-02T10:00:{self.written // 3:02}.{self.written:09}Z {text}")
        self.world.cluster.set_log(
            self.execution.object_name, lines, namespace=NAMESPACE, container="run", append=True, previous=previous
        )

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[None]:
        task = asyncio.create_task(repeat(self.shipper.periodic()))
        try:
            yield
        finally:
            await cancelled(task)

    def row(self) -> ShippedLog:
        return ShippedLog.objects.get(pk=self.execution.pk)


@in_world
async def test_lines_are_shipped_while_running_and_at_end(shop: Shop) -> None:
    scene = await Scene(shop).runs()
    async with scene.sending():
        scene.writes("one", "two")
        await until(lambda: scene.receiver.taken == ["one", "two"])
        scene.writes("three")
        await until(lambda: scene.receiver.taken == ["one", "two", "three"])
        assert list(scene.row().places) == [scene.execution.object_name]
        scene.writes("last")
        scene.world.finish(scene.world.pod_of(scene.execution), 0)
        for _ in range(3):
            await scene.world.step(scene.controller)
        await until(lambda: scene.receiver.taken[3:] == ["last"] and scene.row().places == {})
        assert (scene.row().sent, scene.row().lost, fresh(scene.execution).state) == (4, 0, "succeeded")
    assert scene.receiver.closed


@in_world
async def test_new_leader_sends_the_rest_with_few_duplicates(shop: Shop) -> None:
    scene = await Scene(shop).runs()
    async with scene.sending():
        scene.writes("one", "two")
        await until(lambda: scene.receiver.taken == ["one", "two"] and ShippedLog.objects.exists())
        scene.receiver.verdict = AGAIN
        scene.writes("three")
        await until(lambda: scene.shipper.state.waiting_lines == 1)
    scene.receiver.verdict = SENT
    scene.begin_term()
    scene.world.refresh(scene.controller)
    async with scene.sending():
        await until(lambda: scene.receiver.taken == ["one", "two", "three"])


@in_world
async def test_new_leader_resends_nothing_of_an_ended_pod(shop: Shop) -> None:
    scene = await Scene(shop).runs()
    async with scene.sending():
        scene.writes("one", "two")
        scene.world.finish(scene.world.pod_of(scene.execution), 0)
        scene.world.refresh(scene.controller)
        await until(lambda: scene.receiver.taken == ["one", "two"] and ShippedLog.objects.exists())
    scene.begin_term()
    scene.world.refresh(scene.controller)
    async with scene.sending():
        await passes(60)
        assert scene.receiver.taken == ["one", "two"]


@in_world
async def test_ended_cluster_has_logs_of_all_pods_read(shop: Shop) -> None:
    scene = await Scene(shop).runs()
    worker = copy.deepcopy(scene.world.pod_of(scene.execution))
    worker["metadata"] |= {"name": "worker-1", "uid": "worker-1"}
    scene.world.cluster.put(PODS, worker)
    lines = ["2026-02-02T10:00:00.000000001Z of the worker"]
    scene.world.cluster.set_log("worker-1", lines, namespace=NAMESPACE, container="run")
    scene.world.refresh(scene.controller)
    scene.writes("of the head")
    await scene.reads_to_end(next(iter(scene.controller.pods.values())))
    assert scene.shipper.state.waiting_lines == 2


@in_world
async def test_request_that_is_too_large_is_sent_in_parts(shop: Shop) -> None:
    scene = await Scene(shop).runs()
    scene.receiver.most_lines = 2
    async with scene.sending():
        scene.writes(*"abcde")
        await until(lambda: scene.receiver.taken == list("abcde"))


@in_world
async def test_absent_receiver_keeps_no_execution_and_shows_problem(shop: Shop) -> None:
    scene = Scene(shop)
    scene.receiver.verdict = AGAIN
    await scene.runs()
    async with scene.sending():
        scene.writes("one")
        await until(lambda: scene.receiver.asked > 1)
        scene.world.finish(scene.world.pod_of(scene.execution), 0)
        for _ in range(3):
            await scene.world.step(scene.controller)
        assert fresh(scene.execution).state == "succeeded"
        state = scene.shipper.state
        light = lights.log_receiver(state, scene.world.now)
        assert light.severity == "problem"
        assert light.sentence == (
            f"Loki at logs.example.com takes no lines since {scene.world.now:%H:%M} UTC: it answered with status 503. "
            "1 line waits."
        )
        asked = scene.receiver.asked
        await passes(600)
        assert scene.receiver.asked - asked < 25, "it is asked more and more rarely"
        scene.receiver.verdict = SENT
        await until(lambda: scene.receiver.taken == ["one"])
        assert lights.log_receiver(scene.shipper.state, scene.world.now).severity == "ok"


@in_world
async def test_full_buffer_pauses_reading_and_loses_nothing(shop: Shop) -> None:
    scene = Scene(shop)
    scene.begin_term(buffer_bytes=4000)
    scene.receiver.verdict = AGAIN
    await scene.runs()
    async with scene.sending():
        expected = []
        for number in range(8):
            texts = [f"{number}-{count}" for count in range(5)]
            scene.writes(*texts)
            expected += texts
            await passes(120)
        assert scene.shipper.state.lost == 0
        assert scene.shipper.state.waiting_lines < len(expected)
        scene.receiver.verdict = SENT
        await until(lambda: scene.receiver.taken == expected)


@in_world
async def test_oldest_lines_of_ended_pods_are_dropped_and_counted(shop: Shop) -> None:
    scene = Scene(shop)
    scene.begin_term(buffer_bytes=4000)
    await scene.runs()
    pod = next(iter(scene.controller.pods.values()))
    for number in range(4):
        scene.writes(*(f"{number}-{count}" for count in range(5)))
        await scene.reads_to_end(pod)
    state = scene.shipper.state
    assert (state.lost, state.waiting_lines) == (5, 15)
    async with scene.sending():
        await until(lambda: scene.receiver.taken[-1:] == ["3-4"])
        assert scene.receiver.taken[0] == "1-0"
        await until(lambda: ShippedLog.objects.filter(lost=5, sent=15).exists())
        assert "5 lines were lost" in lights.log_receiver(scene.shipper.state, scene.world.now).sentence


@in_world
async def test_output_before_container_restart_comes_first(shop: Shop) -> None:
    scene = await Scene(shop).runs()
    async with scene.sending():
        scene.writes("one")
        await until(lambda: scene.receiver.taken == ["one"])
        scene.writes("one", "out of memory", previous=True)
        pod = scene.world.pod_of(scene.execution)
        scene.world.cluster.set_log(pod["metadata"]["name"], [], namespace=NAMESPACE, container="run")
        scene.writes("again")
        pod["status"]["containerStatuses"] = [container_status("run", restarts=1)]
        scene.world.cluster.put(PODS, pod)
        scene.world.cluster.fail_next(ClusterUnavailable("It does not answer."), 2, verb="logs")  # both logs, at first
        scene.world.refresh(scene.controller)
        await until(lambda: "again" in scene.receiver.taken)
        assert scene.receiver.taken == ["one", "one", "out of memory", "again"]


@pytest.mark.django_db
def test_deleted_execution_or_older_position_changes_nothing(shop: Shop) -> None:
    execution: Execution = shop.launch(kind="job", environment=shop.job)
    now = datetime(2026, 2, 2, tzinfo=UTC)
    newer = LogPlace("2026-02-02T10:00:01", 1, "2026-02-02T10:00:01.5")
    older = LogPlace("2026-02-02T10:00:00", 9, "2026-02-02T10:00:00.5")
    store.note({execution.pk: store.ShippingProgress(2, 0, {"pod": newer}), "gone": store.ShippingProgress(1)}, now=now)
    store.note({execution.pk: store.ShippingProgress(1, 3, {"pod": older})}, now=now)
    assert store.read_places([execution.pk, "gone"]) == {execution.pk: {"pod": newer}}
    row = ShippedLog.objects.get()
    assert (row.sent, row.lost) == (3, 3)


def test_a_buffer_and_its_halves_lose_nothing_within_bounds() -> None:
    source = LineSource("abc", "job", "p", "alice", NAMESPACE, "job-abc", "run")
    portions = [Portion(source, tuple(LoggedLine("", f"{n}-{m}") for m in range(3)), START) for n in range(6)]
    buffer = LineBuffer(4 * portions[0].size)
    dropped = [gone for portion in portions for gone in buffer.add(portion)]
    assert [gone.lines for gone in dropped] == [portions[0].lines, portions[1].lines]
    assert buffer.take(2 * portions[0].size) == portions[2:4]
    assert buffer.take(0) == [portions[4]]
    assert buffer.size == portions[5].size
    first, second = halves([portions[5]])
    assert first[0].lines + second[0].lines == portions[5].lines
    han, latin = (Portion(source, (LoggedLine("", text),), START) for text in ("漢" * 100, "x" * 300))
    assert han.size == latin.size, "bytes are sent, not characters"


@pytest.fixture
def execution(people: People) -> Execution:
    return make_execution(people.owner, make_project(people.owner), state=State.RUNNING)


@pytest.mark.usefixtures("runtime")
def test_operator_begins_verbose_logging_and_another_ends_it(people: People, execution: Execution) -> None:
    client = client_of(people.operator)
    assert f'href="{PAGE}?execution={execution.pk}"' in execution_page(people.operator, execution)
    assert f'value="{execution.pk}"' in client.get(f"{PAGE}?execution={execution.pk}").text
    asked = {"subject": "execution", "execution": execution.pk, "reason": "Why <does> it wait?"}
    assert f"The execution {execution.pk} is logged in detail" in client.post(PAGE, asked, follow=True).text
    other = client_of(people.admin)
    page = other.get(PAGE).text
    assert people.operator.username in page
    assert "Why &lt;does&gt; it wait?" in page
    late = other.post(PAGE, asked)
    assert late.status_code == 422
    assert f"{people.operator.username} has it logged until" in late.text
    row = VerboseLogging.objects.get()
    assert row.until_at - row.from_at == timedelta(hours=1)
    assert "logged as usual again" in other.post(PAGE, {"end": str(row.pk)}, follow=True).text
    assert other.post(PAGE, {"end": str(row.pk)}).status_code == 422
    audited = AuditEntry.objects.filter(object_type="verboselogging").order_by("pk")
    assert [(entry.actor_name, entry.object_name) for entry in audited] == [
        (people.operator.username, f"execution {execution.pk}"),
        (people.admin.username, f"execution {execution.pk}"),
    ]
    assert audited[0].changes["reason"] == ["", "Why <does> it wait?"]
    assert "Verbose logs" in other.get("/audit-log/?kind=verboselogging").text


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"subject": "web", "reason": " "}, "Say why"),
        ({"subject": "sandbox", "reason": "x"}, "Choose a component"),
        ({"subject": "execution", "execution": "", "reason": "x"}, "There is no execution with this id"),
        ({"subject": "execution", "execution": "a\x00'", "reason": "x"}, "There is no execution with this id"),
        ({"end": "99999999999999999999"}, "has ended already"),
    ],
)
def test_a_refusal_says_why(people: People, asked: dict[str, str], words: str) -> None:
    answer = client_of(people.operator).post(PAGE, asked)
    assert answer.status_code == 422
    assert words in answer.text
    assert not VerboseLogging.objects.exists()


@pytest.mark.usefixtures("runtime")
def test_verbose_logging_is_refused_for_ended_or_too_many(people: People, execution: Execution) -> None:
    now = timezone.now()
    begun = [VerboseLogging(execution=str(n), from_at=now, until_at=now + timedelta(hours=1)) for n in range(20)]
    VerboseLogging.objects.bulk_create(begun)
    client, asked = client_of(people.operator), {"subject": "execution", "execution": execution.pk, "reason": "x"}
    assert "End one of them first" in client.post(PAGE, asked).text
    Execution.objects.filter(pk=execution.pk).update(settled_at=now, ended_at=now, state=State.SUCCEEDED)
    assert "has ended" in client.post(PAGE, asked).text


@pytest.mark.usefixtures("runtime")
def test_processes_get_verbose_times_of_component_and_executions(people: People, execution: Execution) -> None:
    now = timezone.now()
    verboselogging.begin(component="proxy", by=people.operator, reason="x", now=now)
    verboselogging.begin(execution=execution.pk, by=people.operator, reason="x", now=now)
    end = (now + timedelta(hours=1)).timestamp()
    assert verboselogging.times_of("proxy", now) == verboselogging.VerboseTimes(end, {execution.pk: end})
    assert verboselogging.times_of("web", now) == verboselogging.VerboseTimes(0.0, {execution.pk: end})
    later = now + timedelta(hours=1)
    assert verboselogging.times_of("proxy", later) == verboselogging.VerboseTimes()
    verboselogging.begin(component="web", by=people.operator, reason="x", now=later)
    assert VerboseLogging.objects.count() == 1, "what is over is deleted; the audit log keeps it"
