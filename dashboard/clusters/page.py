"""A cluster on the pages of executions: its stored values and samples, and from the watch caches its pods, autoscaler and pool.

The frameworks are not polled here: the controller writes their figures to annotations and samples.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from dashboard.clusters.viewmodels.autoscaling import autoscaling
from dashboard.clusters.viewmodels.clusters import ClusterRecord, cluster_of, troubles
from dashboard.clusters.viewmodels.samples import SamplePoint, SampleRow, sample_rows, scale_events
from dashboard.clusters.viewmodels.workers import worker_cells
from dashboard.executions.kinds import Presence
from dashboard.executions.pages.execution_pods import POD_STATES, explain, pods_of
from dashboard.executions.viewmodels.execution import Companion, ExecutionRecord, Person
from dashboard.shell.viewmodels.listing import EmptyState
from grid.core.labels import APP_COMPONENT, HEAD, Keys
from grid.core.translation import gettext as _
from grid.diagnosis.clusters import ClusterSnapshot, Member, explain_cluster, summary
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.requests import has_ended
from grid.kube.objects import Pod, is_ready
from grid.models import ClusterSample, Execution
from grid.runtime import Runtime

RECENT = timedelta(minutes=20)


def cluster_record(execution: Execution, now: datetime | None) -> ClusterRecord:
    """Return the cluster's values; with `now`, its recent samples are read too."""
    spec = _dict(_dict(execution.spec).get("cluster"))
    head, scaling = _dict(spec.get("head_tier")), _dict(spec.get("scaling"))
    recent: Sequence[SamplePoint] = ()
    if now is not None:
        recent = read_samples(execution.pk, after=(execution.ended_at or now) - RECENT)
    return ClusterRecord(
        framework=execution.framework,
        head_millicores=execution.head_millicores,
        head_memory_bytes=execution.head_memory_bytes,
        head_gpus=execution.head_gpus,
        workers_minimum=execution.workers_minimum,
        workers_maximum=execution.workers_maximum,
        head_tier_name=str(head.get("name", "")),
        head_cost_per_hour=execution.head_price_per_hour,
        autoscale=bool(scaling.get("autoscale", True)),
        target_cpu=int(scaling.get("target_cpu", 80)),
        target_memory=int(scaling.get("target_memory", 80)),
        on_demand=bool(scaling.get("on_demand", False)),
        pending_tasks=recent[-1].pending_tasks if recent else None,
        wanted_before=tuple((sample.at, sample.wanted) for sample in recent),
    )


def read_samples(execution_id: str, *, after: datetime | None = None) -> Sequence[SamplePoint]:
    """Return all samples, or those after a time, oldest first; thinned as they are, a week of a steady cluster has some 2,500."""
    samples = ClusterSample.objects.filter(execution=execution_id).order_by("at")
    if after is not None:
        samples = samples.filter(at__gt=after)
    columns = samples.values_list("at", "ready", "wanted", "cpu_percent", "memory_percent", "pending_tasks")
    return [SamplePoint(*values) for values in columns]


def samples_table(record: ExecutionRecord) -> list[SampleRow]:
    samples = read_samples(record.id)
    return sample_rows(samples, scale_events(samples, record.lifecycle))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def is_head(pod: Pod) -> bool:
    return pod.metadata.labels.get(APP_COMPONENT) == HEAD


def cluster_snapshot(
    runtime: Runtime, id: str, cluster: ClusterRecord, node_pool: str, now: datetime, *, sees_all: bool = False
) -> ClusterSnapshot:
    """Return the cluster's present state. Pods that have ended are no members any more; of two heads the one that stays counts."""
    members = [_member(runtime, pod, now, sees_all) for pod in pods_of(runtime, id) if not has_ended(pod)]
    heads = sorted((member for member in members if is_head(member.pod)), key=lambda member: member.phase == "ending")
    autoscalers = runtime.autoscalers.by("execution", id)  # labels are trusted in the executions' namespace only
    return ClusterSnapshot(
        minimum=cluster.workers_minimum,
        maximum=cluster.workers_maximum,
        autoscales=cluster.autoscale,
        head=next(iter(heads), None),
        workers=tuple(member for member in members if not is_head(member.pod)),
        autoscaler=next((each for each in autoscalers if each.metadata.namespace == settings.GRID_NAMESPACE), None),
        ready_nodes=sum(is_ready(node) for node in runtime.nodes.by("pool", node_pool)),
        wanted_before=cluster.wanted_before,
    )


def cluster_diagnosis(facts: ClusterSnapshot, diagnoses: Sequence[Diagnosis]) -> Diagnosis:
    """Return one diagnosis for all: a summary, as severe as the first while members are missing, with the code "running" when it works."""
    is_short = not facts.head_is_up or facts.ready < facts.minimum
    worst = diagnoses[0].severity if diagnoses and is_short else "ok"
    return Diagnosis("running" if facts.head_is_up and facts.ready else "cluster", summary(facts), worst, "")


def cluster_summary(runtime: Runtime, other: Companion, now: datetime) -> Diagnosis | None:
    cluster = cluster_of(other)
    if cluster is None:
        return None
    return cluster_diagnosis(cluster_snapshot(runtime, other.id, cluster, other.node_pool, now), ())


def cluster_presence(
    runtime: Runtime, record: ExecutionRecord, pods: Sequence[Pod], viewer: Person, now: datetime
) -> Presence:
    cluster = cluster_of(record)
    assert cluster is not None
    snapshot = cluster_snapshot(runtime, record.id, cluster, record.node_pool, now, sees_all=viewer.sees_all)
    diagnoses = explain_cluster(snapshot, now=now)
    if not viewer.may_read:
        diagnoses = tuple(replace(diagnosis, evidence=()) for diagnosis in diagnoses)
    first = snapshot.head.pod if snapshot.head is not None else next(filter(is_head, pods), None)
    report_key = Keys.under(settings.LABEL_PREFIX).worker_report
    used, pool = {pod.spec.node_name for pod in pods}, runtime.nodes.by("pool", record.node_pool)
    shown = diagnoses if record.state in POD_STATES and record.stop_requested_at is None else ()
    return Presence(
        pod=first,
        diagnosis=cluster_diagnosis(snapshot, diagnoses) if record.state in POD_STATES else None,
        pods=[pod for pod in pods if pod is first],
        # Those on which its pods run, and those that are not ready yet.
        nodes=[node for node in pool if node.metadata.name in used or not is_ready(node)],
        workers=snapshot.on_nodes,
        fragments=[
            troubles(shown, is_operator=viewer.is_operator, sees_all=viewer.sees_all),
            *worker_cells(snapshot, runtime.usage.pod, report_key, empty=_no_workers(record), now=now),
            autoscaling(cluster, snapshot.autoscaler, is_final=record.is_final),
        ],
    )


def cluster_objects(record: ExecutionRecord) -> Sequence[tuple[str, str]]:
    worker, head = f"{record.object_name}-worker", f"{record.object_name}-head"
    return ("HorizontalPodAutoscaler", worker), ("Deployment", worker), ("Deployment", head)


def _member(runtime: Runtime, pod: Pod, now: datetime, sees_all: bool) -> Member:
    meta = pod.metadata
    events = runtime.events.about(kind="Pod", name=meta.name, namespace=meta.namespace, uid=meta.uid)
    return Member(pod, explain(runtime, pod, now, sees_all=sees_all), tuple(events))


def _no_workers(record: ExecutionRecord) -> EmptyState:
    if record.is_final:
        advice = _("What they did is under “What happened” and in the chart.")
        return EmptyState(_("There are no workers: the cluster has ended."), advice)
    if record.state in ("queued", "deploying"):
        return EmptyState(_("There are no workers yet."), _("They are created when the cluster is sent to Kubernetes."))
    return EmptyState(_("There are no workers now."), _("They come back as soon as Kubernetes creates them."))
