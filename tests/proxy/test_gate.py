"""Where a passage leads, how often the database is asked for one, and how fast its end is felt."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from dashboard.proxy import gate as gates
from dashboard.proxy.gate import CannotTell, GrantGate, Target
from dashboard.proxy.pods import Entrance
from grid.core.labels import KEYS
from grid.kube.objects import RawObject
from grid.sharing.grants import Key, Passage, Use
from tests.support.builders import decode, pod

PASSAGE = Passage(execution_id="abc", state="running", message="", port=8888)


@dataclass
class Grants:
    """In memory: `known` opens, `asked` counts the rounds; it can be made to fail, and to wait for `answer`."""

    known: dict[Key, Passage] = field(default_factory=dict)
    asked: list[set[Key]] = field(default_factory=list)
    touched: list[set[Use]] = field(default_factory=list)
    fails: bool = False
    answer: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.answer.set()

    async def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
        if self.fails:
            raise ConnectionError("gone")
        return "s1"

    async def passages(self, keys: Collection[Key]) -> Mapping[Key, Passage]:
        self.asked.append(set(keys))
        await self.answer.wait()
        if self.fails:
            raise ConnectionError("gone")
        return {key: self.known[key] for key in keys if key in self.known}

    async def touch(self, used: Collection[Use]) -> None:
        self.touched.append(set(used))


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


KEY = ("abc", "s1")


def gate_of(grants: Grants, clock: Clock | None = None, *, pods: Sequence[Entrance] | None = None) -> GrantGate:
    listening = [decode(running("mine", "10.0.0.7"), Entrance)] if pods is None else pods
    return GrantGate(grants, lambda execution_id: listening, namespace="compute-grid", clock=clock or Clock())


async def test_a_hundred_requests_at_once_ask_the_database_once() -> None:
    grants = Grants({KEY: PASSAGE})
    gate = gate_of(grants)
    assert await asyncio.gather(*(gate.passage(*KEY) for _ in range(100))) == [PASSAGE] * 100
    assert await gate.passage(*KEY) == PASSAGE
    assert len(grants.asked) == 1


async def test_somebody_elses_secret_beside_ones_own_opens_nothing() -> None:
    gate = gate_of(Grants({KEY: PASSAGE}))
    mine, theirs = await asyncio.gather(gate.passage(*KEY), gate.passage("other", "s1"))
    assert (mine, theirs) == (PASSAGE, None)


async def test_next_round_ends_open_access_and_refuses_new() -> None:
    grants = Grants({KEY: PASSAGE})
    gate = gate_of(grants)
    await gate.passage(*KEY)
    with gate.holding(*KEY) as ended:
        await gate.recheck()
        assert not ended.is_set()
        grants.known.clear()
        await gate.recheck()
        assert ended.is_set()
    assert await gate.passage(*KEY) is None


async def test_ended_execution_closes_connections_although_its_end_is_visible() -> None:
    grants = Grants({KEY: PASSAGE})
    gate = gate_of(grants)
    await gate.passage(*KEY)
    with gate.holding(*KEY) as ended:
        grants.known[KEY] = replace(PASSAGE, has_ended=True)
        await gate.recheck()
        assert ended.is_set()
    answer = await gate.passage(*KEY)
    assert answer is not None
    assert answer.has_ended


async def test_end_is_known_once_pod_is_gone() -> None:
    grants, pods = Grants({KEY: PASSAGE}), [decode(running("mine", "10.0.0.7"), Entrance)]
    gate = gate_of(grants, pods=pods)
    await gate.passage(*KEY)
    grants.known[KEY] = replace(PASSAGE, has_ended=True)
    assert await gate.passage(*KEY) == PASSAGE
    pods.clear()
    assert await gate.passage(*KEY) == grants.known[KEY]
    await gate.passage(*KEY)
    assert len(grants.asked) == 2, "an end is not asked about again"


async def test_waiting_visitor_neither_hangs_nor_passes_on_stale_answer() -> None:
    grants, clock = Grants({KEY: PASSAGE}), Clock()
    gate = gate_of(grants, clock, pods=[])
    await gate.passage(*KEY)
    grants.answer.clear()
    assert await gate.passage(*KEY) == PASSAGE
    clock.now += 29
    late = asyncio.create_task(gate.passage(*KEY))
    await asyncio.sleep(0.1)
    clock.now += 2
    with pytest.raises(CannotTell):
        await late
    grants.answer.set()


async def test_readmitted_visitor_is_not_cut_by_earlier_end() -> None:
    grants = Grants()
    clock = Clock()
    gate = gate_of(grants, clock)
    assert await gate.passage(*KEY) is None
    grants.known[KEY] = PASSAGE
    clock.now += 2
    assert await gate.passage(*KEY) == PASSAGE
    with gate.holding(*KEY) as ended:
        assert not ended.is_set()


async def test_failing_database_is_tolerated_half_a_minute_then_blocks() -> None:
    grants, clock = Grants({KEY: PASSAGE}), Clock()
    gate = gate_of(grants, clock)
    await gate.passage(*KEY)
    with gate.holding(*KEY) as ended:
        grants.fails = True
        clock.now += 29
        await gate.recheck()
        assert await gate.passage(*KEY) == PASSAGE
        assert not ended.is_set()
        clock.now += 1
        await gate.recheck()
        assert ended.is_set()
    for key in (KEY, ("new", "s2")):  # nor are those refused who were in: nobody can tell
        with pytest.raises(CannotTell):
            await gate.passage(*key)
    with pytest.raises(CannotTell):
        await gate.exchange("abc", "t", "o", now=datetime(2026, 1, 1, tzinfo=UTC))


async def test_each_outage_of_the_database_is_warned_of_once_though_nobody_holds_a_passage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    grants, clock = Grants({KEY: PASSAGE}), Clock()
    gate = gate_of(grants, clock)
    for number in range(2):
        grants.fails = True
        for secret in ("first", "second"):
            with pytest.raises(CannotTell):
                await gate.passage("abc", secret)
        assert len(caplog.records) == number + 1
        grants.fails = False
        assert await gate.passage("abc", f"stranger-{number}") is None


async def test_a_database_that_never_answers_is_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "_ANSWER_SECONDS", 0.3)
    grants, clock = Grants({KEY: PASSAGE}), Clock()
    gate = GrantGate(grants, lambda execution_id: [], namespace="compute-grid", clock=clock)
    await gate.passage(*KEY)
    with gate.holding(*KEY) as ended:
        grants.answer.clear()
        clock.now += 30
        await asyncio.wait_for(gate.recheck(), 5)
        assert ended.is_set()
    with pytest.raises(CannotTell):
        await asyncio.wait_for(gate.passage("new", "s2"), 5)


async def test_slow_database_delays_no_admitted_visitor() -> None:
    grants = Grants({KEY: PASSAGE})
    gate = gate_of(grants)
    await gate.passage(*KEY)
    grants.answer.clear()
    round = asyncio.create_task(gate.recheck())
    await asyncio.sleep(0)
    assert await asyncio.wait_for(gate.passage(*KEY), 10) == PASSAGE
    grants.answer.set()
    await round


async def test_unused_access_is_forgotten_and_open_access_stays() -> None:
    grants, clock = Grants({KEY: PASSAGE, ("abc", "s2"): PASSAGE}), Clock()
    gate = gate_of(grants, clock)
    await gate.passage(*KEY)
    await gate.passage("abc", "s2")
    with gate.holding(*KEY):
        clock.now += 11
        await gate.recheck()
    assert grants.asked[-1] == {KEY}


async def test_sessions_of_active_people_are_marked_used() -> None:
    grants = Grants()
    gate = gate_of(grants)
    gate.used(replace(PASSAGE, session_key="one"))
    gate.used(replace(PASSAGE, session_key="one"))
    await gate.touch_sessions()
    await gate.touch_sessions()
    assert grants.touched == [{("abc", "one")}]


def running(
    name: str, address: str, *, namespace: str = "compute-grid", phase: str = "Running", **fields: Any
) -> RawObject:
    made = pod(name, namespace=namespace, node="n1", phase=phase, **fields)
    made["status"]["podIP"] = address
    return made


def target(*pods: RawObject, passage: Passage = PASSAGE) -> Target | None:
    gate = GrantGate(Grants(), lambda execution_id: [decode(pod, Entrance) for pod in pods], namespace="compute-grid")
    return gate.target(passage)


def test_pod_of_another_namespace_never_gets_requests() -> None:
    foreign = running("bait", "10.6.6.6", namespace="elsewhere")
    assert target(foreign) is None
    assert target(foreign, running("mine", "10.0.0.7")) == Target("10.0.0.7", 8888)


@pytest.mark.parametrize(("address", "phase"), [("", "Running"), ("10.0.0.7", "Pending"), ("10.0.0.7", "Failed")])
def test_pod_without_address_or_not_running_is_not_reached(address: str, phase: str) -> None:
    assert target(running("mine", address, phase=phase)) is None


@pytest.mark.parametrize(("execution_id", "secret"), [("abc", "s" * 60_000), ("a" * 60_000, "s")])
async def test_overlong_key_is_neither_looked_up_nor_kept(execution_id: str, secret: str) -> None:
    grants = Grants()
    assert await gate_of(grants).passage(execution_id, secret) is None
    assert grants.asked == []


def test_ipv6_address_is_bracketed_in_requests() -> None:
    assert Target("fd00::7", 8888).netloc == "[fd00::7]:8888"


def test_remaining_head_of_a_cluster_answers() -> None:
    passage = replace(PASSAGE, component="head", port=8265)
    head = {"app.kubernetes.io/component": "head"}
    worker = running("worker", "10.0.0.1", labels={"app.kubernetes.io/component": "worker"})
    leaving = running("old", "10.0.0.2", labels=head, deletionTimestamp="2026-03-04T09:00:00Z")
    assert target(worker, passage=passage) is None
    assert target(worker, leaving, passage=passage) == Target("10.0.0.2", 8265)
    assert target(worker, leaving, running("new", "10.0.0.3", labels=head), passage=passage) == Target("10.0.0.3", 8265)


def test_pod_with_nginx_is_entered_there_and_others_directly() -> None:
    passage = replace(PASSAGE, front_port=19080)
    sidecar = {"initContainers": [{"name": "nginx", "restartPolicy": "Always"}]}
    fronted = target(running("mine", "10.0.0.7", spec=sidecar), passage=passage)
    assert fronted is not None
    assert (fronted.entrance, fronted.netloc) == ("10.0.0.7:19080", "10.0.0.7:8888")
    # Where the cluster has no native sidecars.
    spec = {"containers": [{"name": "run"}, {"name": "nginx"}]}
    ordinary = target(running("mine", "10.0.0.7", spec=spec, labels={KEYS.execution: "abc"}), passage=passage)
    assert ordinary == fronted
    # A step of the start-up listens no more.
    step = {"initContainers": [{"name": "nginx"}]}
    for made in (running("mine", "10.0.0.7"), running("mine", "10.0.0.7", spec=step)):
        direct = target(made, passage=passage)
        assert direct is not None
        assert direct.entrance == "10.0.0.7:8888"


@pytest.mark.parametrize(("restarts", "ready", "has_crashed"), [(0, False, False), (2, True, False), (2, False, True)])
def test_restarted_program_that_is_not_ready_has_crashed(restarts: int, ready: bool, has_crashed: bool) -> None:
    program = {"name": "run", "restartCount": restarts, "ready": ready}
    address = target(running("mine", "10.0.0.7", statuses=[program]))
    assert address is not None
    assert address.has_crashed == has_crashed
