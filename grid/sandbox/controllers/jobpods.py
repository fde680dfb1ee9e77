"""The pods of a Job: which have failed, which index they work on, and what a new one looks like. All pure."""

import copy
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from grid.sandbox.client import Object, annotations_of, condition_of, is_terminating, name_of, namespace_of, parse_time

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"


def is_tracked(pod: Mapping[str, Any]) -> bool:
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def phase_of(pod: Mapping[str, Any]) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))


def has_succeeded(pod: Mapping[str, Any]) -> bool:
    return phase_of(pod) == "Succeeded"


def has_failed(pod: Mapping[str, Any], job: Mapping[str, Any]) -> bool:
    """Return True for a failed pod; one that is being deleted counts, unless only failed pods are replaced."""
    if phase_of(pod) == "Failed":
        return True
    if replaces_only_failed(job):
        return False
    return is_terminating(pod) and not has_succeeded(pod)


def replaces_only_failed(job: Mapping[str, Any]) -> bool:
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def is_indexed(job: Mapping[str, Any]) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: Mapping[str, Any], completions: int) -> int | None:
    """Return the index that a pod works on, or None when it has none of this Job."""
    text = annotations_of(pod).get(INDEX, "")
    return int(text) if text.isdecimal() and int(text) < completions else None


def parse_indexes(text: str, completions: int) -> set[int]:
    """Read `completedIndexes`, like "0,2-4"."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return {index for index in found if index < completions}


def format_indexes(indexes: Iterable[int]) -> str:
    """Write `completedIndexes`: ranges where three or more follow each other, pairs with a comma."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def restarts_of(pod: Mapping[str, Any]) -> int:
    """Return how often containers of a pod that has not ended were restarted."""
    if phase_of(pod) not in ("Running", "Pending"):
        return 0
    status = pod.get("status") or {}
    groups = (status.get("initContainerStatuses") or (), status.get("containerStatuses") or ())
    return sum(item.get("restartCount", 0) for group in groups for item in group)


def ended_at(pod: Mapping[str, Any]) -> datetime:
    """Return when a pod ended: its last container's end, or the next best thing that is known."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    ends = [(item.get("state") or {}).get("terminated") for item in statuses]
    times = [time for end in ends if end and (time := parse_time(end.get("finishedAt")))]
    if times and len(times) == len(ends):
        return max(times)
    ready = condition_of(pod, "Ready")
    unready = parse_time(ready.get("lastTransitionTime")) if ready and ready.get("status") == "False" else None
    metadata = pod["metadata"]
    found = unready or parse_time(metadata.get("deletionTimestamp")) or parse_time(metadata["creationTimestamp"])
    assert found is not None
    return found


def judge_failure(policy: Mapping[str, Any] | None, pod: Mapping[str, Any]) -> tuple[str, bool]:
    """Return why this failed pod fails the whole Job ("" if it does not), and whether the failure counts."""
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        what = _match(rule, pod)
        if not what or rule["action"] == "FailIndex":
            continue
        if rule["action"] == "FailJob":
            return f"{what} matching FailJob rule at index {number}", True
        return "", rule["action"] != "Ignore"
    return "", True


def _match(rule: Mapping[str, Any], pod: Mapping[str, Any]) -> str:
    status, name = pod.get("status") or {}, f"{namespace_of(pod)}/{name_of(pod)}"
    codes = rule.get("onExitCodes")
    if codes is not None:
        for item in [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]:
            code = ((item.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
            if code == 0 or codes.get("containerName") not in (None, item["name"]):
                continue
            if (code in (codes.get("values") or ())) is (codes["operator"] == "In"):
                return f"Container {item['name']} for pod {name} failed with exit code {code}"
        return ""
    for condition in status.get("conditions") or ():
        for pattern in rule.get("onPodConditions") or ():
            if condition["type"] == pattern["type"] and condition["status"] == pattern["status"]:
                return f"Pod {name} has condition {condition['type']}"
    return ""


def make_pod(job: Object, index: int | None) -> Object:
    """Return a new pod of the Job, without its owner."""
    template = copy.deepcopy(job["spec"]["template"])
    given, spec, name = template.get("metadata") or {}, template["spec"], name_of(job)
    metadata: Object = {key: given[key] for key in ("labels", "annotations") if given.get(key)}
    finalizers = given.get("finalizers") or []
    metadata["finalizers"] = finalizers if TRACKING in finalizers else [*finalizers, TRACKING]
    metadata["generateName"] = f"{name}-"
    if index is not None:
        metadata["generateName"] = f"{name}-{index}-"
        metadata.setdefault("labels", {})[INDEX] = str(index)
        metadata.setdefault("annotations", {})[INDEX] = str(index)
        spec["hostname"] = f"{name}-{index}"
        source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
        for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
            variables = container.setdefault("env", [])
            if all(item["name"] != _INDEX_VARIABLE for item in variables):
                variables.append({"name": _INDEX_VARIABLE, "valueFrom": source})
    metadata["namespace"] = namespace_of(job)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
