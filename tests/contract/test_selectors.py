"""Label and field selectors choose exactly the objects they describe; a selector nobody understands is refused."""

import pytest
import pytest_asyncio

from tests.contract.manifests import binding, config_map, pod
from tests.contract.space import Space

COLOURS = {
    "a": {"colour": "red", "index": "1"},
    "b": {"colour": "blue", "index": "2"},
    "c": {"colour": "green", "index": "10", "canary": ""},
    "d": {},
}


@pytest_asyncio.fixture
async def coloured(space: Space, name: str) -> str:
    for suffix, labels in COLOURS.items():
        (await space.create("configmaps", config_map(f"{name}-{suffix}", labels={"of": name, **labels}))).ok(201)
    return name


CHOSEN = {
    "colour=red": "a",
    "colour!=red": "bcd",
    "colour in (red, green)": "ac",
    "colour notin (red,green)": "bd",
    "canary": "c",
    "!canary": "abd",
    "colour=green,canary": "c",
    "colour=red,colour=blue": "",
    "index>2": "c",
}


async def test_a_label_selector_chooses(space: Space, coloured: str) -> None:
    for selector, chosen in CHOSEN.items():
        names = await space.names("configmaps", labelSelector=f"of={coloured},{selector}")
        assert [each.removeprefix(f"{coloured}-") for each in names] == list(chosen), selector


async def test_a_label_selector_nobody_understands_is_a_bad_request(space: Space) -> None:
    (await space.listing("configmaps", labelSelector="colour in red")).refused(400, "BadRequest")


async def test_every_kind_can_be_selected_by_name_and_namespace(space: Space, cluster: Space, coloured: str) -> None:
    wanted = f"{coloured}-b"
    assert await space.names("configmaps", fieldSelector=f"metadata.name={wanted}") == [wanted]
    both = f"metadata.name={wanted},metadata.namespace={space.namespace}"
    assert await cluster.names("configmaps", fieldSelector=both) == [wanted]
    assert await cluster.names("configmaps", fieldSelector=f"metadata.name={wanted},metadata.namespace=default") == []
    others = await space.names("configmaps", fieldSelector=f"metadata.name!={wanted}", labelSelector=f"of={coloured}")
    assert others == [f"{coloured}-{suffix}" for suffix in "acd"]


async def test_pods_can_be_selected_by_node_and_phase(space: Space, name: str) -> None:
    for suffix in ("bound", "free", "failed"):
        (await space.create("pods", pod(f"{name}-{suffix}", labels={"of": name}))).ok(201)
    (await space.create("pods", binding(f"{name}-bound", f"{name}-node"), name=f"{name}-bound", sub="binding")).ok(201)
    (await space.patch("pods", f"{name}-failed", {"status": {"phase": "Failed"}}, sub="status")).ok(200)

    async def chosen(selector: str) -> list[str]:
        names = await space.names("pods", fieldSelector=selector, labelSelector=f"of={name}")
        return [each.removeprefix(f"{name}-") for each in names]

    assert await chosen(f"spec.nodeName={name}-node") == ["bound"]
    assert await chosen("spec.nodeName=") == ["failed", "free"]
    assert await chosen("status.phase!=Succeeded,status.phase!=Failed") == ["bound", "free"]
    assert await chosen(f"status.phase=Pending,spec.nodeName={name}-node") == ["bound"]


@pytest.mark.parametrize("selector", ["spec.foo=bar", "status.phase in (Pending)"])
async def test_a_field_selector_nobody_understands_is_a_bad_request(space: Space, selector: str) -> None:
    (await space.listing("pods", fieldSelector=selector)).refused(400, "BadRequest")
