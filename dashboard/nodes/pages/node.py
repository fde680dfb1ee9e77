"""The pages of one node and of one pod, live: for operators, auditors and admins, and a pod's also for the project of its execution."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from django.conf import settings
from django.http import QueryDict
from django.utils import timezone

from dashboard.executions.pages.execution_pods import execution_of, explain
from dashboard.nodes.pages.infrastructure import SCALE_DOWN, rules_in_force
from dashboard.nodes.records import read_task_lines
from dashboard.nodes.viewmodels.infrastructure import NodeRow, node_row
from dashboard.nodes.viewmodels.node import TaskLine, draining, node_facts, node_work
from dashboard.nodes.viewmodels.nodes import node_sums
from dashboard.nodes.viewmodels.pods import PodFacts, PodRow, is_troubled, pod_facts, pod_row, pod_rows
from dashboard.shell.access import Viewer, may_observe, may_operate, may_read_execution
from dashboard.shell.pages.page import LivePage
from dashboard.shell.pages.periodic import PeriodicRead
from dashboard.shell.viewmodels.events import history
from dashboard.shell.viewmodels.live import Fragment
from dashboard.usage.viewmodels.contention import contended_nodes
from grid.core.labels import Keys
from grid.core.translation import gettext as _
from grid.database import threads as database
from grid.kube.events import topic_about
from grid.kube.hub import NAME, Topic
from grid.kube.objects import Node, Pod
from grid.models import NodeTask
from grid.nodes.scaledown import ScaleDownRules, scale_down
from grid.runtime import Runtime
from grid.runtime.caches import id_of
from grid.runtime.contention import TOPIC as CONTENTION
from grid.runtime.executions import TOPIC as EXECUTIONS

TASKS_SECONDS = 1.0  # how old the shown tasks may be


class NodeView(NamedTuple):
    name: str


class NodeRead(NamedTuple):
    rules: ScaleDownRules
    task: TaskLine | None


class NodePage(LivePage[NodeView, NodeRead]):
    name = "node"
    refusal = _("Only operators, auditors and admins can see the cluster's nodes.")
    regions = frozenset({"pods", "events"})

    def __init__(self, rules: PeriodicRead[ScaleDownRules], tasks: PeriodicRead[Mapping[str, TaskLine]]) -> None:
        self._rules, self._tasks = rules, tasks

    def view(self, query: QueryDict) -> NodeView:
        return NodeView(str(query.get("name", ""))[:253])

    def allowed(self, runtime: Runtime, viewer: Viewer, view: NodeView) -> bool:
        return may_observe(viewer)

    def audience(self, viewer: Viewer) -> Hashable:
        return "operators" if may_operate(viewer) else "observers"

    async def read(self, runtime: Runtime, viewer: Viewer, view: NodeView) -> NodeRead:
        # While the database hangs, the last ones known: the nodes are not in the database.
        tasks = await self._tasks.value(TASKS_SECONDS) or {}
        return NodeRead(await rules_in_force(self._rules), tasks.get(view.name))

    def tick(self, runtime: Runtime, viewer: Viewer, view: NodeView, facts: NodeRead) -> float:
        return TASKS_SECONDS if facts.task is not None and facts.task.ended_at is None else self.tick_seconds

    def topics(self, runtime: Runtime, viewer: Viewer, view: NodeView, facts: NodeRead) -> Collection[Topic]:
        """Return the topics of the node, its pods, events and executions, and of its pool, whose size decides whether it may be removed."""
        topics: set[Topic] = {(runtime.nodes.name, NAME, view.name), (runtime.pods.name, "node", view.name)}
        topics |= {topic_about("Node", view.name), runtime.config_maps.name, runtime.usage.name}
        topics.add((CONTENTION, NAME, view.name))
        node = runtime.nodes.get(view.name)
        if node is not None:
            topics.add((runtime.nodes.name, "pool", node.metadata.labels.get(settings.NODE_POOL_LABEL, "")))
        ids = filter(None, map(id_of, runtime.pods.by("node", view.name)))  # of executions known here or not yet
        return topics | {(EXECUTIONS, NAME, id) for id in ids}

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: NodeView, facts: NodeRead, now: datetime
    ) -> Sequence[Fragment]:
        node = runtime.nodes.get(view.name)
        pods = runtime.pods.by("node", view.name)
        row = None if node is None else self._row(runtime, node, facts.rules)
        drain, contention = None, runtime.contention.on_node(view.name)
        if facts.task is not None and facts.task.action == NodeTask.Action.DRAIN:
            drain = draining(facts.task.progress, runtime.executions.get, settings.GRID_NAMESPACE)
        return [
            node_facts(view.name, node, row),
            node_work(view.name, node, facts.task, drain, may_act=may_operate(viewer)),
            contended_nodes([contention] if contention else [], runtime.executions.get, names_nodes=False),
            *pod_rows(self._pod_row(runtime, pod, now) for pod in pods),
            *history(runtime.events.about(kind="Node", name=view.name)),
        ]

    def _pod_row(self, runtime: Runtime, pod: Pod, now: datetime) -> PodRow:
        why = explain(runtime, pod, now, sees_all=True) if is_troubled(pod) else None
        return pod_row(pod, runtime.usage.pod(pod.metadata.key), execution_of(runtime, pod), why)

    def _row(self, runtime: Runtime, node: Node, rules: ScaleDownRules) -> NodeRow:
        name = node.metadata.name
        pods = runtime.pods.by("node", name)
        requested, usage = runtime.room.requested(name), runtime.usage.node(name)
        sums = node_sums(node, requested, usage, pool_label=settings.NODE_POOL_LABEL)
        size = len(runtime.nodes.by("pool", sums.pool))
        group = runtime.groups.by_pool().get(sums.pool)
        answer = scale_down(node, pods, group=group, group_size=size, rules=rules)
        return node_row(sums, answer, runtime.usage.recent.of(name))


TASKS = PeriodicRead(partial(database.pages.run, read_task_lines), clock=timezone.now)  # of all nodes
NODE = NodePage(SCALE_DOWN, TASKS)


class PodView(NamedTuple):
    namespace: str
    name: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class PodPage(LivePage[PodView, None]):
    name = "pod"
    refusal = _("This pod is gone, or it belongs to no execution of your projects.")
    regions = frozenset({"events"})

    def view(self, query: QueryDict) -> PodView:
        return PodView(str(query.get("namespace", ""))[:63], str(query.get("name", ""))[:253])

    def allowed(self, runtime: Runtime, viewer: Viewer, view: PodView) -> bool:
        if may_observe(viewer):
            return True
        pod = runtime.pods.get(view.key)
        row = execution_of(runtime, pod) if pod is not None else None
        return row is not None and may_read_execution(viewer, row)

    def still_allowed(self, runtime: Runtime, viewer: Viewer, view: PodView) -> bool:
        """Return True also for a deleted pod, because its page shows nothing of it."""
        return runtime.pods.get(view.key) is None or self.allowed(runtime, viewer, view)

    async def read(self, runtime: Runtime, viewer: Viewer, view: PodView) -> None:
        """Everything is in memory."""

    def topics(self, runtime: Runtime, viewer: Viewer, view: PodView, facts: None) -> Collection[Topic]:
        topics: set[Topic] = {(runtime.pods.name, NAME, view.key), runtime.usage.name}
        topics.add(topic_about("Pod", view.name, view.namespace))
        pod = runtime.pods.get(view.key)
        if pod is not None:
            topics |= runtime.explainer.topics(pod)
        if pod is not None and (id := id_of(pod)):  # known here or not yet
            topics.add((EXECUTIONS, NAME, id))
        return topics

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: PodView, facts: None, now: datetime
    ) -> Sequence[Fragment]:
        pod = runtime.pods.get(view.key)
        if pod is None or not self.allowed(runtime, viewer, view):
            return [Fragment("facts", "nodes/fragments/pod_facts.html", PodFacts(view.namespace, view.name, None))]
        events = runtime.events.about(kind="Pod", name=view.name, namespace=view.namespace, uid=pod.metadata.uid)
        sees_all, keys = may_observe(viewer), Keys.under(settings.LABEL_PREFIX)
        diagnosis, row = explain(runtime, pod, now, sees_all=sees_all), execution_of(runtime, pod)
        shown = pod_facts(pod, runtime.usage.pod(view.key), keys, diagnosis, row, sees_all=sees_all)
        return [Fragment("facts", "nodes/fragments/pod_facts.html", shown), *history(events)]


POD = PodPage()
