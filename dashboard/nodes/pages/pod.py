"""One pod's page, live: for operators, auditors and admins, and for the project of the execution that the pod belongs to."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.http import QueryDict

from dashboard.executions.pages.execution_pods import execution_of, explain
from dashboard.nodes.viewmodels.pods import PodFacts, pod_facts
from dashboard.shell.access import Viewer, may_observe, may_read_execution
from dashboard.shell.pages.page import LivePage
from dashboard.shell.viewmodels.events import history
from dashboard.shell.viewmodels.live import Fragment
from grid.core.labels import Keys
from grid.core.translation import gettext as _
from grid.kube.events import topic_about
from grid.kube.hub import NAME, Topic
from grid.kube.objects import Pod
from grid.runtime import Runtime
from grid.runtime.caches import id_of
from grid.runtime.executions import TOPIC as EXECUTIONS


@dataclass(frozen=True, slots=True)
class PodView:
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
        return pod is not None and _belongs_to(runtime, viewer, pod)

    def still_allowed(self, runtime: Runtime, viewer: Viewer, view: PodView) -> bool:
        """Return True also for a deleted pod, because its page shows nothing of it."""
        return runtime.pods.get(view.key) is None or self.allowed(runtime, viewer, view)

    async def read(self, runtime: Runtime, viewer: Viewer, view: PodView) -> None:
        """Read nothing, because everything is in memory."""

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
            gone = PodFacts(view.namespace, view.name, None)
            return [Fragment("facts", "nodes/fragments/pod_facts.html", gone)]
        events = runtime.events.about(kind="Pod", name=view.name, namespace=view.namespace, uid=pod.metadata.uid)
        diagnosis = explain(runtime, pod, now, sees_all=may_observe(viewer))
        shown = pod_facts(
            pod,
            runtime.usage.pod(view.key),
            Keys.under(settings.LABEL_PREFIX),
            diagnosis,
            execution_of(runtime, pod),
            sees_all=may_observe(viewer),
        )
        return [Fragment("facts", "nodes/fragments/pod_facts.html", shown), *history(events)]


def _belongs_to(runtime: Runtime, viewer: Viewer, pod: Pod) -> bool:
    row = execution_of(runtime, pod)
    return row is not None and may_read_execution(viewer, row)


POD = PodPage()
