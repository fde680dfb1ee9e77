"""A metrics server for a cluster that is not the embedded one: metrics.k8s.io with the usage of this machine's nodes.

It serves on loopback and registers itself with the cluster's aggregation layer: a Service of type ExternalName and an APIService with its
own certificate. Another metrics server of the cluster is never replaced. When it ends it deletes its APIService, because an
API that nobody serves keeps namespaces from being deleted; after a kill the next start repairs that. Like the kubelets, it answers
every client that reaches this machine's loopback; the API server has already checked who may read metrics.
"""

import asyncio
import base64
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from grid.core.errors import GridError, NotFound
from grid.sandbox.apiserver.answers import json_answer
from grid.sandbox.apiserver.selectors import label_predicate
from grid.sandbox.apiserver.status import Failure
from grid.sandbox.apiserver.store import Record
from grid.sandbox.apiserver.usage import node_metrics, pod_metrics
from grid.sandbox.client import (
    API_SERVICES,
    NODES,
    PODS,
    SERVICES,
    Api,
    Clock,
    Mirror,
    Object,
    SystemClock,
    key_of,
    name_of,
)
from grid.sandbox.kubelet.certificate import serving_context

logger = logging.getLogger(__name__)

_GROUP, _VERSION = "metrics.k8s.io", "v1beta1"
_ROOT = f"/apis/{_GROUP}/{_VERSION}"
_API_SERVICE = f"{_VERSION}.{_GROUP}"
_NAMESPACE, _SERVICE = "kube-system", "compute-grid-metrics"
_RETRY_SECONDS = 5.0
_FAREWELL_SECONDS = 3.0

Summaries = Callable[[], Mapping[str, Object]]
"""Returns each node's /stats/summary, by the node's name."""


class MetricsServer:
    """The server of metrics.k8s.io, which serves while `run` runs."""

    def __init__(self, api: Api, summaries: Summaries, directory: Path, *, clock: Clock | None = None) -> None:
        self._api = api
        self._summaries = summaries
        self._directory = directory
        self._clock = clock or SystemClock()
        self._pods = Mirror(api, PODS, clock=self._clock)
        self._nodes = Mirror(api, NODES, clock=self._clock)
        self._registered = False

    async def run(self) -> None:
        app = web.Application(middlewares=[_refusals])
        app.router.add_get("/apis", self._groups)
        app.router.add_get(f"/apis/{_GROUP}", self._group)
        app.router.add_get(_ROOT, self._resources)
        app.router.add_get(f"{_ROOT}/nodes", self._all_nodes)
        app.router.add_get(f"{_ROOT}/nodes/{{name}}", self._one_node)
        app.router.add_get(f"{_ROOT}/pods", self._all_pods)
        app.router.add_get(f"{_ROOT}/namespaces/{{namespace}}/pods", self._all_pods)
        app.router.add_get(f"{_ROOT}/namespaces/{{namespace}}/pods/{{name}}", self._one_pod)
        context = serving_context(self._directory, "metrics-server", f"{_SERVICE}.{_NAMESPACE}.svc")
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.5)
        await runner.setup()
        mirrors = [asyncio.create_task(mirror.run()) for mirror in (self._pods, self._nodes)]
        try:
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
            await self._stay_registered(int(runner.addresses[0][1]))
        finally:
            await self._take_leave()
            for task in mirrors:
                task.cancel()
            await asyncio.gather(*mirrors, return_exceptions=True)
            await runner.cleanup()

    # Registration

    async def _stay_registered(self, port: int) -> None:
        """Register until cancelled, again and again, because the registration can be deleted or overwritten."""
        logged = ""
        while True:
            try:
                problem = await self._register(port)
            except GridError as error:
                problem = str(error)
            if problem != logged:
                logger.log(
                    logging.WARNING if problem else logging.INFO,
                    "%s",
                    f"metrics.k8s.io is not served: {problem}" if problem else f"metrics.k8s.io is served port={port}",
                )
                logged = problem
            await self._clock.sleep(_RETRY_SECONDS)

    async def _register(self, port: int) -> str:
        """Write the Service and the APIService where they differ. Return why that must not be done, or ""."""
        certificate = await asyncio.to_thread((self._directory / "metrics-server.crt").read_bytes)
        wanted = api_service(port, certificate)
        path = API_SERVICES.path(name=_API_SERVICE)
        registration = await self._get(path)
        spec = (registration or {}).get("spec") or {}
        if registration is not None and not _is_ours(spec):
            other = spec.get("service") or {}
            where = f"{other.get('namespace')}/{other.get('name')}" if other else "the API server itself"
            return f"this cluster has another metrics server, {where}; remove its APIService {_API_SERVICE} to use this one"
        if await self._get(SERVICES.path(_NAMESPACE, _SERVICE)) is None:
            await self._api.create(SERVICES.path(_NAMESPACE), service())
        if registration is None:
            await self._api.create(API_SERVICES.path(), wanted)
        elif any(spec.get(key) != value for key, value in wanted["spec"].items()):
            await self._api.patch(path, {"spec": wanted["spec"]})
        self._registered = True
        return ""

    async def _take_leave(self) -> None:
        if not self._registered:
            return
        with contextlib.suppress(GridError, TimeoutError):
            async with asyncio.timeout(_FAREWELL_SECONDS):
                path = API_SERVICES.path(name=_API_SERVICE)
                registration = await self._get(path)
                if registration is not None and _is_ours(registration["spec"]):
                    await self._api.delete(path)
                    await self._api.delete(SERVICES.path(_NAMESPACE, _SERVICE))

    async def _get(self, path: str) -> Object | None:
        try:
            return await self._api.get(path)
        except NotFound:
            return None

    # Answers

    async def _groups(self, request: web.Request) -> web.Response:
        return json_answer({"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group()]})

    async def _group(self, request: web.Request) -> web.Response:
        return json_answer({"kind": "APIGroup", "apiVersion": "v1", **_group()})

    async def _resources(self, request: web.Request) -> web.Response:
        resources = [
            {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "list"]}
            for name, namespaced, kind in (("nodes", False, "NodeMetrics"), ("pods", True, "PodMetrics"))
        ]
        head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{_GROUP}/{_VERSION}"}
        return json_answer({**head, "resources": resources})

    async def _all_nodes(self, request: web.Request) -> web.Response:
        return json_answer(_listed("NodeMetricsList", self._node_metrics(request)))

    async def _one_node(self, request: web.Request) -> web.Response:
        return _one(self._node_metrics(request), "nodes", request.match_info["name"])

    async def _all_pods(self, request: web.Request) -> web.Response:
        return json_answer(_listed("PodMetricsList", self._pod_metrics(request)))

    async def _one_pod(self, request: web.Request) -> web.Response:
        return _one(self._pod_metrics(request), "pods", request.match_info["name"])

    def _node_metrics(self, request: web.Request) -> Iterator[Object]:
        return node_metrics(_chosen(self._nodes, request), self._summaries(), self._clock.now())

    def _pod_metrics(self, request: web.Request) -> Iterator[Object]:
        return pod_metrics(_chosen(self._pods, request), self._summaries(), self._clock.now())


def service() -> Object:
    """Return the Service by which the API server reaches this machine's loopback."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _SERVICE},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def api_service(port: int, certificate: bytes) -> Object:
    return {
        "apiVersion": API_SERVICES.api_version,
        "kind": API_SERVICES.kind,
        "metadata": {"name": _API_SERVICE},
        "spec": {
            "group": _GROUP,
            "version": _VERSION,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": base64.b64encode(certificate).decode(),
            "service": {"namespace": _NAMESPACE, "name": _SERVICE, "port": port},
        },
    }


def _is_ours(spec: Mapping[str, Object]) -> bool:
    reference = spec.get("service") or {}
    return (reference.get("namespace"), reference.get("name")) == (_NAMESPACE, _SERVICE)


def _group() -> Object:
    version = {"groupVersion": f"{_GROUP}/{_VERSION}", "version": _VERSION}
    return {"name": _GROUP, "versions": [version], "preferredVersion": version}


def _chosen(mirror: Mirror, request: web.Request) -> Iterator[Record]:
    """Yield the objects that the request asks for."""
    namespace, name = request.match_info.get("namespace"), request.match_info.get("name")
    predicate = label_predicate(request.query.get("labelSelector", ""))
    for obj in sorted(mirror.values(), key=key_of):
        there = namespace is None or obj["metadata"].get("namespace") == namespace
        if there and name in (None, name_of(obj)) and (predicate is None or predicate(obj)):
            yield Record(key_of(obj), obj, b"", 0)


def _listed(kind: str, items: Iterator[Object]) -> Object:
    return {"kind": kind, "apiVersion": f"{_GROUP}/{_VERSION}", "metadata": {}, "items": list(items)}


def _one(items: Iterator[Object], plural: str, name: str) -> web.Response:
    item = next(items, None)
    if item is None:
        details = {"name": name, "group": _GROUP, "kind": plural}
        raise Failure(404, "NotFound", f'{plural}.{_GROUP} "{name}" not found', details)
    return json_answer(item)


@web.middleware
async def _refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Failure as failure:
        return json_answer(failure.body(), failure.code)
