"""Jobs, CronJobs and EndpointSlices."""

import re
from collections.abc import Callable

import pytest

from tests.contract.client import Object
from tests.contract.manifests import metadata
from tests.contract.space import Space
from tests.contract.versions import Version, came_with

_TRACKING_SINCE = (1, 26)
_CONTAINER_SPEC = {"name": "run", "image": "registry.example/app:1"}


def a_job(name: str, **spec: object) -> Object:
    pod = {"restartPolicy": "Never", "schedulerName": "nobody", "containers": [_CONTAINER_SPEC]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(name),
        "spec": {"template": {"spec": pod}, **spec},
    }


def a_cron_job(name: str, version: str) -> Object:
    spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": a_job(name)["spec"]}}
    return {"apiVersion": f"batch/{version}", "kind": "CronJob", "metadata": metadata(name), "spec": spec}


@pytest.fixture
def dated(space: Space, version: Version) -> Space:
    """CronJobs and EndpointSlices: Kubernetes 1.20 has both, as a beta."""
    return Space(space.client, space.namespace, beta="v1beta1" if version < (1, 21) else "")


def finished_pod(phase: str) -> Object:
    code = 0 if phase == "Succeeded" else 3
    state = {"terminated": {"exitCode": code, "finishedAt": "2026-11-24T04:00:00Z"}}
    return {"status": {"phase": phase, "containerStatuses": [{**_CONTAINER, "state": state}]}}


_CONTAINER = {"name": "run", "image": "registry.example/app:1", "imageID": "", "ready": False, "restartCount": 0}


async def pods_of(space: Space, job: str, count: int) -> list[Object]:
    return await space.until_items(
        "pods", lambda items: len(items) == count, f"{count} pods of {job}", labelSelector=f"job-name={job}"
    )


async def remove(space: Space, name: str) -> None:
    await space.delete("jobs", name, options={"propagationPolicy": "Background"})


async def test_a_job_gets_defaults_a_selector_and_labels_of_its_own(space: Space, name: str) -> None:
    made = (await space.create("jobs", a_job(name, suspend=True, parallelism=0))).ok(201)
    spec, uid = made["spec"], made["metadata"]["uid"]
    assert (spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (6, "Never")
    labels = spec["template"]["metadata"]["labels"]
    assert (labels["controller-uid"], labels["job-name"]) == (uid, name)
    assert uid in spec["selector"]["matchLabels"].values()
    assert made["metadata"]["labels"] == labels
    await remove(space, name)


async def test_a_job_whose_pods_would_never_end_is_refused(space: Space, name: str) -> None:
    job = a_job(name)
    job["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    refusal = (await space.create("jobs", job)).refused(422, "Invalid")
    assert [cause["field"] for cause in refusal["details"]["causes"]] == ["spec.template.spec.restartPolicy"]
    refusal = (await space.create("jobs", a_job(name, backoffLimit=-1))).refused(422, "Invalid")
    assert "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0" in refusal["message"]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("spec.completions", {"completions": 9}),
        ("spec.template", {"template": {"spec": {"hostname": "other"}}}),
        ("spec.selector", {"selector": {"matchLabels": {"some": "thing"}}}),
    ],
)
async def test_what_a_job_does_cannot_be_changed(space: Space, name: str, field: str, change: Object) -> None:
    (await space.create("jobs", a_job(name, completions=2, parallelism=0))).ok(201)
    refusal = (await space.patch("jobs", name, {"spec": change})).refused(422, "Invalid")
    immutable = [cause["field"] for cause in refusal["details"]["causes"] if "field is immutable" in cause["message"]]
    assert immutable == [field]
    assert (await space.patch("jobs", name, {"spec": {"backoffLimit": 2}})).ok()["spec"]["backoffLimit"] == 2
    await remove(space, name)


async def test_a_job_counts_its_pods_and_is_complete(space: Space, name: str) -> None:
    (await space.create("jobs", a_job(name, completions=2, parallelism=2))).ok(201)
    for pod in await pods_of(space, name, 2):
        assert pod["metadata"]["name"].startswith(f"{name}-")
        assert pod["metadata"]["ownerReferences"][0]["controller"] is True
        (await space.patch("pods", pod["metadata"]["name"], finished_pod("Succeeded"), sub="status")).ok()
    done = await space.until("jobs", name, has("Complete"), "complete")
    assert done["status"]["succeeded"] == 2
    assert done["status"].get("active", 0) == 0
    assert done["status"]["completionTime"] >= done["status"]["startTime"]
    pods = await pods_of(space, name, 2)
    assert not any(pod["metadata"].get("finalizers") for pod in pods)
    await remove(space, name)
    await space.until_gone("jobs", name)


async def test_a_job_without_retries_fails_with_its_first_pod(space: Space, name: str) -> None:
    (await space.create("jobs", a_job(name, backoffLimit=0))).ok(201)
    [pod] = await pods_of(space, name, 1)
    (await space.patch("pods", pod["metadata"]["name"], finished_pod("Failed"), sub="status")).ok()
    failed = await space.until("jobs", name, has("Failed"), "failed")
    [condition] = [item for item in failed["status"]["conditions"] if item["type"] == "Failed"]
    assert (condition["reason"], condition["message"]) == (
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    )
    assert failed["status"]["failed"] == 1
    await remove(space, name)


def has(kind: str) -> Callable[[Object], bool]:
    def check(job: Object) -> bool:
        conditions = job.get("status", {}).get("conditions") or ()
        return any(item["type"] == kind and item["status"] == "True" for item in conditions)

    return check


async def test_a_job_that_is_deleted_without_a_policy_leaves_its_pods(space: Space, name: str) -> None:
    (await space.create("jobs", a_job(name))).ok(201)
    await pods_of(space, name, 1)
    (await space.delete("jobs", name)).ok()
    await space.until_gone("jobs", name)
    [pod] = await pods_of(space, name, 1)
    assert "ownerReferences" not in pod["metadata"]


async def test_pods_of_a_job_are_tracked_by_a_finalizer(space: Space, name: str, version: Version) -> None:
    came_with(version, _TRACKING_SINCE, "the finalizer batch.kubernetes.io/job-tracking")
    (await space.create("jobs", a_job(name))).ok(201)
    [pod] = await pods_of(space, name, 1)
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    await remove(space, name)


async def test_the_columns_of_jobs(space: Space, name: str, version: Version) -> None:
    (await space.create("jobs", a_job(name, parallelism=0, completions=3))).ok(201)
    table = (await space.get("jobs", name, accept="application/json;as=Table;v=v1;g=meta.k8s.io")).ok()
    columns = {
        each["name"]: cell for each, cell in zip(table["columnDefinitions"], table["rows"][0]["cells"], strict=True)
    }
    assert columns["Completions"] == "0/3"
    assert columns["Images"] == "registry.example/app:1"
    if version >= _TRACKING_SINCE:
        assert columns["Status"] == "Running"
    await remove(space, name)


async def test_a_cron_job_gets_defaults_and_refuses_what_is_no_schedule(dated: Space, name: str) -> None:
    made = (await dated.create("cronjobs", a_cron_job(name, dated.beta or "v1"))).ok(201)
    spec = made["spec"]
    assert (spec["concurrencyPolicy"], spec["suspend"]) == ("Allow", False)
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 1)
    refusal = (await dated.patch("cronjobs", name, {"spec": {"schedule": "* * *"}})).refused(422, "Invalid")
    assert [cause["field"] for cause in refusal["details"]["causes"]] == ["spec.schedule"]
    # Kubernetes 1.20 begins with a capital and shows the schedule without brackets.
    assert re.search(r"[Ee]xpected exactly 5 fields, found 3: \[?\* \* \*", refusal["message"])
    (await dated.delete("cronjobs", name)).ok()
    await dated.until_gone("cronjobs", name)


async def test_a_service_has_a_slice_that_goes_with_it(space: Space, dated: Space, name: str) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name),
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
    }
    (await space.create("services", service)).ok(201)
    selector = f"kubernetes.io/service-name={name}"
    [found] = await dated.until_items(
        "endpointslices", lambda items: len(items) == 1, "a slice", labelSelector=selector
    )
    assert found["addressType"] == "IPv4"
    assert not found.get("endpoints")
    assert found["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] == "endpointslice-controller.k8s.io"
    await space.until("endpoints", name, lambda item: not item.get("subsets"), "is there, and empty")
    (await space.delete("services", name)).ok()
    await dated.until_items("endpointslices", lambda items: not items, "gone", labelSelector=selector)
    await space.until_gone("endpoints", name)
