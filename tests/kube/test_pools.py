"""Node pools, as read from what a real cluster autoscaler wrote."""

import json
from pathlib import Path

import pytest

from grid.kube.objects import ConfigMap, Metadata
from grid.kube.pools import NodeGroup, node_groups

ENDLESS = "nodeGroups: [{name: a, health: {minSize: .inf, maxSize: 1}}]"
GPU = "nodeGroups: [{name: gpu, health: {minSize: 0, maxSize: 2}}]"


def status(text: str) -> ConfigMap:
    metadata = Metadata(name="cluster-autoscaler-status", namespace="kube-system")
    return ConfigMap(metadata=metadata, data={"status": text})


def test_the_recorded_status_gives_groups_with_their_bounds() -> None:
    recorded = json.loads((Path(__file__).parents[1] / "recordings" / "autoscaler" / "status.json").read_text())
    assert node_groups([status(recorded["status"])]) == {
        "small": NodeGroup("small", 0, 4, 0, is_backed_off=False),
        "big": NodeGroup("big", 0, 3, 0, is_backed_off=False),
        "gpu": NodeGroup("gpu", 0, 2, 0, is_backed_off=False),
    }


def test_group_says_how_many_nodes_it_wants() -> None:
    text = "nodeGroups: [{name: 7, health: {minSize: 1, maxSize: 5, cloudProviderTarget: 3}}, {name: b, health: {minSize: 0, maxSize: 1}}]"
    assert node_groups([status(text)]) == {"7": NodeGroup("7", 1, 5, 3), "b": NodeGroup("b", 0, 1, 0)}


@pytest.mark.parametrize(
    ("scale_up", "is_backed_off", "error"),
    [
        ("{status: Backoff, backoffInfo: {errorCode: c, errorMessage: no capacity}}", True, "no capacity"),
        ("{status: Backoff}", True, ""),
        ("{status: InProgress}", False, ""),
        ("{}", None, ""),
        ("[Backoff]", None, ""),
        ("{status: Backoff, backoffInfo: [7]}", True, ""),
    ],
)
def test_a_group_says_whether_the_cloud_failed_to_deliver(
    scale_up: str, is_backed_off: bool | None, error: str
) -> None:
    text = f"nodeGroups: [{{name: g, health: {{minSize: 0, maxSize: 2}}, scaleUp: {scale_up}}}]"
    assert node_groups([status(text)]) == {"g": NodeGroup("g", 0, 2, 0, is_backed_off, error)}


def test_bad_status_hides_no_other_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    empty = ConfigMap(metadata=Metadata(name="empty"))
    assert set(node_groups([status("nodeGroups: 3"), empty, status(GPU)])) == {"gpu"}
    (warning,) = caplog.messages
    assert warning.startswith(
        "unreadable autoscaler status configmap=kube-system/cluster-autoscaler-status error=TypeError("
    )


def test_a_status_that_cannot_be_read_is_no_obstacle() -> None:
    old = "Cluster-autoscaler status at 2021: Healthy"
    for text in ("", "[", "nodeGroups: 3", "nodeGroups: [{}]", old, "- 1", ENDLESS, "[" * 600):
        assert node_groups([status(text)]) == {}
