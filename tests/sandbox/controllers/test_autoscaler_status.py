"""What the autoscaler publishes of itself, in the real one's words and order."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from grid.sandbox.controllers.autoscaling.status import GroupFacts, Transitions, config_map, status_text

NOW = datetime(2026, 11, 21, 12, 0, 0, 250_000, tzinfo=UTC)
NOW_TEXT, LATER_TEXT = "2026-11-21T12:00:00.250000Z", "2026-11-21T12:01:00.250000Z"
LATER = NOW + timedelta(minutes=1)
RECORDING = Path(__file__).parents[2] / "recordings" / "autoscaler" / "status.json"


def group(name: str = "gpu", **facts: Any) -> GroupFacts:
    quiet = {"minimum": 0, "maximum": 4, "target": 0, "registered": 0, "ready": 0, "candidates": 0, "growing": False}
    return GroupFacts(name, **(quiet | facts))


def published(*groups: GroupFacts, transitions: Transitions | None = None, now: datetime = NOW) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(status_text(groups, transitions or Transitions(), now))
    return document


def times(probe: str = NOW_TEXT, since: str = NOW_TEXT) -> dict[str, str]:
    return {"lastProbeTime": probe, "lastTransitionTime": since}


def test_quiet_group_status_matches_the_recording_in_order() -> None:
    """Ours has times in every section, where the real one leaves out those that it does not know yet."""
    recorded = yaml.safe_load(json.loads(RECORDING.read_text())["status"])
    ours = published(*[group("small"), group("big", maximum=3), group("gpu", maximum=2)])
    assert list(ours) == list(recorded)
    assert _without_times(ours) == _without_times(recorded)
    assert ours["time"] == "2026-11-21 12:00:00.250000 +0000 UTC"
    assert list(ours["clusterWide"]["health"]) == list(recorded["clusterWide"]["health"])


def _without_times(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _without_times(value) for key, value in tree.items() if key not in ("time", *times())}
    return [_without_times(item) for item in tree] if isinstance(tree, list) else tree


def test_busy_group_counts_nodes_and_shows_its_action() -> None:
    busy = group(target=5, registered=3, ready=2, candidates=1, growing=True, minimum=1, maximum=6)
    assert published(busy)["nodeGroups"] == [
        {
            "name": "gpu",
            "health": {
                "status": "Healthy",
                "nodeCounts": {
                    "registered": {"total": 3, "ready": 2, "notStarted": 1},
                    "longUnregistered": 0,
                    "unregistered": 2,
                },
                "cloudProviderTarget": 5,
                "minSize": 1,
                "maxSize": 6,
                **times(),
            },
            "scaleUp": {"status": "InProgress", **times()},
            "scaleDown": {"status": "CandidatesPresent", "candidates": 1, **times()},
        }
    ]


def test_the_whole_cluster_is_the_sum_of_its_groups() -> None:
    groups = [
        group("a", target=2, registered=2, ready=1, candidates=1),
        group("b", target=3, registered=1, ready=1, candidates=2, growing=True),
    ]
    assert published(*groups)["clusterWide"] == {
        "health": {
            "status": "Healthy",
            "nodeCounts": {
                "registered": {"total": 3, "ready": 2, "notStarted": 1},
                "longUnregistered": 0,
                "unregistered": 2,
            },
            **times(),
        },
        "scaleUp": {"status": "InProgress", **times()},
        "scaleDown": {"status": "CandidatesPresent", "candidates": 3, **times()},
    }


def test_failed_growth_shows_its_reason_instead_of_growing() -> None:
    up = published(group(growing=True, target=1, in_backoff="out of stock"))["nodeGroups"][0]["scaleUp"]
    info = {"errorCode": "cannotCreateInstance", "errorMessage": "out of stock"}
    assert up == {"status": "Backoff", "backoffInfo": info, **times()}


def test_group_with_surplus_nodes_lacks_no_machines() -> None:
    (only_wanted,) = published(group(target=1))["nodeGroups"]
    assert only_wanted["health"]["nodeCounts"]["unregistered"] == 1
    (only_there,) = published(group(registered=1))["nodeGroups"]
    assert only_there["health"]["nodeCounts"]["unregistered"] == 0


def test_status_sections_remember_when_they_last_changed() -> None:
    transitions = Transitions()
    published(group("a"), group("b"), transitions=transitions)
    first, second = published(group("a", growing=True), group("b", candidates=1), transitions=transitions, now=LATER)[
        "nodeGroups"
    ]
    changed, same = times(LATER_TEXT, LATER_TEXT), times(LATER_TEXT, NOW_TEXT)
    assert first["scaleUp"] == {"status": "InProgress", **changed}
    assert first["scaleDown"] == {"status": "NoCandidates", **same}
    assert first["health"].items() >= same.items()
    assert second["scaleUp"] == {"status": "NoActivity", **same}
    assert second["scaleDown"] == {"status": "CandidatesPresent", "candidates": 1, **changed}


def test_status_is_published_in_the_usual_place() -> None:
    recorded = json.loads(RECORDING.read_text())["annotations"]
    made = config_map("text", NOW)
    assert (made["apiVersion"], made["kind"], made["data"]) == ("v1", "ConfigMap", {"status": "text"})
    assert (made["metadata"]["namespace"], made["metadata"]["name"]) == ("kube-system", "cluster-autoscaler-status")
    assert set(made["metadata"]["annotations"]) == set(recorded)
    assert set(made["metadata"]["annotations"].values()) == {"2026-11-21 12:00:00.250000 +0000 UTC"}
