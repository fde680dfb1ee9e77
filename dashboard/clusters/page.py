"""Reads an on-demand cluster from the watch caches: its pods, its autoscaler and its pool, and the page's fragments about them.

The frameworks are not polled here: the controller writes their figures to annotations and samples.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.conf import settings

from dashboard.clusters.viewmodels.autoscaling import autoscaling
from dashboard.clusters.viewmodels.clusters import ClusterRecord, cluster_of, troubles
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
from grid.kube.objects import Autoscaler, Node, Pod, is_ready
from grid.runtime import Runtime


def is_head(pod: Pod) -> bool:
    return pod.metadata.labels.get(APP_COMPONENT) == HEAD


def cluster_snapshot(
    runtime: Runtime, id: str, cluster: ClusterRecord, node_pool: str, now: datetime, *, sees_all: bool = False
) -> ClusterSnapshot:
    """Return the cluster's present state. Pods that have ended are no members any more; of two heads the one that stays counts."""
    members = [_member(runtime, pod, now, sees_all) for pod in pods_of(runtime, id) if not has_ended(pod)]
    heads = sorted((member for member in members if is_head(member.pod)), key=lambda member: member.phase == "ending")
    return ClusterSnapshot(
        minimum=cluster.workers_minimum,
        maximum=cluster.workers_maximum,
        autoscales=cluster.autoscale,
        head=heads[0] if heads else None,
        workers=tuple(member for member in members if not is_head(member.pod)),
        autoscaler=autoscaler_of(runtime, id),
        ready_nodes=sum(is_ready(node) for node in runtime.nodes.by("pool", node_pool)),
        wanted_before=cluster.wanted_before,
    )


def autoscaler_of(runtime: Runtime, id: str) -> Autoscaler | None:
    """Return the cluster's autoscaler, or None. Labels are trusted in the executions' namespace only."""
    known = runtime.autoscalers.by("execution", id)
    return next((each for each in known if each.metadata.namespace == settings.GRID_NAMESPACE), None)


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
    shown = diagnoses if record.state in POD_STATES and record.stop_requested_at is None else ()
    return Presence(
        pod=first,
        diagnosis=cluster_diagnosis(snapshot, diagnoses) if record.state in POD_STATES else None,
        pods=[pod for pod in pods if pod is first],
        nodes=_nodes(runtime, record, pods),
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


def _nodes(runtime: Runtime, record: ExecutionRecord, pods: Sequence[Pod]) -> list[Node]:
    used = {pod.spec.node_name for pod in pods}
    pool = runtime.nodes.by("pool", record.node_pool)
    return [node for node in pool if node.metadata.name in used or not is_ready(node)]


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
