"""Our scheduler's decision and words against what a real Kubernetes scheduler said in 66 recorded situations, but for seven about rules
of pods about each other, which it does not follow.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from grid.sandbox.controllers.scheduling import schedule

RULES_ABOUT_OTHERS = ("anti-affinity", "pod-affinity", "topology-spread")
RECORDED = Path("tests/recordings/scheduling/cases.jsonl").read_text(encoding="utf-8").splitlines()
CASES = [case for case in map(json.loads, RECORDED) if not any(rule in case["case"] for rule in RULES_ABOUT_OTHERS)]


def test_every_other_situation_is_compared() -> None:
    assert (len(RECORDED), len(CASES)) == (66, 59)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_decision_and_message_match_the_real_scheduler(case: dict[str, Any]) -> None:
    claims = [
        item | {"metadata": item["metadata"] | {"namespace": case["pod"]["metadata"]["namespace"]}}
        for item in case["other_objects"]
        if item.get("kind") == "PersistentVolumeClaim"
    ]
    others: dict[str, list[dict[str, Any]]] = {}
    for item in case["other_objects"]:
        others.setdefault(item["kind"], []).append(item)
    # The pod was recorded after the decision: put it back to what the scheduler saw.
    pod = case["pod"] | {"status": {"phase": "Pending"}, "spec": case["pod"]["spec"] | {"nodeName": None}}
    decision = schedule(pod, case["nodes"], case["other_pods"], claims, others)
    assert decision.message == (case["message"] or "")
    assert bool(decision.node) == bool(case["nodeName"])
    # Which of several equal nodes is taken is left to chance.
    assert bool(decision.nominated) == bool(case["nominatedNodeName"])
    assert {victim["spec"]["nodeName"] for victim in decision.victims} == {decision.nominated or ""} - {""}
