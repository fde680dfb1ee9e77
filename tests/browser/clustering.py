"""What the clusters' browser tests put on the stage: a workspace with a cluster that grows, rests, is in trouble, or has ended."""

from datetime import UTC, datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async

from grid.kube.objects import RawObject
from grid.kube.resources import AUTOSCALERS, EVENTS, NODES, PODS
from grid.models import ClusterSample, Execution, LifecycleEntry
from tests.browser import executing
from tests.browser.scenes import usage
from tests.browser.server import Stage
from tests.clusters.clustering import autoscaler, cluster_columns, cluster_spec, head_pod, waiting_worker, worker_pod
from tests.support import builders
from tests.support.builders import NAMESPACE, condition, container_status

ID, WORKSPACE = "dask2222cc", "note2222ww"
_ABOVE = "cpu resource utilization (percentage of request) above target"
_NAMES = (
    *("b7x2p", "c4kqm", "d9fwz", "f2hjn", "g5tqx", "h8vlc", "j3mrd", "k6pzs"),
    *("l9nbt", "m4wgf", "n7cyh", "p2jxk", "q5rdv", "r8lsb", "s3tmw", "t6vgn"),
)
# Minutes ago from which so many workers were wanted, and the autoscaler's reason.
_COURSE = (
    (50, 1, ""),
    (42, 3, _ABOVE),
    (38, 6, _ABOVE),
    (24, 2, "All metrics below target"),
    (9, 6, _ABOVE),
    (2, 16, _ABOVE),
)


async def growing(stage: Stage) -> None:
    """Six of sixteen: the others wait for the second of three nodes, or for the image."""
    await _stored(stage, maximum=20)
    now = datetime.now(UTC)
    for name in ("default-7f4k2",):
        stage.cluster.put(NODES, builders.node(name, cpu="16", memory="64Gi", created=now - timedelta(hours=2)))
    stage.cluster.put(PODS, head_pod(ID, node="default-7f4k2", created=now - timedelta(minutes=50)))
    measured: dict[str, list[int]] = {}
    for place, name in enumerate(_NAMES):
        created = now - timedelta(minutes=40 if place < 2 else 8 if place < 6 else 1.5, seconds=-place)
        if place < 6:
            made = worker_pod(ID, name, node="default-7f4k2", created=created, cost=100 + 40 * place, tasks=9 + 7 * place % 11,
                              held=(place * 7 % 5) * 2**28)  # fmt: skip
            measured[f"{NAMESPACE}/{made['metadata']['name']}"] = [1500 + place * 97, 1400 + 900 * (place * 5 % 6)]
        elif place < 8:
            made = worker_pod(ID, name, node="default-7f4k2", created=created, ready=False, phase="Pending",
                              statuses=[container_status(state={"waiting": {"reason": "ContainerCreating"}})])  # fmt: skip
            _tell(
                stage,
                made,
                "Pulling",
                'Pulling image "compute-grid/dask:2026.8"',
                now - timedelta(seconds=35),
                "kubelet",
            )
        else:
            made = waiting_worker(ID, name, created=created)
            message = "pod triggered scale-up: [{default 1->3 (max: 5)}]"
            _tell(stage, made, "TriggeredScaleUp", message, now - timedelta(seconds=70), "cluster-autoscaler")
        stage.cluster.put(PODS, made)
    stage.cluster.put(AUTOSCALERS, autoscaler(ID, maximum=20, current=16, desired=16, cpu=93))
    await usage(stage, {}, measured)
    for name in ("head-7d9f-abcde", *(f"worker-6468bd54f7-{each}" for each in _NAMES[:6])):
        lines = [
            f"{(now - timedelta(seconds=300 - 7 * number)).strftime('%Y-%m-%dT%H:%M:%SZ')} {name}: step {number}"
            for number in range(40)
        ]
        stage.cluster.set_log(f"cluster-{ID}-{name}", lines, namespace=NAMESPACE, container="run")
    await executing._take_in(stage)


async def grown(stage: Stage) -> None:
    """The nodes have come: all sixteen work."""
    now = datetime.now(UTC)
    for name in ("default-n2q8v", "default-p5w3k"):
        stage.cluster.put(NODES, builders.node(name, cpu="16", memory="64Gi", created=now - timedelta(seconds=60)))
    for place, name in enumerate(_NAMES[6:]):
        node = "default-7f4k2" if place < 2 else "default-n2q8v"
        stage.cluster.put(PODS, worker_pod(ID, name, node=node, created=now - timedelta(minutes=1), cost=0, tasks=1))


async def troubled(stage: Stage) -> None:
    """The head does not start again, a worker died of memory, no metrics."""
    await _stored(
        stage,
        maximum=5,
        course=((30, 3, ""), (20, 1, ""), (16, 4, ""), (12, 1, ""), (8, 4, ""), (4, 1, ""), (1, 3, "")),
    )
    now = datetime.now(UTC)
    stage.cluster.put(NODES, builders.node("default-7f4k2", created=now - timedelta(hours=2)))
    ended = {"exitCode": 1, "reason": "Error", "finishedAt": builders.stamp(now - timedelta(seconds=40))}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container=run"}}
    crashed = container_status(restarts=4, state=waiting, lastState={"terminated": ended})
    stage.cluster.put(PODS, head_pod(ID, node="default-7f4k2", ready=False, statuses=[crashed]))
    await usage(stage, {})
    killed = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": builders.stamp(now - timedelta(seconds=90))}
    again = container_status(ready=True, restarts=2, lastState={"terminated": killed})
    stage.cluster.put(PODS, worker_pod(ID, "b7x2p", node="default-7f4k2", statuses=[again], tasks=3))
    no_image = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "dask:9": not found'}}
    broken = container_status(state=no_image)
    stage.cluster.put(
        PODS, worker_pod(ID, "c4kqm", node="default-7f4k2", ready=False, phase="Pending", statuses=[broken])
    )
    stage.cluster.put(PODS, waiting_worker(ID, "d9fwz"))
    message = (
        "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for resource cpu: "
        "unable to fetch metrics from resource metrics API: the server is currently unable to handle the request"
    )
    able = condition(
        "AbleToScale", "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale"
    )
    inactive = condition("ScalingActive", "False", "FailedGetResourceMetric", message)
    stage.cluster.put(AUTOSCALERS, autoscaler(ID, current=3, desired=3, cpu=None, conditions=[able, inactive]))
    await executing._take_in(stage)


async def ended(stage: Stage) -> None:
    now = datetime.now(UTC)
    await _stored(stage, maximum=5, state="stopped", ended_at=now - timedelta(minutes=1), message="Stopped by alice.",
                  log="scheduler closed\n", course=((50, 1, ""), (40, 5, _ABOVE), (20, 1, "All metrics below target")))  # fmt: skip
    await executing._take_in(stage)


async def size(stage: Stage) -> list[int]:
    cluster = await sync_to_async(Execution.objects.get)(pk=ID)
    return [cluster.workers_minimum, cluster.workers_maximum]


async def sample_now(stage: Stage, ready: int, wanted: int) -> None:
    """One more point of the chart."""
    await sync_to_async(ClusterSample.objects.create)(
        execution_id=ID, at=datetime.now(UTC), ready=ready, wanted=wanted, cpu_percent=88, memory_percent=40
    )


async def _stored(
    stage: Stage,
    *,
    maximum: int,
    course: tuple[tuple[int, int, str], ...] = _COURSE,
    state: str = "running",
    **fields: Any,
) -> None:
    await executing.team(stage)
    await sync_to_async(_rows)(maximum, course, state, fields)


def _rows(maximum: int, course: tuple[tuple[int, int, str], ...], state: str, fields: dict[str, Any]) -> None:
    now = datetime.now(UTC)
    started = now - timedelta(minutes=course[0][0])
    workspace = executing._make(WORKSPACE, owner="alice", state="running", minutes=60, title="Churn exploration",
                                started_at=started)  # fmt: skip
    spec = cluster_spec(ID, maximum=maximum)
    cluster = executing._make(
        ID, owner="alice", state=state, minutes=60, kind="cluster", tier="large", title="Feature building", started_at=started,
        slots=1 + maximum, attached_to=workspace, slots_reserved_at=started, spec=spec, **cluster_columns(spec), **fields,
    )  # fmt: skip
    minute, ready = float(course[0][0]), 0
    while minute > (1.5 if fields.get("ended_at") else 0):
        wanted = [count for ago, count, _ in course if ago >= minute][-1]
        ready += (wanted > ready) - (wanted < ready)
        ready = ready if maximum < 50 else wanted
        cpu = min(100, 55 + (38 if wanted > ready else 17 if minute % 3 < 1 else 4))
        ClusterSample.objects.create(execution=cluster, at=now - timedelta(minutes=minute), ready=ready,
                                     wanted=wanted, cpu_percent=cpu, memory_percent=30 + 2 * ready % 40)  # fmt: skip
        minute -= 0.5
    for ago, count, reason in course[1:]:
        LifecycleEntry.objects.create(
            execution=cluster, at=now - timedelta(minutes=ago), source="kubernetes", event_uid=f"rescale-{ago}",
            object=f"HorizontalPodAutoscaler/cluster-{ID}-worker", reason="SuccessfulRescale",
            message=f"New size: {count}; reason: {reason}",
        )  # fmt: skip


def _tell(stage: Stage, about: RawObject, reason: str, message: str, at: datetime, component: str) -> None:
    name = f"{about['metadata']['name']}.{reason}".lower()
    stage.cluster.put(
        EVENTS, builders.event(name, about=about, reason=reason, message=message, at=at, component=component)
    )
