"""What the executions' browser tests put on the stage: a team with tiers, and executions in every state, also about to be stopped."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from grid.configuration import WORKSPACE_IDLE
from grid.core.labels import KEYS, NODE_POOL
from grid.kube.objects import RawObject
from grid.kube.resources import EVENTS, NODES, PODS
from grid.models import (
    ApiCheckRun,
    ConfigRecord,
    Environment,
    Execution,
    ExecutionLog,
    HardwareTier,
    Job,
    JobRun,
    LifecycleEntry,
    Project,
    StartUp,
    StopPlan,
    User,
    Workspace,
)
from grid.runtime.executionrows import read_rows
from tests.browser.server import Stage
from tests.shell.filling import slow_filling
from tests.support import builders, platform
from tests.support.frozen import on_tier

GPU = {"cpu": "3", "memory": "12Gi", "nvidia.com/gpu": "1"}


def _team() -> None:
    for model in (Execution, StartUp, JobRun, Job, Workspace, Environment, HardwareTier, Project):
        model.objects.all().delete()
    alice, bob = User.objects.get(username="alice"), User.objects.get(username="bob")
    churn = Project.objects.start(id="churn", name="Customer churn", owner=alice)
    churn.members.add(bob, through_defaults={"role": "contributor"})
    Project.objects.start(id="vision", name="Product photos", owner=bob)
    Environment.objects.create(
        id="jupyterlab",
        name="JupyterLab",
        description="JupyterLab 4 with Python 3.",
        image="compute-grid/jupyterlab:4.6",
        port=8888,
    )
    Environment.objects.create(id="script", name="Python script", kind="job", image="python:3.11")
    tier = HardwareTier.objects.create
    tier(id="small", name="Small", node_pool="default", cores="1", memory="4Gi", cost_per_hour="0.05", is_default=True,
         description="Notebooks and light analysis.")  # fmt: skip
    tier(id="large", name="Large", node_pool="default", cores="7", memory="28Gi", cost_per_hour="0.38", maximum_simultaneous=4,
         description="A whole machine: 7 cores, shared memory for data loaders.")  # fmt: skip
    tier(id="gpu", name="GPU", node_pool="default-gpu", cores="3", memory="12Gi", gpus=1, cost_per_hour="0.53",
         description="One GPU; its machine is started when you need it.")  # fmt: skip


def _make(id: str, *, owner: str, state: str, minutes: float, **fields: Any) -> Execution:
    now = datetime.now(UTC)
    asked = now - timedelta(minutes=minutes)
    tier = HardwareTier.objects.get(pk=fields.pop("tier", "small"))
    values: dict[str, Any] = {
        "kind": "workspace",
        "environment": Environment.objects.get(pk="jupyterlab"),
        "project": Project.objects.get(pk=fields.pop("project", "churn")),
        "requested_at": asked,
        "state_since": asked + timedelta(minutes=minutes / 2),
        **on_tier(tier),
        **fields,
    }
    log = values.pop("log", "")
    execution = Execution.objects.create(id=id, owner=User.objects.get(username=owner), state=state, **values)
    if log:
        ExecutionLog.objects.create(execution=execution, text=log)
    way = ["queued", "deploying", "preparing", "running"]
    passed = way[: way.index(state) + 1] if state in way else [*way, state]
    messages = {"queued": "Waiting for a free slot.", "deploying": "A slot was free."}
    for place, each in enumerate(passed):
        at = asked + timedelta(minutes=minutes / 2 * place / max(1, len(passed) - 1))
        LifecycleEntry.objects.create(
            execution=execution, at=at, to_state=each, reason=each, message=messages.get(each, fields.get("message", "")),
            actor=owner if each == "queued" else "",
        )  # fmt: skip
    return execution


async def _take_in(stage: Stage) -> None:
    stage.runtime.executions.replace(await sync_to_async(read_rows)(stage.runtime.clock()))


def _pod(id: str, *, minutes: float = 5, name: str = "", **fields: Any) -> Any:
    labels = {KEYS.execution: id, **fields.pop("labels", {})}
    created = datetime.now(UTC) - timedelta(minutes=minutes)
    return builders.pod(name or f"workspace-{id}", labels=labels, created=created, **fields)


async def team(stage: Stage) -> None:
    await sync_to_async(_team)()
    await _take_in(stage)


async def put(stage: Stage, id: str, state: str, owner: str = "alice", minutes: float = 5, **fields: Any) -> None:
    """One execution; with a pod on node-a when it runs."""
    await sync_to_async(_make)(id, owner=owner, state=state, minutes=minutes, **fields)
    if state == "running":
        stage.cluster.put(PODS, _pod(id, minutes=minutes, node="node-a", phase="Running", ready=True))
    await _take_in(stage)


async def enter(stage: Stage, id: str, state: str, message: str = "") -> None:
    now = datetime.now(UTC)

    def write() -> None:
        started = {"started_at": now} if state == "running" else {}
        Execution.objects.filter(pk=id).update(
            state=state, state_since=now, message=message, reason_values=None, updated_at=now, **started
        )
        LifecycleEntry.objects.create(execution_id=id, at=now, to_state=state, reason=state, message=message)

    await sync_to_async(write)()
    await _take_in(stage)


async def latest(stage: Stage) -> str:
    execution = await sync_to_async(lambda: Execution.objects.order_by("-requested_at").first())()
    return execution.pk if execution else ""


async def count(stage: Stage) -> int:
    return await sync_to_async(Execution.objects.count)()


async def place_pod(stage: Stage, id: str, node: str = "", ready: bool = False, pool: str = "default-gpu") -> None:
    phase = "Running" if ready else "Pending"
    stage.cluster.put(PODS, _pod(id, minutes=1, node=node, phase=phase, ready=ready, requests=GPU))


async def await_node(stage: Stage, id: str) -> None:
    """Its pod asks for two cores of a pool whose nodes are full, cordoned or too small."""
    for number, (cpu, cordoned) in enumerate((("4", False), ("4", False), ("64", True), ("1", False))):
        name = f"fast-{number}"
        stage.cluster.put(NODES, builders.node(name, pool="fast", cpu=cpu, unschedulable=cordoned))
        asked = {"cpu": cpu}
        stage.cluster.put(
            PODS, builders.pod(f"on-{name}", node=name, phase="Running", namespace="other", requests=asked)
        )
    unschedulable = builders.condition(
        "PodScheduled", "False", "Unschedulable", "0/4 nodes are available: 3 Insufficient cpu."
    )
    spec = {"nodeSelector": {NODE_POOL: "fast"}}
    stage.cluster.put(PODS, _pod(id, requests={"cpu": "2"}, spec=spec, conditions=[unschedulable]))


async def tell(stage: Stage, id: str, name: str, reason: str, message: str, kind: str = "Normal") -> None:
    """An event about the execution's pod, now."""
    pod = next(pod for pod in stage.cluster.objects(PODS) if pod["metadata"]["name"] == f"workspace-{id}")
    at = datetime.now(UTC)
    stage.cluster.put(EVENTS, builders.event(name, about=pod, reason=reason, message=message, kind=kind, at=at))


def _executions_of_a_day(now: datetime) -> None:
    _make("aaaa2222bb", owner="alice", state="running", minutes=190, title="Churn exploration",
          started_at=now - timedelta(minutes=180), node_name="default-7f4k2")  # fmt: skip
    _make("bbbb3333cc", owner="alice", state="deploying", minutes=2, tier="gpu", title="Train the churn model")
    _make(
        "cccc4444dd",
        owner="alice",
        state="queued",
        minutes=1,
        message="You use 25 of 25 slots; this starts by itself when one is free. It is number 2 of yours.",
    )
    _make("dddd5555ee", owner="bob", state="preparing", minutes=9, title="Weekly report", project="churn")
    _make(
        "eeee6666ff",
        owner="bob",
        state="running",
        minutes=64,
        kind="cluster",
        title="Feature building on Dask",
        tier="large",
        head_tier=HardwareTier.objects.get(pk="small"),
        workers_minimum=1,
        workers_maximum=3,
    )
    _make("ffff7777gg", owner="alice", state="failed", minutes=500, title="Nightly scoring", kind="job",
          ended_at=now - timedelta(minutes=240), message="The program used more memory than the tier has.",
          log="loading data\nKilled\n")  # fmt: skip
    _make("gggg8888hh", owner="alice", state="stopped", minutes=5000, title="Old notebook",
          ended_at=now - timedelta(minutes=3000), message="Stopped by alice.")  # fmt: skip


def _pods_of_a_day(stage: Stage) -> RawObject:
    """Those of its executions; the answer is the one that no node has room for."""
    put_pod = stage.cluster.put
    small = {"cpu": "1", "memory": "4Gi"}
    put_pod(PODS, _pod("aaaa2222bb", minutes=189, node="default-7f4k2", phase="Running", ready=True, requests=small))
    no_room = "0/3 nodes are available: 1 node(s) had untolerated taint, 2 Insufficient nvidia.com/gpu."
    unscheduled = builders.condition("PodScheduled", "False", "Unschedulable", no_room)
    unplaced = put_pod(PODS, _pod("bbbb3333cc", minutes=2, requests=GPU, conditions=[unscheduled]))
    waiting = builders.container_status(
        state={"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "reports:9": not found'}}
    )
    put_pod(PODS, _pod("dddd5555ee", minutes=9, node="default-9x2mc", statuses=[waiting], requests=small))
    put_pod(PODS, _pod("eeee6666ff", name="cluster-eeee6666ff-head", minutes=64, node="default-9x2mc", phase="Running",
                       ready=True, labels={"app.kubernetes.io/component": "head"}))  # fmt: skip
    for number in range(2):
        put_pod(PODS, _pod("eeee6666ff", name=f"cluster-eeee6666ff-worker-{number}", minutes=60, node="default-9x2mc",
                           phase="Running", ready=True, requests={"cpu": "7", "memory": "28Gi"}))  # fmt: skip
    put_pod(
        PODS, _pod("eeee6666ff", name="cluster-eeee6666ff-worker-2", minutes=1, requests={"cpu": "7", "memory": "28Gi"})
    )
    return unplaced


async def working_day(stage: Stage) -> None:
    """Something of everything: waiting, fetching, running, in trouble, a cluster with workers, a teammate's, ended ones."""
    await team(stage)
    now = datetime.now(UTC)
    for name, pool in (
        ("default-7f4k2", "default"),
        ("default-9x2mc", "default"),
        ("default-gpu-k3v8d", "default-gpu"),
    ):
        stage.cluster.put(NODES, builders.node(name, pool=pool, created=now - timedelta(hours=3)))
    await sync_to_async(_executions_of_a_day)(now)
    await sync_to_async(platform.store)(platform.BAD)
    await sync_to_async(ApiCheckRun.objects.all().delete)()
    await sync_to_async(platform.store_api_checks)()
    await sync_to_async(platform.store_old_environment)()
    unplaced = _pods_of_a_day(stage)
    for name, reason, message, seconds, component in (
        ("w1", "FailedScheduling", "0/3 nodes are available: 2 Insufficient nvidia.com/gpu.", 110, "default-scheduler"),
        ("w2", "TriggeredScaleUp", "pod triggered scale-up: [{default-gpu 1->2 (max: 2)}]", 80, "cluster-autoscaler"),
    ):
        at = now - timedelta(seconds=seconds)
        kind = "Warning" if reason == "FailedScheduling" else "Normal"
        event = builders.event(
            name, about=unplaced, reason=reason, message=message, at=at, kind=kind, component=component
        )
        stage.cluster.put(EVENTS, event)
    stage.cluster.put(
        NODES, builders.node("default-gpu-n7q2p", pool="default-gpu", ready=False, created=now - timedelta(seconds=20))
    )
    lines = [
        f"2026-11-21 08:{number // 60:02}:{number % 60:02} step {number}: loss {2 / (number + 1):.4f}"
        for number in range(80)
    ]
    stage.cluster.set_log("workspace-aaaa2222bb", lines, namespace=builders.NAMESPACE, container="run")
    await _take_in(stage)


async def write_log(stage: Stage, name: str, lines: list[str]) -> None:
    """Lines that the program adds."""
    stage.cluster.set_log(name, lines, namespace=builders.NAMESPACE, container="run", append=True)


async def end(stage: Stage, id: str, name: str, log: str = "the end\n") -> None:
    """The program has ended: its pod is gone and the end of its log kept."""
    now = datetime.now(UTC)

    def write() -> None:
        Execution.objects.filter(pk=id).update(state="succeeded", ended_at=now, settled_at=now, updated_at=now)
        ExecutionLog.objects.create(execution_id=id, text=log)

    await sync_to_async(write)()
    stage.cluster.remove(PODS, name, namespace=builders.NAMESPACE)
    await _take_in(stage)


_slowed = pytest.MonkeyPatch()


async def slow_lists(stage: Stage, seconds: float) -> None:
    """From now on a list looks at one execution in that many seconds while it is filled; 0 ends that."""
    _slowed.undo()
    if seconds:
        slow_filling(_slowed, seconds)


async def about_to_stop(stage: Stage, id: str) -> None:
    """A workspace of alice's that was idle for 52 minutes of 75."""
    await team(stage)
    await put(stage, id=id, state="running", title="Forgotten", minutes=300)

    def write() -> None:
        now = datetime.now(UTC)
        ConfigRecord.objects.update_or_create(key=WORKSPACE_IDLE.key, defaults={"value": "75"})
        Execution.objects.filter(pk=id).update(started_at=now - timedelta(hours=4))
        StopPlan.objects.create(
            execution_id=id,
            active_at=now - timedelta(minutes=52),
            looked_at=now,
            evidence="no kernel busy, no terminal activity, CPU under 1 %",
            cause="idle",
            stops_at=now + timedelta(minutes=23),
        )

    await sync_to_async(write)()
    await _take_in(stage)


async def no_limits(stage: Stage) -> None:
    await sync_to_async(ConfigRecord.objects.all().delete)()
