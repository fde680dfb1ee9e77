"""The binary encoding is read as kubectl writes it, and garbage is refused."""

import contextlib

import pytest
from hypothesis import given, strategies as st

from grid.sandbox.apiserver.protobuf import MEDIA_TYPE, UnreadableProtobuf, decode
from tests.sandbox.apiserver.conftest import Api


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
