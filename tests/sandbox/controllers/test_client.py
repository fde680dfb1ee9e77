"""The client speaks to any API server: over TLS with a token, with every failure as one kind of error."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from grid.sandbox.client import (
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    PODS,
    ApiError,
    BadKubeconfig,
    Client,
    EventRecorder,
    Object,
    ServerAccess,
    read_kubeconfig,
    reference_to,
)
from tests.sandbox.support import FastClock, api_server


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with api_server(tmp_path, FastClock()) as found:
        yield found


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_an_object_is_made_read_changed_watched_and_deleted_over_tls(client: Client) -> None:
    path = CONFIG_MAPS.path("default")
    made = await client.create(path, config_map("notes", colour="red"))
    listing = await client.list(path)
    changed = await client.patch(f"{path}/notes", {"data": {"colour": "blue"}})
    assert changed["data"] == {"colour": "blue"}
    changed["data"]["colour"] = "green"
    await client.update(f"{path}/notes", changed)
    await client.delete(f"{path}/notes", uid=made["metadata"]["uid"])
    seen = []
    async with asyncio.timeout(10):
        async for event in client.watch(path, resource_version=listing.resource_version):
            seen.append((event.type, event.object["data"]["colour"]))
            if event.type == "DELETED":
                break
    assert seen == [("MODIFIED", "blue"), ("MODIFIED", "green"), ("DELETED", "green")]


async def test_a_list_in_many_pages_comes_back_whole(client: Client) -> None:
    for index in range(7):
        await client.create(CONFIG_MAPS.path("default"), config_map(f"m{index}"))
    listing = await client.list(CONFIG_MAPS.path("default"), limit=2)
    assert {f"m{index}" for index in range(7)} <= {item["metadata"]["name"] for item in listing.items}


async def test_a_refusal_says_what_the_server_said(client: Client) -> None:
    with pytest.raises(ApiError, match='configmaps "missing" not found') as caught:
        await client.get(CONFIG_MAPS.path("default", "missing"))
    assert caught.value.not_found
    await client.create(CONFIG_MAPS.path("default"), config_map("twice"))
    with pytest.raises(ApiError) as again:
        await client.create(CONFIG_MAPS.path("default"), config_map("twice"))
    assert again.value.conflict
    assert again.value.reason == "AlreadyExists"


async def test_a_hostile_name_stays_inside_its_path_segment(client: Client) -> None:
    with pytest.raises(ApiError) as caught:
        await client.get(CONFIG_MAPS.path("default", "../secrets?watch=true"))
    assert caught.value.status in (400, 404)


async def test_a_server_that_does_not_answer_is_an_api_error_without_a_status() -> None:
    async with Client(ServerAccess("http://127.0.0.1:1")) as client:
        with pytest.raises(ApiError, match="did not answer") as caught:
            await client.get(NAMESPACES.path())
    assert caught.value.unreachable


async def test_a_watch_cut_in_the_middle_of_a_line_gives_the_whole_lines_only() -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n{"type":"ADD')
        return response

    application = web.Application()
    application.router.add_get("/api/v1/pods", cut)
    async with TestServer(application) as server, Client(ServerAccess(str(server.make_url("")).rstrip("/"))) as client:
        seen = [event async for event in client.watch(PODS.path(), resource_version="1")]
    assert [event.object["metadata"]["name"] for event in seen] == ["a"]


async def test_an_error_event_in_a_watch_is_raised_with_its_code() -> None:
    async def expired(request: web.Request) -> web.StreamResponse:
        return web.Response(
            text='{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}}\n'
        )

    application = web.Application()
    application.router.add_get("/api/v1/pods", expired)
    async with TestServer(application) as server, Client(ServerAccess(str(server.make_url("")).rstrip("/"))) as client:
        with pytest.raises(ApiError) as caught:
            async for _ in client.watch(PODS.path(), resource_version="1"):
                pass
    assert caught.value.expired


def write_kubeconfig(folder: Path, cluster: Object, user: Object) -> Path:
    path = folder / "config"
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_a_token_may_stand_in_the_kubeconfig_or_in_a_file_beside_it(tmp_path: Path) -> None:
    plain = write_kubeconfig(tmp_path, {"server": "http://127.0.0.1:1/"}, {"token": "abc"})
    assert read_kubeconfig(plain) == ServerAccess("http://127.0.0.1:1", "abc")
    (tmp_path / "token").write_text("def\n")
    beside = write_kubeconfig(tmp_path, {"server": "http://127.0.0.1:1"}, {"tokenFile": "token"})
    assert read_kubeconfig(beside).token == "def"


@pytest.mark.parametrize(
    ("cluster", "user", "problem"),
    [
        ({"server": "ftp://x"}, {}, "names no server"),
        ({"server": "https://x", "certificate-authority": "absent.crt"}, {}, "cannot be read"),
        ({"server": "https://x", "certificate-authority-data": "%%"}, {}, "not base64"),
    ],
)
def test_a_kubeconfig_that_cannot_work_is_refused_with_a_sentence(
    tmp_path: Path, cluster: Object, user: Object, problem: str
) -> None:
    with pytest.raises(BadKubeconfig, match=problem):
        read_kubeconfig(write_kubeconfig(tmp_path, cluster, user))


def test_a_context_that_does_not_exist_is_named(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, {"server": "http://x"}, {})
    with pytest.raises(BadKubeconfig, match="no context named “nowhere”"):
        read_kubeconfig(path, "nowhere")
    with pytest.raises(BadKubeconfig, match="cannot be read"):
        read_kubeconfig(tmp_path / "absent")
    (tmp_path / "binary").write_bytes(base64.b64decode("/////w=="))
    with pytest.raises(BadKubeconfig, match="not YAML"):
        read_kubeconfig(tmp_path / "binary")


async def about(client: Client, name: str) -> Object:
    made = await client.create(CONFIG_MAPS.path("default"), config_map(name))
    return reference_to(made, kind="ConfigMap", api_version="v1")


async def test_the_same_event_again_is_counted_not_repeated(client: Client) -> None:
    recorder = EventRecorder(client, "tester")
    subject = await about(client, "subject")
    await asyncio.gather(*(recorder.record(subject, "Tried", "It was tried.") for _ in range(5)))
    events = (await client.list(EVENTS.path("default"))).items
    assert [(event["message"], event["count"], event["source"]) for event in events] == [
        ("It was tried.", 5, {"component": "tester"})
    ]


async def test_many_events_that_differ_in_their_words_only_end_in_one_that_says_so(client: Client) -> None:
    recorder = EventRecorder(client, "tester")
    subject = await about(client, "subject")
    for index in range(15):
        await recorder.record(subject, "Tried", f"Attempt {index} failed.", type="Warning")
    events = (await client.list(EVENTS.path("default"))).items
    combined = [event for event in events if event["message"].startswith("(combined from similar events): ")]
    assert len(events) == 11
    assert [(event["message"], event["count"]) for event in combined] == [
        ("(combined from similar events): Attempt 14 failed.", 5)
    ]


async def test_an_event_that_somebody_deleted_is_written_anew(client: Client) -> None:
    recorder = EventRecorder(client, "tester")
    subject = await about(client, "subject")
    await recorder.record(subject, "Tried", "It was tried.")
    first = (await client.list(EVENTS.path("default"))).items[0]
    await client.delete(EVENTS.path("default", first["metadata"]["name"]))
    await recorder.record(subject, "Tried", "It was tried.")
    assert [event["count"] for event in (await client.list(EVENTS.path("default"))).items] == [1]


async def test_an_event_that_cannot_be_written_does_not_fail_its_writer(caplog: pytest.LogCaptureFixture) -> None:
    async with Client(ServerAccess("http://127.0.0.1:1")) as client:
        await EventRecorder(client, "tester").record({"name": "x", "namespace": "default"}, "Tried", "It was tried.")
    assert "event not written reason=Tried about=x" in caplog.text
