"""The Executions page, live: everything that runs or waits, as far as its viewer may see it."""

from collections.abc import Hashable, Sequence
from datetime import datetime

from django.conf import settings
from django.http import QueryDict

from dashboard.access import Viewer, may_observe, may_see_execution
from dashboard.pages.page import LivePage
from dashboard.viewmodels.executions import Source, execution_rows
from dashboard.viewmodels.executions_view import ExecutionsView
from dashboard.viewmodels.live import Fragment
from grid.diagnosis.pods import Diagnosis, explain_pod
from grid.kube.objects import Pod
from grid.labels import Keys
from grid.runtime import Runtime
from grid.runtime.executions import ExecutionRow


def pods_of(runtime: Runtime, execution_id: str) -> list[Pod]:
    """Labels are believed in the executions' own namespace only: elsewhere others may write them."""
    found = runtime.pods.by("execution", execution_id)
    return [pod for pod in found if pod.metadata.namespace == settings.GRID_NAMESPACE]


def execution_of(runtime: Runtime, pod: Pod) -> ExecutionRow | None:
    """The execution that a pod belongs to, when it is active or has ended lately; labels are believed as above."""
    if pod.metadata.namespace != settings.GRID_NAMESPACE:
        return None
    execution = pod.metadata.labels.get(Keys.under(settings.LABEL_PREFIX).execution, "")
    return runtime.executions.get(execution) if execution else None


def explain(runtime: Runtime, pod: Pod, now: datetime) -> Diagnosis:
    meta = pod.metadata
    events = runtime.events.about(kind="Pod", name=meta.name, namespace=meta.namespace, uid=meta.uid)
    return explain_pod(pod, events, now=now)


def visible_rows(runtime: Runtime, viewer: Viewer) -> list[ExecutionRow]:
    return [row for row in runtime.executions.values() if may_see_execution(viewer, row)]


class ExecutionsPage(LivePage[ExecutionsView]):
    name = "executions"
    topics = frozenset({"executions", "pods", "events", "usage"})
    regions = frozenset({"executions"})

    def __init__(self) -> None:
        self._strays: list[Pod] = []
        self._strays_of: tuple[Hashable, ...] = ()

    def view(self, query: QueryDict) -> ExecutionsView:
        """Ended executions have a page of their own, which nothing changes any more."""
        return ExecutionsView.parse({**query.dict(), "show": ""})

    def allowed(self, runtime: Runtime, viewer: Viewer, view: ExecutionsView) -> bool:
        return True

    def audience(self, viewer: Viewer) -> Hashable:
        return "observers" if may_observe(viewer) else viewer.id

    async def fragments(
        self, runtime: Runtime, viewer: Viewer, view: ExecutionsView, now: datetime
    ) -> Sequence[Fragment]:
        sees_all = may_observe(viewer)
        source = Source(
            rows=visible_rows(runtime, viewer),
            pods_of=lambda execution_id: pods_of(runtime, execution_id),
            orphans=self._orphans_in(runtime) if sees_all else (),
            explain=lambda pod: explain(runtime, pod, now),
            usage_of=runtime.usage.pod,
            keys=Keys.under(settings.LABEL_PREFIX),
            sees_all=sees_all,
        )
        return execution_rows(source, view, now)

    def _orphans_in(self, runtime: Runtime) -> list[Pod]:
        """Pods that say they belong to an execution that is not active; looked for again only when something changed."""
        state = (id(runtime), runtime.pods.version, runtime.executions.version)
        if self._strays_of != state:
            label = Keys.under(settings.LABEL_PREFIX).execution
            self._strays_of = state
            self._strays = [
                pod
                for pod in runtime.pods.values()
                if pod.metadata.namespace == settings.GRID_NAMESPACE
                and (execution := pod.metadata.labels.get(label, ""))
                and runtime.executions.get(execution) is None
            ]
        return self._strays


EXECUTIONS = ExecutionsPage()
