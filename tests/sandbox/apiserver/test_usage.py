from datetime import UTC, datetime

import msgspec

from grid.sandbox.apiserver.store import Record
from grid.sandbox.apiserver.usage import pod_metrics

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def stored(name: str, *, uid: str) -> Record:
    metadata = {"namespace": "n", "name": name, "uid": uid}
    return Record(f"n/{name}", None, msgspec.json.encode({"metadata": metadata}), 1)


def summary(name: str, *, uid: str) -> dict[str, object]:
    container = {"name": "main", "cpu": {"usageNanoCores": 5}, "memory": {"workingSetBytes": 2048}}
    return {"pods": [{"podRef": {"namespace": "n", "name": name, "uid": uid}, "containers": [container]}]}


def test_pod_with_name_of_a_measured_pod_is_unmeasured() -> None:
    stats = {"node-1": summary("a", uid="old"), "node-2": summary("a", uid="new")}
    [metrics] = pod_metrics([stored("a", uid="new")], stats, NOW)
    assert metrics["containers"] == [{"name": "main", "usage": {"cpu": "5n", "memory": "2Ki"}}]
    assert not list(pod_metrics([stored("a", uid="newest")], stats, NOW))
