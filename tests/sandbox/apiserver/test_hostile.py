"""Bodies that mean harm, or make no sense, are refused; the server goes on."""

from typing import Any

import pytest

from tests.sandbox.apiserver.conftest import MERGE, Api

MAPS = "/api/v1/namespaces/default/configmaps"
_LAUGHS = "\n".join(
    [
        "kind: ConfigMap",
        "a0: &a0 [x, x, x, x, x, x, x, x, x, x]",
        *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)),
    ]
)


@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000,
        '{"metadata":' * 50_000,
        "null",
        "[]",
        '"text"',
        "1",
        '{"metadata": []}',
        '{"metadata": {"name": 5}}',
        "\ud800",
    ],
)
async def test_json_that_is_no_object_is_a_bad_request(api: Api, body: str) -> None:
    sent = body.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    answer = await api.ask("POST", MAPS, sent)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("body", [_LAUGHS, "a: &a [*a]", "a: [", "- 1", "!!python/object:os.system x", "a: b: c"])
async def test_yaml_bombs_and_nonsense_are_a_bad_request(api: Api, body: str) -> None:
    answer = await api.ask("POST", MAPS, body, media="application/yaml")
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert (await api.ask("GET", "/readyz")).status == 200


@pytest.mark.parametrize("name", ["../../etc", "a/b", "A", "x" * 300, "", "a\u0000b", "-a", "ä"])
async def test_names_that_are_none_are_refused(api: Api, name: str) -> None:
    answer = await api.ask("POST", MAPS, {"metadata": {"name": name}})
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


@pytest.mark.parametrize(
    "patch", [{"metadata": None}, {"metadata": 5}, {"metadata": {"labels": "x"}}, {"data": []}, {"kind": "Pod"}]
)
async def test_a_patch_that_breaks_the_object_is_refused(api: Api, patch: Any) -> None:
    await api.config_map("a")
    assert (await api.ask("PATCH", f"{MAPS}/a", patch, media=MERGE)).status in (400, 422)
    assert (await api.ask("GET", f"{MAPS}/a")).body["data"] == {"k": "v"}


@pytest.mark.parametrize("field", ["uid", "creationTimestamp", "generation", "deletionTimestamp"])
async def test_server_owned_fields_cannot_be_set(api: Api, field: str) -> None:
    made = await api.config_map("a")
    value: Any = 7 if field == "generation" else "2020-01-01T00:00:00Z"
    if field == "uid":
        assert (await api.ask("PATCH", f"{MAPS}/a", {"metadata": {"uid": "other"}}, media=MERGE)).status == 409
    else:
        await api.ask("PATCH", f"{MAPS}/a", {"metadata": {field: value}}, media=MERGE)
    stored = (await api.ask("GET", f"{MAPS}/a")).body
    assert stored["metadata"].get(field) == made["metadata"].get(field)


async def test_lease_update_requires_a_resource_version(api: Api) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    await api.make(path, {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "a"}})
    answer = await api.ask("PUT", f"{path}/leader", {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "b"}})
    assert answer.status == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in answer.body["message"]


async def test_a_full_namespace_ends_in_rounds(api: Api) -> None:
    await api.make("/api/v1/namespaces", {"metadata": {"name": "full"}})
    for number in range(450):
        await api.make("/api/v1/namespaces/full/configmaps", {"metadata": {"name": f"m{number}"}})
    await api.ask("DELETE", "/api/v1/namespaces/full")
    left = [451]
    while (await api.ask("GET", "/api/v1/namespaces/full")).status == 200:
        left.append(len((await api.ask("GET", "/api/v1/namespaces/full/configmaps")).body["items"]))
    assert left == sorted(left, reverse=True)
    assert any(0 < each < 451 for each in left), "others were answered in between"
