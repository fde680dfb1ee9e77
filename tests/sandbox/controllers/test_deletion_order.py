"""Which pods a scale-down takes: against five recorded Deployments that a real controller shrank step by step."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from grid.sandbox.client import Object, format_time
from grid.sandbox.controllers.replicas import DELETION_COST, deletion_order, is_active
from tests.sandbox.controllers.replay import recording

SCENARIOS = ("plain", "cost", "nodes", "unready", "bad-cost")


@dataclass(slots=True)
class Shrink:
    """The pods at the moment of a decision, and those that the real controller chose."""

    pods: list[Object]
    now: datetime
    chosen: set[str]


def shrinks(record: dict[str, Any]) -> list[Shrink]:
    """The recorded scale-downs, in order."""
    start = datetime.fromisoformat(record["t0"])
    pods: dict[str, Object] = {}
    recorded: list[Shrink] = []
    for entry in record["timeline"]:
        if entry["kind"] == "step" and entry["what"].startswith("cost "):
            _, cost, _, name = entry["what"].split()
            pods[name]["metadata"]["annotations"] = {DELETION_COST: cost}
        elif entry["kind"] == "refused":
            pods[entry["what"].split()[-1]]["metadata"].pop("annotations")
        elif entry["kind"] == "step" and entry["what"].startswith("scale to"):
            recorded.append(Shrink([], start + timedelta(seconds=entry["t"]), set()))
        elif entry["kind"] == "pod":
            name = entry["metadata"]["name"]
            if entry["type"] == "DELETED":
                pods.pop(name, None)
                continue
            pod = pods.setdefault(name, {"metadata": {"name": name}, "spec": {}, "status": {}})
            if entry["terminating"] and "deletionTimestamp" not in pod["metadata"]:
                if not recorded[-1].chosen:
                    recorded[-1].pods = [_copy(item) for item in pods.values() if is_active(item)]
                recorded[-1].chosen.add(name)
            _note(pod, entry, start)
    return [shrink for shrink in recorded if shrink.chosen]


def _copy(pod: Object) -> Object:
    return {"metadata": dict(pod["metadata"]), "spec": dict(pod["spec"]), "status": dict(pod["status"])}


def _note(pod: Object, entry: dict[str, Any], start: datetime) -> None:
    moment = format_time(start + timedelta(seconds=entry["t"]))
    meta = pod["metadata"]
    meta.setdefault("creationTimestamp", entry["metadata"].get("creationTimestamp", moment))
    if entry["terminating"]:
        meta["deletionTimestamp"] = moment
    pod["spec"]["nodeName"] = entry["node"]
    before = next(iter(pod["status"].get("conditions") or ()), {"status": None, "lastTransitionTime": moment})
    since = before["lastTransitionTime"] if before["status"] == entry["ready"] else moment
    ready = {"type": "Ready", "status": entry["ready"] or "False", "lastTransitionTime": since}
    pod["status"] = {"phase": entry["phase"], "conditions": [ready]}


@pytest.mark.parametrize("name", SCENARIOS)
def test_scale_down_deletes_pods_like_the_recording(name: str) -> None:
    steps = shrinks(recording(f"scale-down-order-{name}"))
    assert len(steps) >= 4
    for step in steps:
        # Ties go by uid, or by nothing at all; neither is recorded, so the chosen come first in both.
        step.pods.sort(key=lambda pod: pod["metadata"]["name"] not in step.chosen)
        for pod in step.pods:
            pod["metadata"]["uid"] = ("0" if pod["metadata"]["name"] in step.chosen else "1") + pod["metadata"]["name"]
        order = [pod["metadata"]["name"] for pod in deletion_order(step.pods, step.pods, step.now)]
        assert set(order[: len(step.chosen)]) == step.chosen
