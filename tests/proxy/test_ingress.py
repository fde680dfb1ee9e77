"""A real nginx as an ingress that sends people's requests straight to the pod, as the annotations of its Ingress tell it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dashboard.proxy.gate import Target
from grid.executions.front import TOKEN_HEADER, USE_PATH, IngressSpec
from grid.executions.ingress import AUTH_PATH, auth_key, objects
from grid.sharing.grants import Passage
from tests.executions.test_manifests import spec
from tests.proxy.support import HOST, ORIGIN, OpenToOneSecret, UserServer, visiting
from tests.proxy.test_front import KEY, NGINX, Front, nginx, valid
from tests.support.ports import free_ports

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian: nginx-light)"),
]
INGRESS = IngressSpec(class_name="nginx", tls_secret="", origin=ORIGIN, proxy="proxy.test:80")
SECRET = {"Cookie": "grid_workspace=s1; grid_session=dashboard; theme=dark"}
# What ingress-nginx makes of the annotations, but for what it needs only in a cluster.
_CONFIGURATION = """
daemon off; user root; worker_processes 1; pid nginx.pid; error_log stderr crit;
events {{ worker_connections 256; }}
http {{
    access_log off; client_body_temp_path b; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; proxy_temp_path p;
    proxy_cache_path cache keys_zone=auth:1m;
    map $http_upgrade $to_program {{ default upgrade; '' ''; }}
    server {{ listen 127.0.0.1:{port} default_server; return 404; }}
    server {{
        listen 127.0.0.1:{port};
        server_name {host};
        location = /_external-auth {{
            internal;
            proxy_cache auth;
            proxy_cache_key "{cache_key}";
            proxy_cache_valid {cached};
            proxy_pass_request_body off;
            proxy_set_header Content-Length '';
            proxy_set_header X-Original-URL $scheme://$http_host$request_uri;
            proxy_set_header X-Original-Method $request_method;
            proxy_set_header Host proxy.test;
            proxy_pass {auth_url};
        }}
        location @sign_in {{ return 302 {sign_in}; }}
        location {own_path} {{ proxy_pass http://{proxy}; proxy_set_header Host $http_host; }}
        location / {{
            auth_request /_external-auth;
            {passed}
            error_page 401 = @sign_in;
            client_max_body_size {body};
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $to_program;
            proxy_buffering {buffering};
            proxy_pass http://127.0.0.1:{front};
        }}
    }}
}}
"""


def ingress_configuration(made: list[Any], port: int, proxy: str, front: int) -> str:
    """Return what an ingress would do by these objects, which reaches our proxy at `proxy`."""
    own, to_pod = (request.body for request in made if request.resource.kind == "Ingress")
    annotations = {name.partition("/")[2]: value for name, value in to_pod["metadata"]["annotations"].items()}
    names = annotations["auth-response-headers"].split(",")
    variables = {name: name.replace("-", "_") for name in names}
    passed = [
        f"auth_request_set $to_{v} $upstream_http_{v}; proxy_set_header {n} $to_{v};" for n, v in variables.items()
    ]
    return _CONFIGURATION.format(
        port=port,
        host=to_pod["spec"]["rules"][0]["host"],
        cache_key=annotations["auth-cache-key"],
        cached=annotations["auth-cache-duration"],
        auth_url=annotations["auth-url"].replace("proxy.test:80", proxy),
        sign_in=annotations["auth-signin"],
        own_path=own["spec"]["rules"][0]["http"]["paths"][0]["path"],
        proxy=proxy,
        passed="\n".join(passed),
        body=annotations["proxy-body-size"],
        buffering=annotations["proxy-buffering"],
        front=front,
    )


@dataclass
class Way:
    """The way straight to the pod: a browser of the ingress, and what decides."""

    browser: aiohttp.ClientSession
    gate: OpenToOneSecret
    front: Front
    proxy: aiohttp.ClientSession


@pytest.fixture
async def way(pod: tuple[UserServer, Target], tmp_path: Path) -> AsyncIterator[Way]:
    folders = [tmp_path / name for name in ("front", "ingress")]
    for folder in folders:
        folder.mkdir()
    port = free_ports(2)
    front = Front(port + 1, pod[1], folders[0], ingress=INGRESS)
    gate, ingress = OpenToOneSecret(address=front.target), None
    made = objects(spec(id="abc", front=front.spec), namespace="n", front_key=KEY)
    async with visiting(gate) as proxy, front:
        address = str(proxy._base_url).removeprefix("http://").rstrip("/")
        try:
            ingress = await nginx(folders[1], ingress_configuration(made, port, address, front.port), port)
            jar = aiohttp.DummyCookieJar()
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", cookie_jar=jar, headers=HOST) as browser:
                yield Way(browser, gate, front, proxy)
        finally:
            if ingress is not None:
                ingress.terminate()
                ingress.wait(30)


async def status_of(way: Way, path: str = "/", method: str = "GET", **headers: str) -> int:
    async with way.browser.request(method, path, headers=headers, allow_redirects=False) as answer:
        return answer.status


async def test_permitted_visitor_reaches_program_without_our_cookies(way: Way) -> None:
    asked = {**SECRET, TOKEN_HEADER: "forged", "Authorization": "Basic eA==", "X-Forwarded-Prefix": "/evil"}
    async with way.browser.put("/a%2Fb//c?x=%20y", data=b"abc", headers=asked) as answer:
        assert answer.status == 200
        seen, headers = await answer.json(), answer.headers
    assert (seen["method"], seen["target"], seen["length"]) == ("PUT", "/a%2Fb//c?x=%20y", 3)
    assert seen["headers"]["authorization"] == "token token-of-abc"
    assert seen["headers"]["cookie"].strip("; ") == "theme=dark"
    assert not {name for name in seen["headers"] if name.startswith("x-grid")} | (
        {"x-forwarded-prefix"} & set(seen["headers"])
    )
    assert headers["Content-Security-Policy"] == "frame-ancestors 'self'"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin-allow-popups"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Origin-Agent-Cluster"] == "?1"
    assert way.gate.used_by, "a person's request keeps the session from ending"


@pytest.mark.parametrize(
    "domain",
    ["Domain=workspaces.test", " domain = .workspaces.test ", "Domain=a.test; DOMAIN=workspaces.test", "Domain"],
)
async def test_the_programs_cookies_are_for_its_own_host_name(way: Way, domain: str) -> None:
    asked = {"cookie": f"theme=dark;{domain}; Path=/"}
    async with way.browser.get("/", params=asked, headers=SECRET) as answer:
        (theirs,) = [cookie for cookie in answer.headers.getall("Set-Cookie") if cookie.startswith("theme=dark;")]
    attributes = [attribute.strip().partition("=") for attribute in theirs.lower().split(";")]
    assert {value.strip() for name, _, value in attributes if name.strip() == "domain"} <= {""}, "browsers ignore it"
    assert ("path", "=", "/") in attributes


@pytest.mark.parametrize("cookie", ["", "grid_workspace=", "grid_workspace=s2", "theme=dark"])
async def test_nobody_and_a_stranger_are_sent_to_log_in(way: Way, cookie: str) -> None:
    async with way.browser.get("/secret", headers={"Cookie": cookie}, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (302, f"{ORIGIN}/__grid__/begin")
    async with way.browser.get("/__grid__/begin", allow_redirects=False) as answer:
        assert answer.status == 303
        assert answer.headers["Location"].startswith("https://grid.test/executions/abc/opening/?opener=")


async def test_ended_permission_or_execution_is_refused(way: Way) -> None:
    way.gate.known = Passage("abc", "stopped", "", 0, has_ended=True)
    assert await status_of(way, **SECRET) == 403
    way.gate.known = Passage("abc", "running", "", 1)
    assert await status_of(way, **SECRET) == 200
    way.gate.close()
    assert await status_of(way, Origin=ORIGIN, **SECRET) == 302


async def test_permission_is_cached_except_for_websockets_and_others(way: Way) -> None:
    assert await status_of(way, "/1", **SECRET) == 200
    way.gate.is_open = False
    assert await status_of(way, "/2", **SECRET) == 200, "kept by the ingress"
    assert await status_of(way, "/2", Cookie="grid_workspace=s2") == 302
    handshake = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    assert await status_of(way, "/ws", Origin=ORIGIN, **handshake, **SECRET) == 302


async def test_websockets_go_through_from_its_own_pages_alone(way: Way) -> None:
    async with way.browser.ws_connect("/ws", headers={**SECRET, "Origin": ORIGIN}) as ws:
        await ws.send_str("hello")
        assert await ws.receive_str() == "token token-of-abc hello"
        async with (
            aiohttp.ClientSession(way.front.url) as controller,
            controller.head(USE_PATH, headers=valid()) as answer,
        ):
            assert answer.headers["X-Grid-Open"] == "2", "the websocket and this request"
    for origin in ({"Origin": "http://abd.workspaces.test:8001"}, {}):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await way.browser.ws_connect("/ws", headers={**SECRET, **origin})
        assert refused.value.status == 403


async def test_strange_host_or_path_keeps_its_permission_check(way: Way) -> None:
    assert await status_of(way, Host="abd.workspaces.test:8001", **SECRET) == 404
    for path in ("/../x", "/x//evil.test/y", "/_external-auth", "/%2e%2e/__grid__/auth/abc", "/x?rd=http://evil.test"):
        assert await status_of(way, path) in (302, 404), path
    forged = {"X-Original-URL": "http://abd.workspaces.test/__grid__/auth", "X-Original-Method": "OPTIONS"}
    assert await status_of(way, method="POST", Origin="http://evil.test", **forged, **SECRET) == 403


@pytest.mark.parametrize("key", [auth_key("abc", "other"), auth_key("abd", KEY), "x", "", auth_key("abc", KEY).upper()])
async def test_only_the_ingress_is_given_tokens(way: Way, key: str) -> None:
    for asker in (way.proxy, way.browser):
        async with asker.get(f"{AUTH_PATH}/abc/{key}", headers=SECRET) as answer:
            assert answer.status == 404
            assert not {TOKEN_HEADER, "authorization"} & {name.lower() for name in answer.headers}


async def test_ingress_that_keeps_method_and_path_works(way: Way) -> None:
    asked = f"{AUTH_PATH}/abc/{auth_key('abc', KEY)}/lab/tree"
    async with way.proxy.get(asked, headers=SECRET) as answer:
        assert (answer.status, answer.headers["Authorization"]) == (200, "token token-of-abc")
        assert answer.headers["Cache-Control"] == "max-age=30"
    async with way.proxy.post(asked, headers={**SECRET, "Origin": "http://evil.test"}) as answer:
        assert (answer.status, answer.headers["Cache-Control"]) == (403, "no-store")
    way.gate.address = None
    async with way.proxy.get(asked, headers=SECRET) as answer:
        assert answer.status == 503


async def test_a_streamed_answer_is_not_held_back(way: Way, pod: tuple[UserServer, Target]) -> None:
    async with asyncio.timeout(30), way.browser.get("/stream", headers=SECRET) as answer:
        assert await answer.content.readany() == b"first"
        pod[0].release.set()
        assert await answer.content.read() == b"second"
