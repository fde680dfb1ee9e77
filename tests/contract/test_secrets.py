"""Secrets take readable text, keep it encoded, and keep their type."""

import base64

import pytest

from tests.contract.manifests import secret
from tests.contract.space import Space


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def test_text_is_stored_encoded_and_never_returned_as_text(space: Space, name: str) -> None:
    made = (await space.create("secrets", secret(name, stringData={"token": "s3cret ü"}))).ok(201)
    assert made["data"] == {"token": encoded("s3cret ü")}
    assert made["type"] == "Opaque"
    assert "stringData" not in made
    assert (await space.get("secrets", name)).ok() == made


async def test_text_can_be_patched_in(space: Space, name: str) -> None:
    (await space.create("secrets", secret(name, stringData={"a": "1"}))).ok(201)
    patched = (await space.patch("secrets", name, {"stringData": {"b": "2"}})).ok(200)
    assert patched["data"] == {"a": encoded("1"), "b": encoded("2")}


@pytest.mark.parametrize(
    ("kind", "given", "missing"),
    [
        ("kubernetes.io/tls", "tls.crt", {"data[tls.key]"}),
        ("kubernetes.io/dockerconfigjson", "other", {"data[.dockerconfigjson]"}),
    ],
)
async def test_a_secret_of_a_known_type_has_its_keys(
    space: Space, name: str, kind: str, given: str, missing: set[str]
) -> None:
    refusal = (await space.create("secrets", secret(name, type=kind, stringData={given: "x"}))).refused(422, "Invalid")
    causes = refusal["details"]["causes"]
    # Kubernetes 1.20 leaves a hole of its template in some of these names.
    assert {cause["field"].replace("data[%s]", "data") for cause in causes} == missing
    assert {cause["reason"] for cause in causes} == {"FieldValueRequired"}
