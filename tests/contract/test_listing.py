"""Lists are complete and in order, whole or in pages; selectors choose exactly what they describe, and tables are for people."""

import pytest
import pytest_asyncio

from tests.contract.client import Object
from tests.contract.manifests import RUNNING_AND_READY, binding, config_map, event, pod
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


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"


def rows(table: Object) -> list[dict[str, object]]:
    """Cells by column, without the columns that only a wide listing shows."""
    columns = table["columnDefinitions"]
    return [
        {column["name"]: cell for column, cell in zip(columns, row["cells"], strict=True) if column["priority"] == 0}
        for row in table["rows"]
    ]


async def test_pods_are_shown_with_readiness_status_and_restarts(space: Space, name: str) -> None:
    (await space.create("pods", pod(name, labels={"of": name}))).ok(201)
    table = (await space.listing("pods", accept=TABLE, labelSelector=f"of={name}")).ok(200)
    assert (table["apiVersion"], table["kind"]) == ("meta.k8s.io/v1", "Table")
    assert int(table["metadata"]["resourceVersion"]) > 0
    (row,) = rows(table)
    assert set(row) == {"Name", "Ready", "Status", "Restarts", "Age"}
    assert (row["Name"], row["Ready"], row["Status"]) == (name, "0/1", "Pending")
    # A number before 1.22, a text since: a later one adds how long ago the last restart was.
    assert str(row["Restarts"]) == "0"
    (await space.patch("pods", name, RUNNING_AND_READY, sub="status")).ok(200)
    container = {"name": "app", "ready": True, "restartCount": 2, "image": "x", "imageID": "", "state": {"running": {}}}
    (await space.patch("pods", name, {"status": {"containerStatuses": [container]}}, sub="status")).ok(200)
    (row,) = rows((await space.listing("pods", accept=TABLE, labelSelector=f"of={name}")).ok(200))
    assert (row["Ready"], row["Status"], str(row["Restarts"])) == ("1/1", "Running", "2")


@pytest.mark.parametrize(
    ("resource", "columns"),
    [
        ("configmaps", {"Name", "Data", "Age"}),
        ("events", {"Last Seen", "Type", "Reason", "Object", "Message"}),
        ("services", {"Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age"}),
        ("poddisruptionbudgets", {"Name", "Min Available", "Max Unavailable", "Allowed Disruptions", "Age"}),
    ],
)
async def test_each_kind_has_its_columns(space: Space, resource: str, columns: set[str]) -> None:
    table = (await space.listing(resource, accept=TABLE)).ok(200)
    assert {column["name"] for column in table["columnDefinitions"] if column["priority"] == 0} == columns


async def test_metadata_can_be_read_without_the_rest(space: Space, name: str) -> None:
    made = (await space.create("configmaps", config_map(name, labels={"of": name}))).ok(201)
    listed = (await space.listing("configmaps", accept=METADATA_LIST, labelSelector=f"of={name}")).ok(200)
    assert (listed["apiVersion"], listed["kind"]) == ("meta.k8s.io/v1", "PartialObjectMetadataList")
    assert [item["metadata"]["uid"] for item in listed["items"]] == [made["metadata"]["uid"]]
    none = (await space.listing("configmaps", accept=METADATA_LIST, labelSelector=f"of={name}-nobody")).ok(200)
    assert none["items"] is None
    partial = (await space.get("configmaps", name, accept=METADATA)).ok(200)
    assert (partial["kind"], partial["metadata"], "data" in partial) == (
        "PartialObjectMetadata",
        made["metadata"],
        False,
    )


async def subject(space: Space, name: str) -> Object:
    return (await space.create("configmaps", config_map(name))).ok(201)


async def test_an_event_keeps_what_was_told(space: Space, name: str) -> None:
    about = await subject(space, name)
    time = "2026-01-02T03:04:05Z"
    sent = event(name, about, count=3, firstTimestamp=time, lastTimestamp=time, source={"component": "contract-tests"})
    made = (await space.create("events", sent)).ok(201)
    for key in ("reason", "message", "type", "count", "firstTimestamp", "lastTimestamp", "source"):
        assert made[key] == sent[key]
    assert made["involvedObject"] == sent["involvedObject"]


async def test_events_are_found_by_the_object_they_are_about(space: Space, name: str) -> None:
    first, second = await subject(space, f"{name}-1"), await subject(space, f"{name}-2")
    (await space.create("events", event(f"{name}-a", first, type="Warning", reason="Failed"))).ok(201)
    (await space.create("events", event(f"{name}-b", first))).ok(201)
    (await space.create("events", event(f"{name}-c", second))).ok(201)

    async def event_names(**fields: str) -> list[str]:
        about = {"involvedObject.kind": "ConfigMap", "involvedObject.name": f"{name}-1", **fields}
        return await space.names("events", fieldSelector=",".join(f"{key}={value}" for key, value in about.items()))

    assert await event_names() == [f"{name}-a", f"{name}-b"]
    assert await event_names(type="Warning") == [f"{name}-a"]
    assert await event_names(reason="Tested") == [f"{name}-b"]
    assert await event_names(**{"involvedObject.uid": first["metadata"]["uid"]}) == [f"{name}-a", f"{name}-b"]
    assert await event_names(**{"involvedObject.uid": second["metadata"]["uid"]}) == []


async def test_a_repetition_is_counted_by_a_patch(space: Space, name: str) -> None:
    (await space.create("events", event(name, await subject(space, name), count=1))).ok(201)
    change = {"count": 2, "lastTimestamp": "2026-01-02T03:04:06Z", "message": "again"}
    patched = (await space.patch("events", name, change, kind="strategic")).ok(200)
    assert {key: patched[key] for key in change} == change
