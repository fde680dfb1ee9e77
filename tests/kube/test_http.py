"""`HttpKubeApi` against a real HTTP server: what it asks, and how it reads the answers."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from grid.core.errors import ClusterUnavailable, GridError, NotAllowed, NotFound, Rejected
from grid.kube.credentials import CredentialSource
from grid.kube.http import HttpKubeApi
from grid.kube.resources import CONFIG_MAPS, DEPLOYMENTS, NODES, PODS
from tests.kube.conftest import WriteConfig
from tests.support.builders import config_map
from tests.support.collector import attributes, collecting
from tests.support.http_server import Answer, Server, serving


def refusing(code: int, **status: object) -> Answer:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"kind": "Status", "status": "Failure", "code": code, **status}, status=code)

    return answer


async def echo(request: web.Request) -> web.Response:
    return web.json_response({"metadata": {"name": "echo"}})


async def using(write_config: WriteConfig, answer: Answer) -> AsyncIterator[tuple[Server, HttpKubeApi]]:
    """Yield a server and an API that speaks to it, closed when the test is over."""
    async with serving(answer) as server:
        api = HttpKubeApi(CredentialSource(write_config(server.url)))
        try:
            yield server, api
        finally:
            await api.close()


async def test_list_asks_for_page_and_gives_raw_bytes(write_config: WriteConfig) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b'{ "items":  [] }', content_type="application/json")

    async for server, api in using(write_config, answer):
        body = await api.list_page(
            PODS, namespace="a b", label_selector="x=1", field_selector="spec.nodeName=n", limit=7, continue_token="tok"
        )
        assert body == b'{ "items":  [] }'
        assert server.seen[0].raw_path.startswith("/api/v1/namespaces/a%20b/pods?")
        assert dict(server.seen[0].query) == {
            "labelSelector": "x=1",
            "fieldSelector": "spec.nodeName=n",
            "limit": "7",
            "continue": "tok",
        }
        assert server.seen[0].headers["Authorization"] == "Bearer t0ken"
        await api.list_page(NODES, limit=0)
        assert server.seen[1].path_qs == "/api/v1/nodes", "a whole list has no limit"


async def test_watch_events_are_whole_lines_however_the_network_cuts(write_config: WriteConfig) -> None:
    long = json.dumps({"type": "ADDED", "pad": "x" * 700_000}).encode()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for part in (b'{"a"', b":1}\n{", b'"b":2}\n', long[:1000], long[1000:], b"\n\n", b'{"unfinished'):
            await response.write(part)
            await asyncio.sleep(0.01)
        return response

    async for server, api in using(write_config, answer):
        lines = [line async for line in api.watch(PODS, resource_version="7", timeout_seconds=9)]
        assert lines == [b'{"a":1}', b'{"b":2}', long]
        common = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": "9"}
        assert dict(server.seen[0].query) == common | {"resourceVersion": "7"}
        async for _ in api.watch(PODS, resource_version="", timeout_seconds=9, initial_events=True):
            pass
        streaming = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        assert dict(server.seen[1].query) == common | streaming


async def test_leaving_a_watch_ends_it_at_the_server(write_config: WriteConfig) -> None:
    ended = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"{}\n")
                await asyncio.sleep(0.01)
        finally:
            ended.set()

    async for _, api in using(write_config, answer):
        watch = api.watch(PODS, resource_version="7")
        await anext(watch)
        await watch.aclose()  # type: ignore[attr-defined]
        async with asyncio.timeout(10):
            await ended.wait()


async def test_connection_broken_in_a_watch_is_an_outage(write_config: WriteConfig) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{}\n")
        assert request.transport is not None
        request.transport.abort()
        return response

    async for _, api in using(write_config, answer):
        watch = api.watch(PODS, resource_version="7")
        assert await anext(watch) == b"{}"
        with pytest.raises(ClusterUnavailable):
            await anext(watch)


async def test_descriptor_still_held_by_uvloop_is_an_outage(
    write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connect(*_: object) -> None:
        raise RuntimeError("File descriptor 23 is used by transport <TCPTransport closed=False reading=True>")

    async for _, api in using(write_config, echo):
        monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", connect)
        with pytest.raises(ClusterUnavailable, match="broke"):
            await api.get(PODS, "p", namespace="n")


async def test_writes_name_the_writer_and_the_kind_of_patch(write_config: WriteConfig) -> None:
    async for server, api in using(write_config, echo):
        await api.create(CONFIG_MAPS, config_map("a"), namespace="ns", dry_run=True)
        await api.replace(CONFIG_MAPS, "a", config_map("a"), namespace="ns")
        await api.patch(DEPLOYMENTS, "d", {"spec": {}}, namespace="ns")
        await api.delete(PODS, "p", namespace="ns", grace_seconds=0, propagation="Foreground", uid="u1")
        requests = [(r.method, r.path_qs, r.headers.get("Content-Type")) for r in server.seen]
        at = "/api/v1/namespaces/ns"
        assert requests == [
            ("POST", f"{at}/configmaps?fieldManager=compute-grid&dryRun=All", "application/json"),
            ("PUT", f"{at}/configmaps/a?fieldManager=compute-grid", "application/json"),
            (
                "PATCH",
                f"/apis/apps/v1{at.removeprefix('/api/v1')}/deployments/d?fieldManager=compute-grid",
                "application/merge-patch+json",
            ),
            ("DELETE", f"{at}/pods/p", "application/json"),
        ]
        assert json.loads(server.bodies[3]) == {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Foreground",
            "preconditions": {"uid": "u1"},
        }


async def test_a_hostile_name_stays_one_part_of_the_path(write_config: WriteConfig) -> None:
    async for server, api in using(write_config, echo):
        await api.get(PODS, "../../secrets?x=1#y", namespace="a/b")
        assert server.seen[0].raw_path == "/api/v1/namespaces/a%2Fb/pods/..%2F..%2Fsecrets%3Fx%3D1%23y"
        for name in (".", ".."):
            with pytest.raises(Rejected):
                await api.get(PODS, name, namespace="a")
            with pytest.raises(Rejected):
                await api.get(PODS, "a", namespace=name)
        assert len(server.seen) == 1


async def test_logs_come_in_chunks_with_the_options_asked_for(write_config: WriteConfig) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=b"one\ntwo\n")

    async for server, api in using(write_config, answer):
        options: dict[str, Any] = {"container": "run", "tail_lines": 0, "previous": True, "timestamps": True}
        logs = api.logs("p", namespace="ns", since="2026-03-04T09:00:00Z", **options)
        assert b"".join([chunk async for chunk in logs]) == b"one\ntwo\n"
        asked = {"container": "run", "tailLines": "0", "previous": "true", "timestamps": "true"}
        assert dict(server.seen[0].query) == asked | {"sinceTime": "2026-03-04T09:00:00Z"}


@pytest.mark.parametrize(("code", "kind"), [(403, NotAllowed), (404, NotFound), (500, ClusterUnavailable)])
async def test_refusals_are_our_errors_with_the_servers_words(
    write_config: WriteConfig, code: int, kind: type[GridError]
) -> None:
    async for _, api in using(write_config, refusing(code, message="pods is what it is")):
        with pytest.raises(kind, match="pods is what it is"):
            await api.get(PODS, "p", namespace="ns")
        with pytest.raises(kind):
            await anext(api.watch(PODS, resource_version="1"))
        with pytest.raises(kind):
            await anext(api.logs("p", namespace="ns"))


async def test_answer_that_is_not_json_is_an_outage(write_config: WriteConfig) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="<html>secret portal</html>", status=200 if request.path.endswith("x") else 502)

    async for _, api in using(write_config, answer):
        for name in ("x", "y"):
            with pytest.raises(ClusterUnavailable) as raised:
                await api.get(PODS, name, namespace="ns")
            assert "portal" not in str(raised.value)


async def test_a_redirect_is_not_followed_with_our_token(write_config: WriteConfig) -> None:
    async def answer(request: web.Request) -> web.Response:
        raise web.HTTPFound("/elsewhere")

    async for server, api in using(write_config, answer):
        with pytest.raises(ClusterUnavailable, match="redirect"):
            await api.get(NODES, "n")
        assert len(server.seen) == 1


async def test_failing_checks_are_read_by_name(write_config: WriteConfig) -> None:
    """As kube-apiserver tells them: as plain text, with status 500. Another body with that status is an error of which nothing is shown."""
    body = "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=body, status=500)

    async for _server, api in using(write_config, answer):
        assert await api.server_text("/readyz", verbose=True) == body
        with pytest.raises(ClusterUnavailable):
            await api.server_text("/readyz")
        body = "<html>a proxy's page</html>"
        with pytest.raises(ClusterUnavailable, match="HTTP 500") as raised:
            await api.server_text("/readyz", verbose=True)
        assert "proxy" not in str(raised.value)


async def test_connect_tells_at_once_what_is_wrong(write_config: WriteConfig) -> None:
    with (
        socket.socket() as deaf,
        pytest.raises(ClusterUnavailable, match=r"127\.0\.0\.1:\d+ cannot be reached: connection refused"),
    ):
        deaf.bind(("127.0.0.1", 0))  # and nobody listens there
        api = HttpKubeApi(CredentialSource(write_config(f"http://127.0.0.1:{deaf.getsockname()[1]}")))
        try:
            await api.server_text("/version")
        finally:
            await api.close()


async def test_a_server_that_never_answers_is_given_up_on(
    write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.kube.http.READ_SECONDS", 0.2)

    async def answer(request: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    async with serving(answer) as server:
        api = HttpKubeApi(CredentialSource(write_config(server.url)))
        try:
            with pytest.raises(ClusterUnavailable, match="does not answer in time"):
                await api.get(NODES, "n")
        finally:
            await api.close()


async def test_request_is_a_span_with_path_but_without_query(
    write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with collecting(monkeypatch) as collector:
        async for _, api in using(write_config, refusing(404)):
            with pytest.raises(NotFound):
                await api.list_page(PODS, namespace="grid", label_selector="x=1", limit=7)
        (span,) = (await collector.all()).values()
    assert span.name == "GET"
    assert attributes(span) == {
        "peer.service": "kube-apiserver",
        "url.path": "/api/v1/namespaces/grid/pods",
        "http.response.status_code": 404,
    }
