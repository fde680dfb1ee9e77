"""A client can find out what the server is, what it serves and whether it is up, and is not let in without credentials."""

import pytest

from tests.contract.client import Client, Object


async def resources_of(client: Client, group_version: str) -> dict[str, Object]:
    listed = (await client.request("GET", group_version)).ok()
    assert listed["kind"] == "APIResourceList"
    return {resource["name"]: resource for resource in listed["resources"]}


async def test_the_server_tells_its_version(client: Client) -> None:
    info = (await client.request("GET", "/version")).ok()
    assert info["gitVersion"].startswith(f"v{info['major']}.")


async def test_a_server_that_works_says_it_is_ready(client: Client) -> None:
    answer = await client.request("GET", "/readyz", accept="*/*")
    assert (answer.status, answer.text) == (200, "ok")


async def test_core_group_is_listed_apart_from_named_groups(client: Client) -> None:
    core = (await client.request("GET", "/api")).ok()
    assert (core["kind"], core["versions"]) == ("APIVersions", ["v1"])
    named = (await client.request("GET", "/apis")).ok()
    assert named["kind"] == "APIGroupList"
    preferred = {group["name"]: group["preferredVersion"] for group in named["groups"]}
    assert preferred["apps"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert {"apps", "autoscaling", "coordination.k8s.io", "policy"} <= set(preferred)
    assert "" not in preferred


async def test_resources_list_kind_scope_short_names_and_verbs(client: Client) -> None:
    core = await resources_of(client, "/api/v1")
    pods = core["pods"]
    assert (pods["kind"], pods["namespaced"], pods["shortNames"]) == ("Pod", True, ["po"])
    assert {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"} <= set(pods["verbs"])
    assert core["nodes"]["namespaced"] is False
    assert {"configmaps", "events", "namespaces", "persistentvolumeclaims", "secrets", "services"} <= set(core)


async def test_subresources_are_discovered_with_the_kind_they_take(client: Client) -> None:
    core, apps = await resources_of(client, "/api/v1"), await resources_of(client, "/apis/apps/v1")
    assert core["pods/binding"]["kind"] == "Binding"
    assert (core["pods/eviction"]["group"], core["pods/eviction"]["kind"]) == ("policy", "Eviction")
    assert {"pods/log", "pods/status"} <= set(core)
    scale = apps["deployments/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


@pytest.mark.parametrize("path", ["/apis/nothing.example/v1", "/apis/apps/v9", "/nowhere"])
async def test_unserved_path_is_not_found(client: Client, path: str) -> None:
    assert (await client.request("GET", path)).status == 404


async def test_a_wrong_token_is_not_let_in(client: Client) -> None:
    answer = await client.request("GET", "/api/v1/namespaces/default/pods", token="nobody-gave-me-this")
    answer.refused(401, "Unauthorized")


async def test_a_request_without_credentials_reads_nothing(client: Client) -> None:
    # 403 where anonymous requests are known as system:anonymous, 401 where they are switched off.
    answer = await client.request("GET", "/api/v1/namespaces/default/pods", token="")
    assert answer.status in (401, 403)
    assert answer.body["kind"] == "Status"
