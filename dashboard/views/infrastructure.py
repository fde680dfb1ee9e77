"""Infrastructure, nodes and pods: the first paint of live pages, and whole objects fetched on request."""

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.views.decorators.http import require_safe

from dashboard.pages.infrastructure import INFRASTRUCTURE
from dashboard.pages.node import NODE
from dashboard.pages.pod import POD
from dashboard.viewmodels.infrastructure import STATES
from dashboard.viewmodels.log import LogQuery
from dashboard.viewmodels.manifest import as_yaml
from dashboard.views.describing import node_description, pod_description
from dashboard.views.fetching import fetched
from dashboard.views.live import admitted, live_page
from dashboard.views.logs import log_answer, log_file, pod_log_view, pod_source
from grid.kube.resources import NODES, PODS, Resource
from grid.runtime import Runtime, get_runtime
from grid.watch.pools import known_pools

NODE_TABS = {"": "Pods and events", "describe": "Description", "yaml": "YAML"}
POD_TABS = {"": "Events", "log": "Log", "describe": "Description", "yaml": "YAML"}


@require_safe
async def infrastructure(request: HttpRequest) -> HttpResponse:
    await admitted(request, INFRASTRUCTURE, request.GET)
    runtime = get_runtime()
    pools = known_pools(runtime.nodes.values(), runtime.config_maps.values(), label=settings.NODE_POOL_LABEL)
    context = {"states": STATES, "pools": sorted(pools)}
    return await live_page(request, INFRASTRUCTURE, "dashboard/infrastructure.html", context=context)


@require_safe
async def node(request: HttpRequest, name: str) -> HttpResponse:
    """Show a node. An unknown node is 404 for users who may see nodes, and 403 like any other node for users who may not."""
    query = QueryDict(urlencode({"name": name}))
    await admitted(request, NODE, query)
    runtime = get_runtime()
    if runtime.nodes.get(name) is None and runtime.freshness().synced:
        raise Http404(f"There is no node named {name}. It may have been removed by the autoscaler.")
    tab = _tab(request, NODE_TABS)
    context: dict[str, Any] = {"name": name, "tabs": NODE_TABS, "tab": tab}
    if tab == "yaml":
        context["fetched"] = await fetched(_yaml(runtime, NODES, name))
    elif tab == "describe":
        context["fetched"] = await fetched(node_description(runtime.api, name, now=runtime.clock()))
    return await live_page(request, NODE, "dashboard/node.html", query=query, context=context)


@require_safe
async def pod(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    query = QueryDict(urlencode({"namespace": namespace, "name": name}))
    await admitted(request, POD, query)
    runtime = get_runtime()
    _require_pod(runtime, namespace, name)
    tab = _tab(request, POD_TABS)
    context: dict[str, Any] = {"namespace": namespace, "name": name, "tabs": POD_TABS, "tab": tab}
    if tab == "yaml":
        context["fetched"] = await fetched(_yaml(runtime, PODS, name, namespace))
    elif tab == "describe":
        context["fetched"] = await fetched(pod_description(runtime.api, namespace, name, now=runtime.clock()))
    elif tab == "log":
        context["log"] = await pod_log_view(request, runtime, namespace, name)
    return await live_page(request, POD, "dashboard/pod.html", query=query, context=context)


@require_safe
async def pod_log(request: HttpRequest, namespace: str, name: str) -> HttpResponseBase:
    """Return the log as a part of the page, with `?part=rows` its lines alone, or with `?download=1` as a text file."""
    await admitted(request, POD, QueryDict(urlencode({"namespace": namespace, "name": name})))
    runtime = get_runtime()
    if request.GET.get("download") == "1":
        source = pod_source(runtime, namespace, name, LogQuery.parse(request.GET.dict()))
        return await log_file(runtime, source, name)
    if request.GET.get("part") != "rows":  # which an open page asks for, and is told when the pod is gone
        _require_pod(runtime, namespace, name)
    return await log_answer(request, await pod_log_view(request, runtime, namespace, name))


def _require_pod(runtime: Runtime, namespace: str, name: str) -> None:
    if runtime.pods.get(f"{namespace}/{name}") is None and runtime.freshness().synced:
        raise Http404(f"There is no pod named {name} in {namespace}. Pods go when they have ended.")


def _tab(request: HttpRequest, tabs: dict[str, str]) -> str:
    asked = request.GET.get("tab", "")
    return asked if asked in tabs else ""


async def _yaml(runtime: Runtime, resource: Resource, name: str, namespace: str = "") -> str:
    return as_yaml(await runtime.api.get(resource, name, namespace=namespace))
