"""Bodies that mean harm, or make no sense, are refused; the server goes on."""

from typing import Any

from tests.sandbox.apiserver.conftest import MERGE, Api

MAPS = "/api/v1/namespaces/default/configmaps"
_LAUGHS = "\n".join(
    [
        "kind: ConfigMap",
        "a0: &a0 [x, x, x, x, x, x, x, x, x, x]",
        *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)),
    ]
)


BAD_JSON = ("[" * 100_000, '{"metadata":' * 50_000, "null", '"text"', '{"metadata": {"name": 5}}', "\ufffd")
BAD_YAML = (_LAUGHS, "a: &a [*a]", "a: [", "- 1", "!!python/object:os.system x")


async def test_bombs_and_nonsense_are_a_bad_request(api: Api) -> None:
    for media, bodies in (("application/json", BAD_JSON), ("application/yaml", BAD_YAML)):
        for body in bodies:
            answer = await api.ask("POST", MAPS, body, media=media)
            assert (answer.status, answer.body["reason"]) == (400, "BadRequest"), body[:40]
    assert (await api.ask("GET", "/readyz")).status == 200


async def test_names_that_are_none_are_refused(api: Api) -> None:
    for name in ("../../etc", "a/b", "", "a\u0000b", "ä"):
        answer = await api.ask("POST", MAPS, {"metadata": {"name": name}})
        assert (answer.status, answer.body["reason"]) == (422, "Invalid"), name


async def test_a_patch_that_breaks_the_object_is_refused(api: Api) -> None:
    await api.config_map("a")
    patches: tuple[Any, ...] = (
        {"metadata": None},
        {"metadata": 5},
        {"metadata": {"labels": "x"}},
        {"data": []},
        {"kind": "Pod"},
    )
    for patch in patches:
        assert (await api.ask("PATCH", f"{MAPS}/a", patch, media=MERGE)).status in (400, 422), patch
        assert (await api.ask("GET", f"{MAPS}/a")).body["data"] == {"k": "v"}, patch


async def test_server_owned_fields_cannot_be_set(api: Api) -> None:
    made = (await api.config_map("a"))["metadata"]
    assert (await api.ask("PATCH", f"{MAPS}/a", {"metadata": {"uid": "other"}}, media=MERGE)).status == 409
    others = {"creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-01T00:00:00Z", "generation": 7}
    await api.ask("PATCH", f"{MAPS}/a", {"metadata": others}, media=MERGE)
    stored = (await api.ask("GET", f"{MAPS}/a")).body["metadata"]
    for name in ("uid", *others):
        assert stored.get(name) == made.get(name), name


async def test_lease_update_requires_a_resource_version(api: Api) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    await api.make(path, {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "a"}})
    answer = await api.ask("PUT", f"{path}/leader", {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "b"}})
    assert answer.status == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in answer.body["message"]
