"""What a node, a pool, a pod or an execution used over the last hours: the section of its page, and the charts' values."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from urllib.parse import urlencode

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.executions.pages.execution_pods import pods_of
from dashboard.executions.viewmodels.execution import ExecutionRecord
from dashboard.executions.views.executions import seen
from dashboard.nodes.pages.infrastructure import INFRASTRUCTURE
from dashboard.nodes.pages.node import NODE, POD
from dashboard.nodes.pages.use_history import Subject, use_in
from dashboard.nodes.viewmodels.infrastructure import InfrastructureView
from dashboard.nodes.viewmodels.pool_history import RANGES, range_of, width_of
from dashboard.nodes.viewmodels.use_history import UseSection, pool_use_section, use_section, use_values
from dashboard.shell.views.live import admitted
from dashboard.usage.viewmodels import failure_moments
from grid.core.translation import gettext as _
from grid.kube.objects import Pod
from grid.runtime import Runtime, get_runtime
from grid.runtime.caches import id_of

_AFTER = timedelta(minutes=5)  # of an execution's end that its charts show too
_Failures = Sequence[failure_moments.FailureMoment]


async def node_use_section(request: HttpRequest, name: str) -> UseSection:
    failures = await _failures_of_node(name, _range(request))
    return await _section(request, Subject(name), failures, reverse("node-use", args=[name]))


async def pod_use_section(request: HttpRequest, namespace: str, name: str) -> UseSection:
    failures = _failures_of_pod(get_runtime(), namespace, name)
    return await _section(request, Subject(name, namespace), failures, reverse("pod-use", args=[namespace, name]))


async def execution_use_section(request: HttpRequest, record: ExecutionRecord, tab: str) -> dict[str, UseSection]:
    runtime, url = get_runtime(), reverse("execution-use", args=[record.id])
    failures = _failures_of_execution(runtime, record)
    return {"use": await _section(request, subject_of(runtime, record), failures, url, **({"tab": tab} if tab else {}))}


async def pool_use(pool: str, range: str) -> UseSection | None:
    """Return what Prometheus knows of a pool beside the charts of samples; None where it knows nothing, and for all pools together."""
    if not pool:
        return None
    use = await use_in(get_runtime()).read(Subject(pool, is_pool=True), range)
    url = f"{reverse('pool-use')}?{urlencode({'pool': pool, 'range': range})}"
    return pool_use_section(use.known, range, url=url, problem=use.problem)


@require_safe
async def pool_use_values(request: HttpRequest) -> HttpResponse:
    """Return the charts' values of the pool that is asked for; of the nodes without a pool when none is."""
    await admitted(request, INFRASTRUCTURE, request.GET)
    return await _values(request, Subject(InfrastructureView.parse(request.GET.dict()).pool, is_pool=True), ())


@require_safe
async def node_use(request: HttpRequest, name: str) -> HttpResponse:
    await admitted(request, NODE, QueryDict(urlencode({"name": name})))
    require_node(get_runtime(), name)
    return await _values(request, Subject(name), await _failures_of_node(name, _range(request)))


@require_safe
async def pod_use(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    await admitted(request, POD, QueryDict(urlencode({"namespace": namespace, "name": name})))
    require_pod(get_runtime(), namespace, name)
    return await _values(request, Subject(name, namespace), _failures_of_pod(get_runtime(), namespace, name))


@require_safe
async def execution_use(request: HttpRequest, id: str) -> HttpResponse:
    runtime, (_viewer, record) = get_runtime(), await seen(request, id)
    return await _values(request, subject_of(runtime, record), _failures_of_execution(runtime, record))


def require_node(runtime: Runtime, name: str) -> None:
    if runtime.nodes.get(name) is None and runtime.freshness().synced:
        raise Http404(_("There is no node named {name}. It may have been removed by the autoscaler.", name=name))


def require_pod(runtime: Runtime, namespace: str, name: str) -> None:
    if runtime.pods.get(f"{namespace}/{name}") is None and runtime.freshness().synced:
        gone = _("There is no pod named {name} in {namespace}. Pods go when they have ended.")
        raise Http404(gone.format(name=name, namespace=namespace))


async def _section(request: HttpRequest, subject: Subject, failures: _Failures, url: str, **query: str) -> UseSection:
    range = _range(request)
    use = await use_in(get_runtime()).read(subject, range)
    return use_section(use.known, range, failures, url=url, problem=use.problem, query=query)


async def _values(request: HttpRequest, subject: Subject, failures: _Failures) -> HttpResponse:
    history, range = use_in(get_runtime()), _range(request)
    use = await history.read(subject, range)
    width, until = width_of(RANGES[range]), history.until(subject)
    return JsonResponse(await asyncio.to_thread(use_values, use.known or {}, range, width, failures, until=until))


def subject_of(runtime: Runtime, record: ExecutionRecord) -> Subject:
    """Return whose use an execution's charts show."""
    end = record.ended_at + _AFTER if record.ended_at is not None else None
    ended = int(end.timestamp() // 60) if end is not None and end < runtime.clock() else None
    return Subject(record.object_name, settings.GRID_NAMESPACE, is_execution=True, ended=ended)


def _range(request: HttpRequest) -> str:
    return range_of(request.GET.get("range", ""))


async def _failures_of_node(name: str, range: str) -> _Failures:
    """Return what is marked on a node's charts; each leads to its event, its pod, or its execution."""
    runtime, of_pods, marked = get_runtime(), [], set()
    for pod in runtime.pods.by("node", name):
        if moments := failure_moments.failures_of([pod], lambda pod, end: f"{_pod_url(pod)}#events"):
            of_pods += moments
            marked.add(id_of(pod))
    # Of an execution whose pod is still there, its container says more.
    failed = [execution for execution in await use_in(runtime).failed_on(name, range) if execution.id not in marked]
    events = runtime.events.about(kind="Node", name=name)
    of_node = failure_moments.node_failures(runtime.nodes.get(name), events, reverse("node", args=[name]))
    return failure_moments.newest(of_node, of_pods, failure_moments.execution_failures(failed, _execution_url))


def _failures_of_pod(runtime: Runtime, namespace: str, name: str) -> _Failures:
    pod = runtime.pods.get(f"{namespace}/{name}")
    return failure_moments.failures_of([pod], _pod_link) if pod is not None else ()


def _failures_of_execution(runtime: Runtime, record: ExecutionRecord) -> _Failures:
    moments = failure_moments.failures_of(pods_of(runtime, record.id), partial(_link_in_execution, record.id))
    if record.ended_at is not None and record.state in ("failed", "error"):
        cause = record.words(to_owner=False)
        words = _("It ended: {said}", said=cause) if cause else _("It ended with an error.")
        moments.append(failure_moments.FailureMoment(record.ended_at, words[:300], _execution_url(record.id)))
    return failure_moments.newest(moments)


def _execution_url(id: str) -> str:
    """Return the address of an execution's lifecycle; the newest entry, which is the end of one that failed, is first."""
    return f"{reverse('execution', args=[id])}#timeline"


def _link_in_execution(id: str, pod: Pod, end: failure_moments.ContainerEnd | None) -> str:
    tab = {"tab": "log", "pod": pod.metadata.name, **_log_of(end)} if end is not None else {"tab": "events"}
    return f"{reverse('execution', args=[id])}?{urlencode(tab)}#{'log' if end is not None else 'events'}"


def _pod_link(pod: Pod, end: failure_moments.ContainerEnd | None) -> str:
    return f"{_pod_url(pod)}#events" if end is None else f"{_pod_url(pod)}?{urlencode({'tab': 'log', **_log_of(end)})}"


def _log_of(end: failure_moments.ContainerEnd) -> dict[str, str]:
    return {"container": end.name, **({"previous": "1"} if end.is_previous else {})}


def _pod_url(pod: Pod) -> str:
    return reverse("pod", args=[pod.metadata.namespace, pod.metadata.name])
