"""Overview, infrastructure, nodes and pods: the first paint of live pages, and whole objects fetched on request."""

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from dashboard.executions.viewmodels.manifest import as_yaml
from dashboard.logs.viewmodels.log import LogQuery
from dashboard.logs.views.logs import log_answer, log_file, pod_log_view, pod_source
from dashboard.nodes.pages.infrastructure import INFRASTRUCTURE
from dashboard.nodes.pages.node import NODE, POD
from dashboard.nodes.pages.overview import OVERVIEW
from dashboard.nodes.pages.use_history import PoolHistory, history_in
from dashboard.nodes.viewmodels.infrastructure import STATES, InfrastructureView, node_chips
from dashboard.nodes.viewmodels.overview import STEPS
from dashboard.nodes.viewmodels.pool_history import PoolTrend, Trends, pool_charts, pool_trends, range_of, section
from dashboard.nodes.views.use_history import node_use_section, pod_use_section, pool_use, require_node, require_pod
from dashboard.shell.exports import note_export_of
from dashboard.shell.views.fetching import fetched, node_description, pod_description
from dashboard.shell.views.live import admitted, live_page
from dashboard.shell.views.saved_views import opened_with_default
from grid.core.labels import KEYS
from grid.core.translation import gettext as _
from grid.edge import textwork
from grid.kube.resources import NODES, PODS, Resource
from grid.models.pool import ALL_POOLS
from grid.runtime import Runtime, get_runtime

NODE_TABS = {"": _("Pods and events"), "describe": _("Description"), "yaml": "YAML"}
POD_TABS = {"": _("Events"), "log": _("Log"), "describe": _("Description"), "yaml": "YAML"}


@require_safe
async def infrastructure(request: HttpRequest) -> HttpResponse:
    await admitted(request, INFRASTRUCTURE, request.GET)
    answer = None if request.GET else await opened_with_default(request, "nodes")
    if answer is not None:
        return answer
    runtime = get_runtime()
    pools = sorted({*runtime.nodes.values_of("pool"), *runtime.groups.by_pool()})
    view = InfrastructureView.parse(request.GET.dict())
    # Each waits a moment for a Prometheus that is slow.
    charts = pool_section(runtime, view.pool, view.range, lambda range: view.query(range=range))
    charts_context, use = await asyncio.gather(charts, pool_use(view.pool, view.range))
    context = {"states": STATES, "chips": node_chips(view), "pools": pools, **charts_context, "use": use}
    answer = await live_page(request, INFRASTRUCTURE, "nodes/infrastructure.html", context=context)
    answer["HX-Push-Url"] = request.path + view.query()
    return answer


async def pool_section(runtime: Runtime, pool: str, range: str, query_of: Callable[[str], str]) -> dict[str, Any]:
    """Return the context of `nodes/fragments/pool_history.html`; `query_of` is the page's query for a range."""
    history = history_in(runtime)
    read, trends = await asyncio.gather(history.read_in_time(pool, range), history.trends(range))
    is_read, url = read is not None and trends is not None, reverse("pool-history")
    return {
        "history": section(read, range, pool=pool, is_read=is_read, query_of=query_of, url=url),
        "trends": await _trends(history, trends, pool, range),
    }


@require_safe
async def pool_history(request: HttpRequest) -> HttpResponse:
    """Return the charts' values as JSON, with `?part=rows` the rows of the table beside them, and with `?part=pools` those of the pools."""
    await admitted(request, INFRASTRUCTURE, request.GET)
    history, view = history_in(get_runtime()), InfrastructureView.parse(request.GET.dict())
    part, shown, trends, is_read = request.GET.get("part", ""), None, None, True
    if part == "pools":
        read = await history.trends(view.range)
        trends, is_read = await _trends(history, read, view.pool, view.range), read is not None
    else:
        shown = await history.read(view.pool, view.range)
        if part != "rows":
            return JsonResponse(await asyncio.to_thread(pool_charts, shown, view.range, until=history.minute))
    url, template = reverse("pool-history"), "pool_trends" if part == "pools" else "pool_history_rows"
    described = section(shown, view.range, pool=view.pool, is_read=is_read, query_of=str, url=url)
    context = {"history": described, "trends": trends}
    return await sync_to_async(render)(request, f"nodes/fragments/{template}.html", context)


async def _trends(history: PoolHistory, trends: Trends | None, pool: str, range: str) -> list[PoolTrend]:
    if trends is None:
        return []

    def query_of(name: str) -> str:
        if not name:
            return ""  # the filter knows no nodes without a pool
        return InfrastructureView(pool="" if name == ALL_POOLS else name, range=range).query()

    # A hundred pools take 24 ms.
    return await asyncio.to_thread(
        pool_trends, trends, range, until=history.minute, chosen=pool or ALL_POOLS, query_of=query_of
    )


@require_safe
async def node(request: HttpRequest, name: str) -> HttpResponse:
    """Show a node. An unknown node is 404 for users who may see nodes, and 403 like any other node for users who may not."""
    query = QueryDict(urlencode({"name": name}))
    await admitted(request, NODE, query)
    runtime = get_runtime()
    require_node(runtime, name)
    tab = _tab(request, NODE_TABS)
    context: dict[str, Any] = {"name": name, "tabs": NODE_TABS, "tab": tab}
    if not tab:
        context["use"] = await node_use_section(request, name)
    elif tab == "yaml":
        context["fetched"] = await fetched(_yaml(runtime, NODES, name))
    elif tab == "describe":
        context["fetched"] = await fetched(node_description(runtime.api, name, now=runtime.clock()))
    return await live_page(request, NODE, "nodes/node.html", query=query, context=context)


@require_safe
async def pod(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    query = QueryDict(urlencode({"namespace": namespace, "name": name}))
    await admitted(request, POD, query)
    runtime = get_runtime()
    require_pod(runtime, namespace, name)
    tab = _tab(request, POD_TABS)
    context: dict[str, Any] = {"namespace": namespace, "name": name, "tabs": POD_TABS, "tab": tab}
    if not tab:
        context["use"] = await pod_use_section(request, namespace, name)
    elif tab == "yaml":
        context["fetched"] = await fetched(_yaml(runtime, PODS, name, namespace))
    elif tab == "describe":
        context["fetched"] = await fetched(pod_description(runtime.api, namespace, name, now=runtime.clock()))
    elif tab == "log":
        context["log"] = await pod_log_view(request, runtime, namespace, name)
    return await live_page(request, POD, "nodes/pod.html", query=query, context=context)


@require_safe
async def pod_log(request: HttpRequest, namespace: str, name: str) -> HttpResponseBase:
    """Return the log as a part of the page, with `?part=rows` its lines alone, or with `?download=1` as a text file."""
    await admitted(request, POD, QueryDict(urlencode({"namespace": namespace, "name": name})))
    runtime = get_runtime()
    if request.GET.get("download") == "1":
        source = pod_source(runtime, namespace, name, LogQuery.parse(request.GET.dict()))
        answer = await log_file(runtime, source, name)
        if answer.status_code == 200:
            pod = runtime.pods.get(f"{namespace}/{name}") if namespace == settings.GRID_NAMESPACE else None
            execution = pod.metadata.labels.get(KEYS.execution, "") if pod is not None else ""
            await sync_to_async(note_export_of)(request, execution, f"{name}.log")
        return answer
    if request.GET.get("part") != "rows":  # which an open page asks for, and is told when the pod is gone
        require_pod(runtime, namespace, name)
    return await log_answer(request, await pod_log_view(request, runtime, namespace, name))


def _tab(request: HttpRequest, tabs: dict[str, str]) -> str:
    asked = request.GET.get("tab", "")
    return asked if asked in tabs else ""


async def _yaml(runtime: Runtime, resource: Resource, name: str, namespace: str = "") -> str:
    return await textwork.workers.run(as_yaml, await runtime.api.get(resource, name, namespace=namespace))


@require_safe
async def overview(request: HttpRequest) -> HttpResponse:
    await admitted(request, OVERVIEW, request.GET)
    range = range_of(request.GET.get("range", ""))
    history = await pool_section(get_runtime(), "", range, lambda other: f"?range={other}")
    return await live_page(request, OVERVIEW, "nodes/overview.html", context={"steps": STEPS, **history})
