"""What the promises about aggregation leave open: pods behind a Service, and what is told when there is no way through."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from grid.sandbox.kubelet.certificate import serving_context
from tests.contract.aggregated import hang_up
from tests.sandbox.apiserver.conftest import Api, pod
from tests.support.waiting import eventually

SERVICES = "/api/v1/namespaces/default/services"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = "v1.things.example.com"


def api_service(**spec: Any) -> Any:
    service = {"namespace": "default", "name": "things", "port": 443}
    given = {"group": "things.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
    return {"metadata": {"name": NAME}, "spec": {**given, "service": service, "insecureSkipTLSVerify": True, **spec}}


async def condition(api: Api) -> tuple[str, str]:
    service = (await api.ask("GET", f"{API_SERVICES}/{NAME}")).body
    conditions = service["status"].get("conditions") or [{"reason": "", "message": ""}]
    return conditions[0]["reason"], conditions[0]["message"]


async def until(api: Api, reason: str) -> str:
    """The message once the reason is that."""
    return (await eventually(lambda: condition(api), reason, holds=lambda seen: seen[0] == reason))[1]


@asynccontextmanager
async def things(folder: Path) -> AsyncIterator[int]:
    """A program that serves the API; its port."""

    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith("/broken"):
            raise web.HTTPInternalServerError(text="on its own account")
        resource = {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": ["get"]}
        return web.json_response(
            {"kind": "APIResourceList", "resources": [resource, {**resource, "name": "things/status"}]}
        )

    app = web.Application()
    app.router.add_get("/{rest:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=serving_context(folder)).start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await hang_up(runner)
        await runner.cleanup()


async def test_ready_pods_behind_a_service_serve_it(api: Api, tmp_path: Path) -> None:
    async with things(tmp_path) as port:
        await api.make(API_SERVICES, api_service())
        assert await until(api, "ServiceNotFound") == 'service/things in "default" is not present'
        ports = [{"port": 444, "targetPort": port}]
        await api.make(SERVICES, {"metadata": {"name": "things"}, "spec": {"selector": {"app": "t"}, "ports": ports}})
        message = 'service/things in "default" is not listening on port 443'
        assert await until(api, "ServicePortError") == message
        change = {"spec": {"ports": [{"port": 443, "targetPort": port}]}}
        await api.ask("PATCH", f"{SERVICES}/things", change, media="application/merge-patch+json")
        assert "no pod is ready" in await until(api, "MissingEndpoints")
        assert (await api.ask("GET", "/apis/things.example.com/v1")).status == 503
        body = pod("t")
        body["metadata"]["labels"] = {"app": "t"}
        await api.make("/api/v1/namespaces/default/pods", body)
        ready = {"phase": "Running", "podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
        path = "/api/v1/namespaces/default/pods/t/status"
        await api.ask("PATCH", path, {"status": ready}, media="application/merge-patch+json")
        # Pods come and go too often to look at each change; a change of the Service, or some seconds, bring the news.
        labels = {"spec": {"sessionAffinity": "ClientIP"}}
        await api.ask("PATCH", f"{SERVICES}/things", labels, media="application/merge-patch+json")
        assert await until(api, "Passed") == "all checks passed"
        discovery = (await api.ask("GET", "/apis/things.example.com/v1")).body
        assert [resource["name"] for resource in discovery["resources"]] == ["things", "things/status"]
        broken = await api.ask("GET", "/apis/things.example.com/v1/broken")
        assert (broken.status, broken.body) == (500, "on its own account")


async def test_authorities_that_are_none_are_told(api: Api) -> None:
    service = {"type": "ExternalName", "externalName": "127.0.0.1"}
    await api.make(SERVICES, {"metadata": {"name": "things"}, "spec": service})
    await api.make(API_SERVICES, api_service(insecureSkipTLSVerify=False, caBundle="bm9uZQ=="))
    assert "spec.caBundle holds no certificates" in await until(api, "FailedDiscoveryCheck")


async def test_apis_served_by_this_server_cannot_be_overridden(api: Api) -> None:
    await api.make(API_SERVICES, {**api_service(group="apps", version="v2"), "metadata": {"name": "v2.apps"}})
    assert (await api.ask("GET", "/apis/apps/v2")).status == 404
    groups = [group for group in (await api.ask("GET", "/apis")).body["groups"] if group["name"] == "apps"]
    assert [version["version"] for version in groups[0]["versions"]] == ["v1"]


async def test_an_api_service_without_service_is_local(api: Api) -> None:
    await api.make(API_SERVICES, api_service(service=None, insecureSkipTLSVerify=False))
    assert await until(api, "Local") == "Local APIServices are always available"
    await eventually(lambda: not api.server.aggregator.groups(), "it is no other program's")


async def test_metrics_api_service_is_restored_and_decides_nothing(api: Api) -> None:
    path, metrics = f"{API_SERVICES}/v1beta1.metrics.k8s.io", "/apis/metrics.k8s.io/v1beta1/nodes"
    before = (await api.ask("GET", path)).body
    assert (await api.ask("DELETE", path)).status == 200
    after = (await api.ask("GET", path)).body
    assert before["metadata"]["uid"] != after["metadata"]["uid"]
    assert before["spec"] == after["spec"]
    elsewhere = {"spec": {"service": {"namespace": "default", "name": "nobody"}, "insecureSkipTLSVerify": True}}
    assert (await api.ask("PATCH", path, elsewhere, media="application/merge-patch+json")).status == 200
    assert (await api.ask("GET", metrics)).status == 200
