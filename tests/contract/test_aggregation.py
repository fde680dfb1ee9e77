"""An APIService makes another program's API a part of this server's: reached through it, with the caller's name, as long as it answers."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.contract.aggregated import OwnApi, api_service, external_name, own_api
from tests.contract.client import Client, Object
from tests.contract.kubeconfig import Connection
from tests.contract.space import Space
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("reaches_us")


@pytest_asyncio.fixture
async def api(space: Space, cluster: Space, name: str, tmp_path: Path) -> AsyncIterator[OwnApi]:
    """Served, with its Service; the APIService is the test's to make and goes with it."""
    config = await Space(space.client, "kube-system").get("configmaps", "extension-apiserver-authentication")
    authority = config.ok(200)["data"]["requestheader-client-ca-file"]
    served = own_api(f"{name}.example.com", "v1", f"{name}.{space.namespace}.svc", tmp_path, client_authority=authority)
    async with served as api:
        (await space.create("services", external_name(name))).ok(201)
        yield api
        await cluster.delete("apiservices", f"v1.{api.group}")


def condition(registration: Object) -> Object:
    conditions = (registration.get("status") or {}).get("conditions") or ()
    return next((dict(item) for item in conditions if item["type"] == "Available"), {})


async def becomes(cluster: Space, api: OwnApi, status: str, reason: str) -> Object:
    registration = await cluster.until(
        "apiservices",
        f"v1.{api.group}",
        lambda registration: (
            (condition(registration).get("status"), condition(registration).get("reason")) == (status, reason)
        ),
        f"should become {status} {reason}",
    )
    return condition(registration)


async def answers(client: Client, path: str, status: int) -> None:
    """Routes follow the objects a moment later."""

    async def does() -> bool:
        return (await client.request("GET", path)).status == status

    await eventually(does, f"{path} should answer {status}")


async def register(cluster: Space, space: Space, api: OwnApi, name: str) -> str:
    """Returns the path of its resources in the namespace once it is available."""
    (await cluster.create("apiservices", api_service(api, space.namespace, name, caBundle=api.bundle))).ok(201)
    assert (await becomes(cluster, api, "True", "Passed"))["message"] == "all checks passed"
    path = f"/apis/{api.group}/v1"
    await answers(cluster.client, path, 200)
    return f"{path}/namespaces/{space.namespace}"


async def test_requests_arrive_as_they_were_made(cluster: Space, space: Space, api: OwnApi, name: str) -> None:
    path = await register(cluster, space, api, name)
    answer = await space.client.request("POST", f"{path}/echoes/a", body={"x": 1}, query={"labelSelector": "a in (b)"})
    echo = answer.ok(201)
    assert answer.headers["X-Own"] == "yes"
    assert (echo["method"], json.loads(echo["body"])) == ("POST", {"x": 1})
    assert echo["path"].startswith(f"{path}/echoes/a?labelSelector=a")
    assert ["content-type", "application/json"] in echo["headers"]


async def test_aggregated_api_gets_caller_identity_that_cannot_be_forged(
    cluster: Space, space: Space, api: OwnApi, name: str, connection: Connection
) -> None:
    path = await register(cluster, space, api, name)
    echo = (await space.client.request("GET", f"{path}/echoes")).ok(200)
    headers: list[Any] = echo["headers"]
    assert "authorization" not in {key for key, _ in headers}
    assert len([value for key, value in headers if key == "x-remote-user" and value]) == 1
    assert "system:authenticated" in [value for key, value in headers if key == "x-remote-group"]
    config = await Space(space.client, "kube-system").get("configmaps", "extension-apiserver-authentication")
    data = config.ok(200)["data"]
    assert echo["subject"], "the server should present a certificate that the announced authority signed"
    assert dict(echo["subject"])["commonName"] in json.loads(data["requestheader-allowed-names"])
    assert json.loads(data["requestheader-username-headers"]) == ["X-Remote-User"]
    assert json.loads(data["requestheader-group-headers"]) == ["X-Remote-Group"]


async def test_aggregated_api_is_discovered_until_its_api_service_goes(
    cluster: Space, space: Space, api: OwnApi, name: str, client: Client
) -> None:
    await register(cluster, space, api, name)
    groups = (await client.request("GET", "/apis")).ok(200)["groups"]
    (group,) = (group for group in groups if group["name"] == api.group)
    assert group["preferredVersion"] == {"groupVersion": f"{api.group}/v1", "version": "v1"}
    assert (await client.request("GET", f"/apis/{api.group}")).ok(200)["versions"] == group["versions"]
    resources = (await client.request("GET", f"/apis/{api.group}/v1")).ok(200)["resources"]
    assert [resource["name"] for resource in resources] == ["echoes"]
    (await cluster.delete("apiservices", f"v1.{api.group}")).ok(200)
    await answers(client, f"/apis/{api.group}/v1", 404)


async def test_without_its_service_it_is_not_available(
    cluster: Space, space: Space, api: OwnApi, name: str, client: Client
) -> None:
    absent = api_service(api, space.namespace, f"{name}-absent", insecureSkipTLSVerify=True)
    (await cluster.create("apiservices", absent)).ok(201)
    message = (await becomes(cluster, api, "False", "ServiceNotFound"))["message"]
    assert message == f'service/{name}-absent in "{space.namespace}" is not present'
    await answers(client, f"/apis/{api.group}/v1", 503)
    (await space.create("services", external_name(f"{name}-absent"))).ok(201)
    await becomes(cluster, api, "True", "Passed")


async def test_a_certificate_that_nobody_vouches_for_is_not_believed(
    cluster: Space, space: Space, api: OwnApi, name: str, client: Client
) -> None:
    # Whether it is called available meanwhile differs: a real server looks only whether anybody answers.
    (await cluster.create("apiservices", api_service(api, space.namespace, name))).ok(201)
    await answers(client, f"/apis/{api.group}/v1", 503)
    (await cluster.patch("apiservices", f"v1.{api.group}", {"spec": {"insecureSkipTLSVerify": True}})).ok(200)
    await answers(client, f"/apis/{api.group}/v1", 200)
