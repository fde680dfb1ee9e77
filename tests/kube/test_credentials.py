"""Credentials: which are read, when they are read again, and what is said when they are of no use."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from aiohttp import web

from grid.core.errors import ClusterUnavailable, GridError, NotAllowed
from grid.kube import credentials
from grid.kube.credentials import CredentialSource
from grid.kube.http import HttpKubeApi
from grid.kube.resources import NODES
from tests.kube.conftest import WriteConfig
from tests.support.http_server import serving


async def echo(request: web.Request) -> web.Response:
    return web.json_response({"metadata": {"name": "echo"}})


def only(token: str) -> object:
    async def answer(request: web.Request) -> web.Response:
        if request.headers.get("Authorization") == f"Bearer {token}":
            return await echo(request)
        return web.json_response({"kind": "Status", "message": "Unauthorized", "code": 401}, status=401)

    return answer


async def test_a_context_is_chosen_by_name(write_config: WriteConfig) -> None:
    with pytest.raises(ClusterUnavailable, match="three"):
        await HttpKubeApi(CredentialSource(write_config("http://127.0.0.1:1"), "three")).get(NODES, "n")
    async with serving(echo) as server:
        api = HttpKubeApi(CredentialSource(write_config(server.url), "two"))
        await api.get(NODES, "n")
        await api.close()
        assert server.seen[0].headers["Authorization"] == "Bearer other"


async def test_credentials_are_read_at_first_request_and_retried(write_config: WriteConfig, tmp_path: Path) -> None:
    api = HttpKubeApi(CredentialSource(str(tmp_path / "later")))
    with pytest.raises(ClusterUnavailable, match=r"no kubeconfig at .*later"):
        await api.get(NODES, "n")
    async with serving(echo) as server:
        write_config(server.url, name="later")
        assert await api.get(NODES, "n")
        await api.close()


async def test_cluster_moved_to_another_address_is_found(write_config: WriteConfig) -> None:
    async with serving(echo) as first:
        api = HttpKubeApi(CredentialSource(write_config(first.url)))
        await api.get(NODES, "n")
    async with serving(echo) as second:
        with pytest.raises(ClusterUnavailable):
            await api.get(NODES, "n")
        write_config(second.url, {"token": "new"})
        await api.get(NODES, "n")
        await api.close()
        assert second.seen[0].headers["Authorization"] == "Bearer new"


async def test_refused_credentials_are_read_again_and_the_request_repeated(write_config: WriteConfig) -> None:
    now = 1000.0
    async with serving(only("fresh")) as server:  # type: ignore[arg-type]
        api = HttpKubeApi(CredentialSource(write_config(server.url, {"token": "stale"})), clock=lambda: now)
        with pytest.raises(NotAllowed):
            await api.get(NODES, "n")
        write_config(server.url, {"token": "fresh"})
        now += 60
        assert await api.get(NODES, "n")
        await api.close()


async def test_refused_credentials_are_not_read_again_all_the_time(write_config: WriteConfig, tmp_path: Path) -> None:
    """Each reading may run a program that asks a login service."""
    count = tmp_path / "count"
    user = {"exec": _plugin(tmp_path, f"echo x >> {count}; echo '{_answer('wrong')}'")}
    async with serving(only("right")) as server:  # type: ignore[arg-type]
        api = HttpKubeApi(CredentialSource(write_config(server.url, user)), clock=lambda: 1000.0)
        for _ in range(5):
            with pytest.raises(NotAllowed, match="expired"):
                await api.get(NODES, "n")
        await api.close()
    assert count.read_text().count("x") == 1


async def test_credential_program_is_run_again_when_they_expire(write_config: WriteConfig, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    user = {"exec": _plugin(tmp_path, f"""printf '{_answer("%s")}' "$(cat {token})" """)}
    now = 1000.0
    accepted = "first"

    async def answer(request: web.Request) -> web.Response:
        code = 200 if request.headers.get("Authorization") == f"Bearer {accepted}" else 401
        return web.json_response({}, status=code)

    async with serving(answer) as server:
        api = HttpKubeApi(CredentialSource(write_config(server.url, user)), clock=lambda: now)
        await api.get(NODES, "n")
        accepted = "second"
        token.write_text("second")
        now += 3600
        await api.get(NODES, "n")
        await api.close()
        assert [request.headers["Authorization"] for request in server.seen] == [
            "Bearer first",
            "Bearer first",
            "Bearer second",
        ]


def _answer(token: str) -> str:
    return f'{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"{token}"}}}}'


def _plugin(folder: Path, script: str) -> dict[str, object]:
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), "interactiveMode": "Never"}


@pytest.mark.parametrize(
    "content",
    ["token: s3cret\n: - :", "s3cret", "clusters: s3cret\ncontexts: 7\nusers: []\ncurrent-context: one", "\x00\xff"],
)
async def test_malformed_kubeconfig_is_an_outage_without_its_content(content: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(GridError) as raised:
        await HttpKubeApi(CredentialSource(str(path))).get(NODES, "n")
    assert isinstance(raised.value, ClusterUnavailable)
    assert "s3cret" not in str(raised.value)


async def test_an_address_that_is_none_is_an_outage(write_config: WriteConfig) -> None:
    for address in ("nonsense", "http://127.0.0.1:99999"):
        api = HttpKubeApi(CredentialSource(write_config(address)))
        with pytest.raises(ClusterUnavailable):
            await api.get(NODES, "n")
        await api.close()


async def test_environment_proxy_is_asked_unless_excluded(
    write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(echo) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "near.example")
        source = CredentialSource(write_config("http://far.example:6443"))
        api = HttpKubeApi(source)
        await api.get(NODES, "n")
        await api.close()
        assert proxy.seen[0].headers["Host"] == "far.example:6443"
        write_config("http://near.example:6443")
        assert (await source.load()).proxy is None


def test_service_account_comes_before_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert CredentialSource().paths() == [tmp_path / ".kube" / "config"]
    token = tmp_path / "token"
    token.write_text("t")
    monkeypatch.setattr(credentials, "IN_CLUSTER", token)
    assert CredentialSource().paths(), "the token alone, as in a container's copy, is not enough"
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    assert CredentialSource().paths() == []
    assert CredentialSource("/some/where").paths() == [Path("/some/where")]


def test_several_paths_are_several_files() -> None:
    assert CredentialSource(os.pathsep.join(("/a", "", "/b"))).paths() == [Path("/a"), Path("/b")]


def test_client_library_is_imported_lazily_without_its_models() -> None:
    code = """
import asyncio, contextlib, sys
from grid.core.errors import ClusterUnavailable
from grid.kube.http import HttpKubeApi
from grid.kube.credentials import CredentialSource

print(sum(name.startswith("kubernetes") for name in sys.modules))
with contextlib.suppress(ClusterUnavailable):
    asyncio.run(CredentialSource("/no/such/file").load())
print("kubernetes.aio.config" in sys.modules, sum(name.startswith("kubernetes.aio.client.models") for name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after, models = done.stdout.split()
    assert (before, after) == ("0", "True")
    assert int(models) < 5
