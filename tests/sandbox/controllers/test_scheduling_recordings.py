"""Our scheduler's decision and words against what a real Kubernetes scheduler said in 66 recorded situations."""

import json
from pathlib import Path
from typing import Any

import pytest

from grid.sandbox.controllers.scheduling import schedule

CASES = [
    json.loads(line)
    for line in Path("tests/recordings/scheduling/cases.jsonl").read_text(encoding="utf-8").splitlines()
]

_AFFINITY = "affinity between pods is not implemented: nothing in Compute Grid asks for it"
_SPREAD = "topology spread constraints are not implemented: nothing in Compute Grid asks for them"
_VOLUMES = "the embedded cluster binds every claim at once and keeps all volumes on one machine"
UNSUPPORTED = {
    "anti-affinity-self": _AFFINITY,
    "anti-affinity-of-existing-pods": _AFFINITY,
    "pod-affinity-no-match": _AFFINITY,
    "anti-affinity-zone-and-cpu": _AFFINITY,
    "preemption-blocked-by-anti-affinity-of-equal": _AFFINITY,
    "topology-spread": _SPREAD,
    "topology-spread-missing-label": _SPREAD,
    "pvc-wffc-no-volume": _VOLUMES,
    "pvc-wffc-volume-too-small-or-elsewhere": _VOLUMES,
    "pv-node-affinity-conflict": _VOLUMES,
    "pv-node-affinity-conflict-and-cpu": _VOLUMES,
    "preemption-succeeds": "no pod is preempted: the embedded cluster has no PriorityClass",
    "resource-claim-missing": "dynamic resource allocation is not implemented",
}


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["case"] not in UNSUPPORTED], ids=lambda case: case["case"]
)
def test_the_decision_and_its_words_are_those_of_the_real_scheduler(case: dict[str, Any]) -> None:
    claims = [
        item | {"metadata": item["metadata"] | {"namespace": case["pod"]["metadata"]["namespace"]}}
        for item in case["other_objects"]
        if item.get("kind") == "PersistentVolumeClaim"
    ]
    # The pod was recorded after the decision: put it back to what the scheduler saw.
    pod = case["pod"] | {"status": {"phase": "Pending"}, "spec": case["pod"]["spec"] | {"nodeName": None}}
    decision = schedule(pod, case["nodes"], case["other_pods"], claims)
    assert decision.message == (case["message"] or "")
    assert bool(decision.node) == bool(case["nodeName"])


def test_every_unsupported_case_exists() -> None:
    assert set(UNSUPPORTED) <= {case["case"] for case in CASES}
