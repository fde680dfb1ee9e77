"""On request the server answers as a table for people, or with metadata only, instead of with the objects."""

import pytest

from tests.contract.client import Object
from tests.contract.manifests import RUNNING_AND_READY, config_map, pod
from tests.contract.space import Space

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
