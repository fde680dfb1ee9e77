"""Jobs and CronJobs: defaults, the generated selector, refusals in Kubernetes' words, columns, and deletion."""

import copy
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from grid.sandbox.apiserver.batch import generate_selector
from grid.sandbox.apiserver.defaults import apply_defaults
from grid.sandbox.apiserver.deletion import DeleteOptions, Marked, Removed, decide_deletion
from grid.sandbox.apiserver.kinds import stored_kinds
from grid.sandbox.apiserver.status import Failure
from grid.sandbox.apiserver.store import Record
from grid.sandbox.apiserver.tables import table
from grid.sandbox.apiserver.validation import check_new, check_update

JOBS, CRON_JOBS = stored_kinds()["jobs.batch"], stored_kinds()["cronjobs.batch"]
_UID = "5b1f4a3c-0000-4000-8000-000000000001"
_NOW = datetime(2026, 11, 24, 4, 0, tzinfo=UTC)
_POD = {"restartPolicy": "Never", "containers": [{"name": "run", "image": "registry.example/app:1"}]}


def job(name: str = "task", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": _UID, "creationTimestamp": "2026-11-24T03:58:00Z"}
    made = {"metadata": metadata, "spec": {"template": {"spec": copy.deepcopy(_POD)}, **spec}}
    apply_defaults(JOBS, made)
    generate_selector(made)
    return made


def cron_job(name: str = "tick", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": _UID, "creationTimestamp": "2026-11-24T03:58:00Z"}
    template = {"spec": {"template": {"spec": copy.deepcopy(_POD)}}}
    made = {"metadata": metadata, "spec": {"schedule": "* * * * *", "jobTemplate": template, **spec}}
    apply_defaults(CRON_JOBS, made)
    return made


def problems(kind: Any, obj: dict[str, Any]) -> list[tuple[str, str]]:
    try:
        check_new(kind, obj)
    except Failure as failure:
        return [(cause["field"], cause["message"]) for cause in (failure.details or {})["causes"]]
    return []


def test_a_new_job_gets_the_labels_and_the_selector_that_make_its_pods_its_own() -> None:
    made = job()
    labels = {
        "batch.kubernetes.io/controller-uid": _UID,
        "batch.kubernetes.io/job-name": "task",
        "controller-uid": _UID,
        "job-name": "task",
    }
    assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"] == labels
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": _UID}}
    assert made["spec"]["completions"] == made["spec"]["parallelism"] == 1
    assert problems(JOBS, made) == []


def test_a_work_queue_has_no_completions_and_a_failure_policy_replaces_only_failed_pods() -> None:
    assert "completions" not in job(parallelism=3)["spec"]
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    spec = job(podFailurePolicy={"rules": rules})["spec"]
    assert spec["podReplacementPolicy"] == "Failed"
    assert spec["podFailurePolicy"]["rules"][0]["onPodConditions"][0]["status"] == "True"


def test_a_foreign_label_in_the_place_of_a_generated_one_is_refused() -> None:
    template = {"metadata": {"labels": {"controller-uid": "mine"}}, "spec": copy.deepcopy(_POD)}
    found = problems(JOBS, job(template=template))
    given = {"controller-uid": "mine", "batch.kubernetes.io/controller-uid": _UID}
    shown = msgspec.json.encode({**given, "job-name": "task", "batch.kubernetes.io/job-name": "task"}).decode()
    message = f"Invalid value: {shown}: must be '{_UID}'"
    assert ("spec.template.metadata.labels[controller-uid]", message) in found


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"backoffLimit": -1}, ("spec.backoffLimit", "Invalid value: -1: must be greater than or equal to 0")),
        (
            {"completionMode": "Indexed", "parallelism": 1},
            ("spec.completions", "Required value: when completion mode is Indexed"),
        ),
        (
            {"completionMode": "Some"},
            ("spec.completionMode", 'Unsupported value: "Some": supported values: "NonIndexed", "Indexed"'),
        ),
        (
            {"podReplacementPolicy": "Never"},
            (
                "spec.podReplacementPolicy",
                'Unsupported value: "Never": supported values: "Failed", "TerminatingOrFailed"',
            ),
        ),
        (
            {"backoffLimitPerIndex": 1, "completionMode": "Indexed", "completions": 2},
            ("spec.backoffLimitPerIndex", "Forbidden: is not supported by the embedded cluster"),
        ),
    ],
)
def test_a_job_that_cannot_be_is_refused(spec: dict[str, Any], problem: tuple[str, str]) -> None:
    assert problems(JOBS, job(**spec)) == [problem]


def test_pods_of_a_job_end() -> None:
    made = job()
    made["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    required = 'Required value: valid values: "OnFailure", "Never"'
    assert problems(JOBS, made) == [("spec.template.spec.restartPolicy", required)]


def test_the_longest_pod_name_of_an_indexed_job_must_be_a_label() -> None:
    found = problems(JOBS, job("a" * 61, completionMode="Indexed", completions=11))
    assert found[-1][1].endswith(f": will not able to create pod with invalid DNS label: {'a' * 61}-10")
    assert problems(JOBS, job("a" * 61, completionMode="Indexed", completions=10)) == []


def changed(change: dict[str, Any], **spec: Any) -> list[str]:
    old = job(**spec)
    new = copy.deepcopy(old)
    new["spec"].update(change)
    try:
        check_update(JOBS, new, old, "")
    except Failure as failure:
        return [cause["field"] for cause in (failure.details or {})["causes"]]
    return []


def test_what_a_job_does_is_immutable_and_how_much_at_once_is_not() -> None:
    assert changed({"parallelism": 5, "suspend": True, "backoffLimit": 2}) == []
    assert changed({"completions": 5}) == ["spec.completions"]
    assert changed({"selector": {"matchLabels": {"a": "b"}}}) == ["spec.selector"]
    other = {"metadata": {}, "spec": {**_POD, "nodeSelector": {"disk": "ssd"}}}
    assert changed({"template": other}) == ["spec.template"]
    assert changed({"completionMode": "Indexed"}) == ["spec.completionMode"]


def test_an_indexed_job_may_grow_together_with_its_parallelism() -> None:
    indexed = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
    assert changed({"completions": 4, "parallelism": 4}, **indexed) == []
    assert changed({"completions": 4}, **indexed) == ["spec.completions"]


def test_where_the_pods_of_a_waiting_job_run_may_change() -> None:
    template = job(suspend=True)["spec"]["template"]
    there = {**template, "spec": {**template["spec"], "nodeSelector": {"disk": "ssd"}}}
    assert changed({"template": there}, suspend=True) == []
    assert changed({"template": there}) == ["spec.template"]
    assert changed({"template": {**template, "spec": {**template["spec"], "hostname": "a"}}}, suspend=True) == [
        "spec.template"
    ]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"schedule": ""}, ("spec.schedule", "Required value")),
        (
            {"schedule": "* * * *"},
            (
                "spec.schedule",
                'Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]',
            ),
        ),
        (
            {"schedule": "TZ=UTC * * * * *"},
            (
                "spec.schedule",
                'Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead',
            ),
        ),
        (
            {"timeZone": "Mars/Olympus"},
            ("spec.timeZone", 'Invalid value: "Mars/Olympus": unknown time zone Mars/Olympus'),
        ),
        (
            {"concurrencyPolicy": "Often"},
            ("spec.concurrencyPolicy", 'Unsupported value: "Often": supported values: "Allow", "Forbid", "Replace"'),
        ),
        (
            {"failedJobsHistoryLimit": -1},
            ("spec.failedJobsHistoryLimit", "Invalid value: -1: must be greater than or equal to 0"),
        ),
    ],
)
def test_a_cron_job_that_cannot_be_is_refused(spec: dict[str, Any], problem: tuple[str, str]) -> None:
    assert problems(CRON_JOBS, cron_job(**spec)) == [problem]
    assert problems(CRON_JOBS, cron_job()) == []


def test_a_cron_jobs_name_leaves_room_for_the_time() -> None:
    assert problems(CRON_JOBS, cron_job("a" * 52)) == []
    found = problems(CRON_JOBS, cron_job("a" * 53))
    assert found == [("metadata.name", f'Invalid value: "{"a" * 53}": must be no more than 52 characters')]


def cells(kind: Any, obj: dict[str, Any]) -> list[Any]:
    row = table(kind, [obj], include="None", now=_NOW)["rows"][0]
    return list(row["cells"])


def test_the_columns_are_those_of_kubectl() -> None:
    made = job(completions=3, parallelism=2)
    made["status"] = {"startTime": "2026-11-24T03:59:00Z", "succeeded": 1}
    assert cells(JOBS, made)[:5] == ["task", "Running", "1/3", "60s", "2m"]
    made["status"]["conditions"] = [{"type": "Complete", "status": "True"}]
    made["status"]["completionTime"] = "2026-11-24T03:59:30Z"
    assert cells(JOBS, made)[1:4] == ["Complete", "1/3", "30s"]
    assert cells(JOBS, job(parallelism=2))[1:4] == ["Running", "0/1 of 2", ""]
    ticking = cron_job(timeZone="Europe/Berlin")
    assert cells(CRON_JOBS, ticking)[:7] == ["tick", "* * * * *", "Europe/Berlin", "False", 0, "<none>", "2m"]


@pytest.mark.parametrize(
    ("policy", "finalizers", "outcome"),
    [("", ["orphan"], Marked), ("Background", None, Removed), ("Foreground", ["foregroundDeletion"], Marked)],
)
def test_a_job_that_is_deleted_without_a_policy_leaves_its_pods(
    policy: str, finalizers: list[str] | None, outcome: type
) -> None:
    record = Record("default/task", job(), msgspec.json.encode(job()), 1)
    decided = decide_deletion(JOBS, record, DeleteOptions(propagation=policy), _NOW)
    assert isinstance(decided, outcome)
    assert decided is not None and decided.obj["metadata"].get("finalizers") == finalizers
