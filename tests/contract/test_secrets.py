"""Secrets take readable text, keep it encoded, and keep their type."""

import base64

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
