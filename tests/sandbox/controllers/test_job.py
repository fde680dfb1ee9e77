"""Rules of Jobs beyond the recordings: what a Job makes, deletes and counts, and how long it waits."""

import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from grid.sandbox.client import JOBS, PODS, Object, format_time, name_of
from grid.sandbox.controllers.job import JobController
from grid.sandbox.controllers.jobpods import TRACKING, format_indexes, judge_failure, make_pod, parse_indexes
from grid.sandbox.controllers.jobrules import Decision, Failures, JobView, counted, decide, started
from grid.sandbox.controllers.scheduler import Scheduler
from tests.sandbox.support import FakeKubelet, FastClock, add_node, api_server, make_node, running
from tests.support.waiting import eventually

_NOW = datetime(2026, 11, 24, 4, 0, tzinfo=UTC)


def a_job(**spec: Any) -> Object:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "run", "image": "registry.example/app:1"}]}}
    defaults = {"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "template": template}
    return {
        "metadata": {"name": "task", "namespace": "default", "uid": "j"},
        "spec": {**defaults, **spec},
        "status": {},
    }


def a_pod(name: str, phase: str = "Running", *, index: int | None = None, tracked: bool = True, **more: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": format_time(_NOW), **more}
    if tracked:
        metadata["finalizers"] = [TRACKING]
    if index is not None:
        metadata["annotations"] = {"batch.kubernetes.io/job-completion-index": str(index)}
    return {"metadata": metadata, "spec": {}, "status": {"phase": phase}}


def plan_for(job: Object, *pods: Object, **more: Any) -> Decision:
    return decide(JobView(job, pods, **more), _NOW, settled=True)


def test_a_job_makes_no_more_pods_than_completions_are_left() -> None:
    job = a_job(completions=5, parallelism=3)
    assert plan_for(job).create == 3
    job["status"] = {"succeeded": 3}
    assert plan_for(job, a_pod("a")).create == 1


def test_a_work_queue_is_full_until_one_pod_succeeds_and_complete_when_all_have_ended() -> None:
    job = a_job(parallelism=3)
    assert plan_for(job, a_pod("a")).create == 2
    some = plan_for(job, a_pod("a"), a_pod("b", "Succeeded"))
    assert (some.create, some.end) == (0, None)
    assert (plan_for(job, a_pod("a", "Succeeded"), a_pod("b", "Failed")).end or {})["type"] == "Complete"


def test_surplus_pods_are_deleted_and_do_not_count_as_failed() -> None:
    plan = plan_for(a_job(completions=5, parallelism=1), a_pod("a"), a_pod("b", "Pending"))
    assert ([name_of(pod) for pod in plan.delete], plan.release_first) == (["b"], True)


def test_a_missing_index_is_filled_and_a_double_or_foreign_one_deleted() -> None:
    job = a_job(completions=4, parallelism=4, completionMode="Indexed")
    job["status"] = {"completedIndexes": "1", "succeeded": 1}
    assert plan_for(job, a_pod("a", index=0)).indexes == [2, 3]
    surplus = plan_for(job, a_pod("a", index=0), a_pod("b", "Pending", index=0), a_pod("c", index=7)).delete
    assert {name_of(pod) for pod in surplus} == {"b", "c"}


def test_only_failed_pods_are_replaced_when_the_job_says_so() -> None:
    ending = a_pod("a", deletionTimestamp=format_time(_NOW))
    assert plan_for(a_job(completions=1), ending).again == 10.0  # it counts as a failure
    job = a_job(completions=1, podReplacementPolicy="Failed")
    assert (plan_for(job, ending).create, plan_for(job, ending).again) == (0, None)


@pytest.mark.parametrize(("count", "seconds"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (40, 600)])
def test_the_wait_after_a_failure_doubles_up_to_ten_minutes(count: int, seconds: float) -> None:
    assert Failures(count, _NOW).wait(_NOW) == seconds
    assert Failures(count, _NOW).wait(_NOW + timedelta(seconds=seconds)) == 0


def test_a_success_forgives_the_failures_before_it() -> None:
    def pod(phase: str, seconds: int) -> Object:
        made = a_pod("p", phase)
        state = {"terminated": {"exitCode": 0, "finishedAt": format_time(_NOW + timedelta(seconds=seconds))}}
        made["status"]["containerStatuses"] = [{"name": "run", "state": state}]
        return made

    before = Failures(3, _NOW)
    assert before.after([], [pod("Failed", 5)]).count == 4
    assert before.after([pod("Succeeded", 5)], [pod("Failed", 1)]) == Failures()
    assert before.after([pod("Succeeded", 5)], [pod("Failed", 1), pod("Failed", 9)]).count == 1


def test_restarts_of_containers_count_when_the_pod_restarts_them() -> None:
    job = a_job(completions=1, backoffLimit=2)
    job["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    pod = a_pod("a")
    pod["status"]["containerStatuses"] = [{"name": "run", "restartCount": 1}]
    assert plan_for(job, pod).end is None
    pod["status"]["containerStatuses"][0]["restartCount"] = 2
    assert (plan_for(job, pod).end or {})["reason"] == "BackoffLimitExceeded"


def test_while_the_mirror_is_behind_nothing_is_made_or_finished() -> None:
    job = a_job(completions=1, backoffLimit=0)
    assert decide(JobView(job, ()), _NOW, settled=False).create == 0
    plan = decide(JobView(job, [a_pod("a", "Failed"), a_pod("b")]), _NOW, settled=False)
    assert (plan.delete, plan.end) == ((), None)


def test_a_pod_is_counted_once_whatever_the_mirror_shows() -> None:
    job = a_job(completions=3, parallelism=1)
    job["status"] = {"succeeded": 1, "uncountedTerminatedPods": {"succeeded": ["b"]}}
    pods = (a_pod("a", "Succeeded"), a_pod("b", "Succeeded"), a_pod("c", "Succeeded", tracked=False))
    view = JobView(job, pods, released={"a"})  # counted, and its finalizer gone, which the mirror does not show yet
    plan = decide(view, _NOW, settled=True)
    assert plan.create == 1
    status, release = counted(view, plan.end, started(view, plan, _NOW, active=1, ready=0, terminating=0))
    assert status["uncountedTerminatedPods"] == {"succeeded": ["b"]}
    assert [name_of(pod) for pod in release] == ["b"]


@pytest.mark.parametrize(
    ("text", "indexes"), [("", set()), ("0,2", {0, 2}), ("0-2,5,7,8", {0, 1, 2, 5, 7, 8}), ("3-5", {3, 4, 5})]
)
def test_completed_indexes_are_ranges_from_three_on(text: str, indexes: set[int]) -> None:
    assert parse_indexes(text, 100) == indexes
    assert parse_indexes(format_indexes(indexes), 100) == indexes
    assert format_indexes({0, 1, 4, 5, 6}) == "0,1,4-6"


def test_a_failure_policy_ignores_counts_or_ends() -> None:
    pod = a_pod("a", "Failed")
    state = {"terminated": {"exitCode": 3}}
    pod["status"]["containerStatuses"] = [{"name": "run", "state": state}]
    pod["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]

    def rule(action: str, **what: Any) -> tuple[str, bool]:
        return judge_failure({"rules": [{"action": action, **what}]}, pod)

    disrupted = [{"type": "DisruptionTarget", "status": "True"}]
    assert rule("Ignore", onPodConditions=disrupted) == ("", False)
    assert rule("Count", onPodConditions=disrupted) == ("", True)
    message = "Pod default/a has condition DisruptionTarget matching FailJob rule at index 0"
    assert rule("FailJob", onPodConditions=disrupted) == (message, True)
    assert rule("Ignore", onExitCodes={"operator": "NotIn", "values": [3]}) == ("", True)
    assert rule("Ignore", onExitCodes={"operator": "In", "values": [3], "containerName": "other"}) == ("", True)
    assert rule("Ignore", onExitCodes={"operator": "In", "values": [3], "containerName": "run"}) == ("", False)


def test_a_pod_of_an_indexed_job_knows_its_index() -> None:
    job = a_job(completions=2, completionMode="Indexed")
    before = copy.deepcopy(job)
    pod = make_pod(job, 1)
    assert pod["metadata"]["generateName"] == "task-1-"
    assert pod["spec"]["hostname"] == "task-1"
    path = "metadata.labels['batch.kubernetes.io/job-completion-index']"
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}}
    assert pod["spec"]["containers"][0]["env"] == [variable]
    assert job == before


def submitted(**spec: Any) -> Object:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "run", "image": "registry.example/app:1"}]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "task"},
        "spec": {"template": template, **spec},
    }


async def test_pods_of_a_suspended_or_deleted_job_are_let_go(tmp_path: Path) -> None:
    clock = FastClock(speed=4)
    async with api_server(tmp_path, clock) as client:
        await add_node(client, make_node("node-0", now=clock.now()))
        kubelet = FakeKubelet(client, clock)
        async with running(JobController(client, clock=clock), Scheduler(client, clock=clock), kubelet):
            await client.create(JOBS.path("default"), submitted(parallelism=2, completions=2))
            await eventually(lambda: len(kubelet.pods) == 2, "two pods")
            path = JOBS.path("default", "task")
            await client.patch(path, {"spec": {"suspend": True}})
            await eventually(lambda: not kubelet.pods, "suspended, no pod is left")
            assert "failed" not in (await client.get(path))["status"]
            await client.patch(path, {"spec": {"suspend": False}})
            await eventually(lambda: len(kubelet.pods) == 2, "resumed, two pods")
            await client.delete(path)  # without a policy, its pods stay
            await eventually(
                lambda: [pod["metadata"].get("finalizers") for pod in kubelet.pods] == [None, None], "pods are let go"
            )
            assert len(await client.list(PODS.path("default"))) == 2
