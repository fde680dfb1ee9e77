"""Reads an on-demand cluster from the watch caches: its pods, its autoscaler and its pool, and the page's fragments about them.

The frameworks are not polled here: the controller writes their figures to annotations and samples.
"""

from collections.abc import Sequence
from datetime import datetime

from django.conf import settings

from dashboard.clusters.viewmodels.autoscaling import autoscaling
from dashboard.clusters.viewmodels.clusters import ClusterRecord, Companion, CompanionCard
from dashboard.clusters.viewmodels.troubles import troubles
from dashboard.clusters.viewmodels.workers import worker_cells
from dashboard.executions.pages.execution_pods import explain, pods_of
from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.executions.viewmodels.told import message_of
from dashboard.shell.viewmodels.kinds import KINDS, framework_name
from dashboard.shell.viewmodels.listing import EmptyState
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import state_status
from grid.core.labels import APP_COMPONENT, HEAD, Keys
from grid.core.translation import gettext as _
from grid.diagnosis.clusters import ClusterSnapshot, Member, summary
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.requests import has_ended
from grid.kube.objects import Autoscaler, Node, Pod, is_ready
from grid.runtime import Runtime

CLUSTER_STATES = frozenset({"deploying", "preparing", "running"})  # in which the pods tell the condition


def is_head(pod: Pod) -> bool:
    return pod.metadata.labels.get(APP_COMPONENT) == HEAD


def cluster_snapshot(
    runtime: Runtime, id: str, cluster: ClusterRecord, node_pool: str, now: datetime, *, sees_all: bool = False
) -> ClusterSnapshot:
    """Return the cluster's present state. Pods that have ended are no members any more; of two heads the one that stays counts."""
    members = [_member(runtime, pod, now, sees_all) for pod in pods_of(runtime, id) if not has_ended(pod)]
    heads = sorted((one for one in members if is_head(one.pod)), key=lambda one: one.phase == "ending")
    return ClusterSnapshot(
        minimum=cluster.workers_minimum,
        maximum=cluster.workers_maximum,
        autoscales=cluster.autoscale,
        head=heads[0] if heads else None,
        workers=tuple(one for one in members if not is_head(one.pod)),
        autoscaler=autoscaler_of(runtime, id),
        ready_nodes=sum(is_ready(node) for node in _pool(runtime, node_pool)),
        wanted_before=cluster.wanted_before,
    )


def autoscaler_of(runtime: Runtime, id: str) -> Autoscaler | None:
    """Return the cluster's autoscaler, or None. Labels are trusted in the executions' namespace only."""
    found = runtime.autoscalers.by("execution", id)
    return next((one for one in found if one.metadata.namespace == settings.GRID_NAMESPACE), None)


def cluster_diagnosis(facts: ClusterSnapshot, found: Sequence[Diagnosis]) -> Diagnosis:
    """Return one diagnosis for the whole cluster: a summary of its members, as severe as the first of `found` while members are missing.
    Its code is "running", as that of a pod, when the head and a worker are ready."""
    is_short = not facts.head_is_up or facts.ready < facts.minimum
    worst = found[0].severity if found and is_short else "ok"
    return Diagnosis("running" if facts.head_is_up and facts.ready else "cluster", summary(facts), worst, "")


def cluster_fragments(
    runtime: Runtime,
    record: ExecutionRecord,
    facts: ClusterSnapshot,
    found: Sequence[Diagnosis],
    *,
    is_operator: bool,
    sees_all: bool,
    now: datetime,
) -> list[Fragment]:
    """Return the fragments that a cluster's page has in addition to every execution's."""
    assert record.cluster is not None
    keys = Keys.under(settings.LABEL_PREFIX)
    shown = found if record.state in CLUSTER_STATES and record.stop_requested_at is None else ()
    return [
        troubles(shown, is_operator=is_operator, sees_all=sees_all),
        *worker_cells(facts, runtime.usage.pod, keys.worker_report, empty=_no_workers(record), now=now),
        autoscaling(record.cluster, facts.autoscaler, is_final=record.is_final),
    ]


def companion_fragment(runtime: Runtime, other: Companion, now: datetime, *, to_owner: bool) -> Fragment:
    """Return the companion's card in its present state."""
    row = runtime.executions.get(other.id)
    state = row.state if row else other.state
    status, _advice = state_status(state, message=message_of(row, to_owner=to_owner))
    sentence, kind = status.note, KINDS.get(other.kind, other.kind)
    if other.cluster is not None:
        kind = _("{framework} cluster", framework=framework_name(other.cluster.framework))
        if state in CLUSTER_STATES:
            look = cluster_snapshot(runtime, other.id, other.cluster, other.node_pool, now)
            sentence = summary(look)
            if state != "running":
                sentence = state_status(state, diagnosis=cluster_diagnosis(look, ()))[0].note
    card = CompanionCard(other.id, kind, other.name, status.word, status.severity, sentence)
    return Fragment("companion", "clusters/fragments/companion.html", card)


def cluster_objects(record: ExecutionRecord) -> Sequence[tuple[str, str]]:
    """Return the kinds and names of the objects that create the cluster's pods."""
    name = record.object_name
    return (
        ("HorizontalPodAutoscaler", f"{name}-worker"),
        ("Deployment", f"{name}-worker"),
        ("Deployment", f"{name}-head"),
    )


def cluster_nodes(runtime: Runtime, record: ExecutionRecord, pods: Sequence[Pod]) -> list[Node]:
    """Return the nodes of the workers' pool on which the cluster's pods run, and those that are not ready yet."""
    used = {pod.spec.node_name for pod in pods}
    pool = _pool(runtime, record.node_pool)
    return [node for node in pool if node.metadata.name in used or not is_ready(node)]


def _member(runtime: Runtime, pod: Pod, now: datetime, sees_all: bool) -> Member:
    meta = pod.metadata
    events = runtime.events.about(kind="Pod", name=meta.name, namespace=meta.namespace, uid=meta.uid)
    return Member(pod, explain(runtime, pod, now, sees_all=sees_all), tuple(events))


def _pool(runtime: Runtime, node_pool: str) -> Sequence[Node]:
    return runtime.nodes.by("pool", node_pool)


def _no_workers(record: ExecutionRecord) -> EmptyState:
    if record.is_final:
        return EmptyState(
            _("There are no workers: the cluster has ended."),
            _("What they did is under “What happened” and in the chart."),
        )
    if record.state in ("queued", "deploying"):
        return EmptyState(_("There are no workers yet."), _("They are created when the cluster is sent to Kubernetes."))
    return EmptyState(_("There are no workers now."), _("They come back as soon as Kubernetes creates them."))
