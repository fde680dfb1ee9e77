"""What bodies mean: patches beyond what was recorded, the binary encoding of kubectl, and what means harm or makes no sense."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.sandbox.apiserver.patches import NoMergeKey, merge_patch, strategic_merge
from grid.sandbox.apiserver.protobuf import MEDIA_TYPE, UnreadableProtobuf, decode
from tests.sandbox.apiserver.conftest import MERGE, Api


# From RFC 7386, appendix A.
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches_follow_their_rfc(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


def test_service_ports_are_told_apart_by_their_port() -> None:
    spec = {"ports": [{"port": 80, "name": "a"}, {"port": 81}]}
    merged = strategic_merge(spec, {"ports": [{"port": 80, "targetPort": 8080}]}, "ServiceSpec")
    assert merged == {"ports": [{"port": 80, "name": "a", "targetPort": 8080}, {"port": 81}]}


def test_an_element_without_its_key_is_refused() -> None:
    with pytest.raises(NoMergeKey, match="declared merge key: name"):
        strategic_merge({"containers": []}, {"containers": [{"image": "x"}]}, "PodSpec")


def test_directives_do_not_end_up_in_the_object() -> None:
    patch = {
        "$retainKeys": ["a"],
        "a": {"$patch": "replace", "b": 1},
        "$setElementOrder/c": [],
        "d": {"$patch": "delete"},
    }
    assert strategic_merge({"a": {"x": 1}, "z": 1}, patch, "") == {"a": {"b": 1}, "d": {}}


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(kind: str, version: str, message: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, version) + field(2, kind)) + field(2, message)


def test_numbers_lists_maps_and_nested_structs_are_understood() -> None:
    quantity = field(1, "500m")
    container = (
        field(1, "app")
        + field(4, "sleep")
        + field(4, "5")
        + field(8, field(2, field(1, "cpu") + field(2, quantity)))
        + field(10, field(1, field(2, field(1, "/healthz") + field(2, field(1, 1) + field(3, "http")))))
    )
    volume = field(1, "data") + field(2, field(10, field(1, "claim")))
    spec = field(1, volume) + field(2, container) + field(4, -5) + field(11, 1)
    pod = decode(envelope("Pod", "v1", field(1, field(1, "p")) + field(2, spec)))
    assert pod["spec"] == {
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}],
        "containers": [
            {
                "name": "app",
                "args": ["sleep", "5"],
                "resources": {"requests": {"cpu": "500m"}},
                "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
            }
        ],
        "terminationGracePeriodSeconds": -5,
        "hostNetwork": True,
    }


def test_a_field_that_nobody_knows_makes_the_body_unreadable() -> None:
    with pytest.raises(UnreadableProtobuf):
        decode(envelope("ConfigMap", "v1", field(99, "secret")))


@given(st.binary(max_size=60))
def test_garbage_is_refused_and_breaks_nothing(data: bytes) -> None:
    for body in (data, b"k8s\x00" + data, envelope("Pod", "v1", data), envelope("Pod", "v1", field(2, data))):
        with contextlib.suppress(UnreadableProtobuf):
            decode(body)


async def test_an_object_can_be_created_from_it(api: Api) -> None:
    message = field(1, field(1, "a")) + field(2, field(1, "x") + field(2, "y"))
    path = "/api/v1/namespaces/default/configmaps"
    headers = {"Authorization": f"Bearer {api.server.tokens.by_name['admin']}", "Content-Type": MEDIA_TYPE}
    body = envelope("ConfigMap", "v1", message)
    async with api.session.post(api.url + path, data=body, headers=headers) as response:
        assert response.status == 201
        assert (await response.json())["data"] == {"x": "y"}
    async with api.session.post(api.url + path, data=b"k8s\x00\xff", headers=headers) as response:
        assert response.status == 400


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
