"""Lists are complete, in order, and can be read in pages that together are one moment's state."""

import pytest_asyncio

from tests.contract.manifests import config_map
from tests.contract.space import Space


@pytest_asyncio.fixture
async def seven(space: Space, name: str) -> list[str]:
    """Seven objects labelled with this test's name, created in another order than that of their names."""
    for index in (3, 0, 6, 1, 5, 2, 4):
        (await space.create("configmaps", config_map(f"{name}-{index}", labels={"of": name}))).ok(201)
    return [f"{name}-{index}" for index in range(7)]


async def test_list_is_ordered_by_name_and_has_a_version(space: Space, name: str, seven: list[str]) -> None:
    listed = (await space.listing("configmaps", labelSelector=f"of={name}")).ok(200)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "ConfigMapList")
    assert [item["metadata"]["name"] for item in listed["items"]] == seven
    newest = max(int(item["metadata"]["resourceVersion"]) for item in listed["items"])
    assert int(listed["metadata"]["resourceVersion"]) >= newest
    assert not listed["metadata"].get("continue")


async def test_pages_together_are_the_whole_list(space: Space, seven: list[str]) -> None:
    names: list[str] = []
    query: dict[str, str] = {"limit": "3"}
    while True:
        page = (await space.listing("configmaps", **query)).ok(200)
        names += [item["metadata"]["name"] for item in page["items"]]
        assert len(page["items"]) <= 3
        if not page["metadata"].get("continue"):
            break
        assert len(page["items"]) == 3
        query = {"limit": "3", "continue": page["metadata"]["continue"]}
    assert names == sorted(set(names))
    assert set(seven) <= set(names)


async def test_selectors_and_pages_work_together(space: Space, name: str, seven: list[str]) -> None:
    first = (await space.listing("configmaps", limit="4", labelSelector=f"of={name}")).ok(200)
    # The count of the rest is unknown to a server that filters while it reads, and then it is left out.
    assert first["metadata"].get("remainingItemCount") in (None, 3)
    rest = await space.names(
        "configmaps", limit="4", labelSelector=f"of={name}", **{"continue": first["metadata"]["continue"]}
    )
    assert [item["metadata"]["name"] for item in first["items"]] + rest == seven


async def test_later_pages_show_the_moment_of_the_first(space: Space, name: str, seven: list[str]) -> None:
    selected: dict[str, str] = {"labelSelector": f"of={name}"}
    first = (await space.listing("configmaps", limit="3", **selected)).ok(200)
    (await space.delete("configmaps", seven[5])).ok(200)
    (await space.create("configmaps", config_map(f"{name}-4-new", labels={"of": name}))).ok(201)
    (await space.patch("configmaps", seven[6], {"data": {"key": "changed"}})).ok(200)
    second = (await space.listing("configmaps", **selected, **{"continue": first["metadata"]["continue"]})).ok(200)
    assert [item["metadata"]["name"] for item in second["items"]] == seven[3:]
    assert second["items"][-1]["data"] == {"key": "value"}
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_list_across_namespaces_includes_objects_of_this_namespace(
    space: Space, cluster: Space, name: str, seven: list[str]
) -> None:
    listed = (await cluster.listing("configmaps", labelSelector=f"of={name}")).ok(200)
    keys = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in listed["items"]]
    assert keys == [(space.namespace, each) for each in seven]


async def test_a_list_may_be_as_old_as_the_cache(space: Space, name: str, seven: list[str]) -> None:
    listed = await space.until_items(
        "configmaps",
        lambda items: len(items) == 7,
        "should show up in the cache",
        labelSelector=f"of={name}",
        resourceVersion="0",
    )
    # Kubernetes before 1.32 does not sort what it lists from its cache.
    assert sorted(item["metadata"]["name"] for item in listed) == seven
