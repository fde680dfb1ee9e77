"""The same promises of `KubeApi`, kept by the fake that other tests trust and by HTTP to a cluster."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from grid.core.errors import Conflict, NotFound, Rejected
from grid.kube.api import KubeApi
from grid.kube.credentials import CredentialSource
from grid.kube.decoding import Bookmark, Changed, Codec
from grid.kube.http import HttpKubeApi
from grid.kube.objects import ConfigMap, RawObject
from grid.kube.resources import CONFIG_MAPS, NAMESPACES, PODS
from tests.contract.conftest import chosen_kubeconfig
from tests.contract.embedded import EmbeddedCluster
from tests.support.builders import config_map, pod
from tests.support.cluster import FakeCluster

CODEC = Codec(ConfigMap)


@pytest_asyncio.fixture(params=["memory", "http"])
async def api(request: pytest.FixtureRequest, embedded: EmbeddedCluster | None) -> AsyncIterator[KubeApi]:
    is_memory = request.param == "memory"
    api: KubeApi = FakeCluster() if is_memory else HttpKubeApi(CredentialSource(str(chosen_kubeconfig(embedded))))
    yield api
    await api.close()


@pytest_asyncio.fixture
async def namespace(api: KubeApi) -> AsyncIterator[str]:
    name = f"same-{secrets.token_hex(4)}"
    await api.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await api.delete(NAMESPACES, name)


def bare(name: str, data: dict[str, str] | None = None, **meta: Any) -> RawObject:
    made = config_map(name, data, **meta)
    made["metadata"] = {
        key: made["metadata"][key] for key in ("name", "labels", "ownerReferences") if key in made["metadata"]
    }
    return made


async def test_created_object_can_be_read_and_not_created_again(api: KubeApi, namespace: str) -> None:
    made = await api.create(CONFIG_MAPS, bare("a", {"k": "v"}), namespace=namespace)
    assert made["metadata"]["uid"]
    assert await api.get(CONFIG_MAPS, "a", namespace=namespace) == made
    with pytest.raises(Conflict):
        await api.create(CONFIG_MAPS, bare("a"), namespace=namespace)


async def test_missing_object_is_not_found(api: KubeApi, namespace: str) -> None:
    for attempt in (
        api.get(CONFIG_MAPS, "a", namespace=namespace),
        api.patch(CONFIG_MAPS, "a", {}, namespace=namespace),
        api.delete(CONFIG_MAPS, "a", namespace=namespace),
        api.replace(CONFIG_MAPS, "a", bare("a"), namespace=namespace),
    ):
        with pytest.raises(NotFound):
            await attempt
    with pytest.raises(NotFound):
        await anext(api.logs("a", namespace=namespace))


async def test_stale_write_is_a_conflict_and_unversioned_write_wins(api: KubeApi, namespace: str) -> None:
    first = await api.create(CONFIG_MAPS, bare("a"), namespace=namespace)
    await api.patch(CONFIG_MAPS, "a", {"data": {"k": "2"}}, namespace=namespace)
    first["data"] = {"k": "stale"}
    with pytest.raises(Conflict):
        await api.replace(CONFIG_MAPS, "a", first, namespace=namespace)
    with pytest.raises(Conflict):
        stale = {"metadata": {"resourceVersion": first["metadata"]["resourceVersion"]}, "data": {"k": "stale"}}
        await api.patch(CONFIG_MAPS, "a", stale, namespace=namespace)
    del first["metadata"]["resourceVersion"]
    assert (await api.replace(CONFIG_MAPS, "a", first, namespace=namespace))["data"] == {"k": "stale"}


async def test_list_of_metadata_has_no_data(api: KubeApi, namespace: str) -> None:
    made = await api.create(CONFIG_MAPS, bare("a", {"k": "v"}), namespace=namespace)
    body = msgspec.json.decode(await api.list_page(CONFIG_MAPS, namespace=namespace, metadata_only=True))
    (pod,) = [item for item in body["items"] if item["metadata"]["name"] == "a"]
    assert pod["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert "data" not in pod


async def test_watch_tells_each_change_and_ends_in_time(api: KubeApi, namespace: str) -> None:
    version = CODEC.page(await api.list_page(CONFIG_MAPS, namespace=namespace)).resource_version
    await api.create(CONFIG_MAPS, bare("a", labels={"x": "1"}), namespace=namespace)
    await api.patch(CONFIG_MAPS, "a", {"data": {"k": "v"}}, namespace=namespace)
    await api.create(CONFIG_MAPS, bare("other"), namespace=namespace)
    await api.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"x": "2"}}}, namespace=namespace)
    changes: list[tuple[str, bool]] = []
    async with asyncio.timeout(30):
        watch = api.watch(
            CONFIG_MAPS, resource_version=version, namespace=namespace, label_selector="x=1", timeout_seconds=1
        )
        async for line in watch:
            event = CODEC.line(line)
            assert isinstance(event, Changed | Bookmark)
            if isinstance(event, Changed):
                changes.append((event.object.metadata.name, event.gone))
                assert int(event.object.metadata.resource_version) > int(version)
    assert changes == [("a", False), ("a", False), ("a", True)], "what leaves the selector is gone"


async def test_conditional_delete_spares_another_object_of_the_name(api: KubeApi, namespace: str) -> None:
    made = await api.create(CONFIG_MAPS, bare("a"), namespace=namespace)
    with pytest.raises(Conflict):
        await api.delete(CONFIG_MAPS, "a", namespace=namespace, uid="another")
    await api.delete(CONFIG_MAPS, "a", namespace=namespace, uid=made["metadata"]["uid"])
    with pytest.raises(NotFound):
        await api.get(CONFIG_MAPS, "a", namespace=namespace)


async def pod_without_a_node(api: KubeApi, namespace: str) -> RawObject:
    made = pod("p", namespace=namespace, spec={"nodeSelector": {"nobody": "has-this"}})
    made["metadata"] = {"name": "p"}
    del made["status"]
    for _ in range(200):
        try:
            return await api.create(PODS, made, namespace=namespace)
        except (Conflict, NotFound, Rejected):
            raise
        except Exception as error:  # a new namespace has no service account for a moment
            assert "service account" in str(error)
            await asyncio.sleep(0.1)
    raise AssertionError("the namespace got no service account")


async def test_eviction_spares_a_namesake_and_misses_absent_pod(api: KubeApi, namespace: str) -> None:
    made = await pod_without_a_node(api, namespace)
    with pytest.raises(Conflict):
        await api.evict("p", namespace=namespace, uid="another")
    await api.evict("p", namespace=namespace, uid=made["metadata"]["uid"])
    with pytest.raises(NotFound):
        await api.evict("p", namespace=namespace)
