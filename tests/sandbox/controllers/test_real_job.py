"""Jobs whose pods are processes of the embedded cluster: failing, counting their indexes, and ended by a deadline."""

from pathlib import Path
from typing import Any

from grid.sandbox.client import ENDPOINT_SLICES, JOBS, PODS, SERVICES, Client, Object, condition_of
from grid.sandbox.controllers.jobpods import TRACKING
from tests.sandbox.serviceproxy.test_with_cluster import machine
from tests.support.waiting import eventually


def a_job(name: str, script: str, **spec: Any) -> Object:
    container = {"name": "run", "image": "compute-grid/test:1", "command": ["sh", "-c", script]}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": pod}, **spec},
    }


async def ended(client: Client, name: str, kind: str) -> Object:
    path = JOBS.path("default", name)
    return await eventually(lambda: client.get(path), holds=lambda job: condition_of(job, kind))


async def pods_of(client: Client, name: str) -> list[Object]:
    return await client.list(PODS.path("default"), label_selector=f"batch.kubernetes.io/job-name={name}")


async def test_jobs_of_processes_fail_succeed_and_are_ended(tmp_path: Path) -> None:
    async with machine(tmp_path) as client:
        await client.create(JOBS.path("default"), a_job("fails", "exit 3", backoffLimit=0))
        script = "printf $JOB_COMPLETION_INDEX > /dev/termination-log"
        indexed = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
        await client.create(JOBS.path("default"), a_job("counts", script, **indexed))
        await client.create(JOBS.path("default"), a_job("endless", "sleep 600", activeDeadlineSeconds=2))
        await client.create(JOBS.path("default"), a_job("unwanted", "sleep 600"))

        failed = await ended(client, "fails", "Failed")
        assert (condition_of(failed, "Failed") or {})["reason"] == "BackoffLimitExceeded"
        [pod] = await pods_of(client, "fails")
        assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3

        counts = await ended(client, "counts", "Complete")
        assert (counts["status"]["completedIndexes"], counts["status"]["succeeded"]) == ("0,1", 2)
        ends = [pod["status"]["containerStatuses"][0]["state"]["terminated"] for pod in await pods_of(client, "counts")]
        assert sorted(end["message"] for end in ends) == ["0", "1"]

        endless = await ended(client, "endless", "Failed")
        assert (condition_of(endless, "Failed") or {})["reason"] == "DeadlineExceeded"
        assert endless["status"]["failed"] == 1
        assert await pods_of(client, "endless") == []

        [pod] = await eventually(lambda: pods_of(client, "unwanted"), holds=lambda pods: pods)
        assert pod["metadata"]["finalizers"] == [TRACKING]
        await client.delete(JOBS.path("default", "unwanted"), propagation="Background")
        await eventually(lambda: pods_of(client, "unwanted"), holds=lambda pods: not pods)


async def test_a_service_of_real_pods_has_their_addresses(tmp_path: Path) -> None:
    async with machine(tmp_path) as client:
        service = {"metadata": {"name": "web"}, "spec": {"selector": {"job-name": "web"}, "ports": [{"port": 80}]}}
        await client.create(SERVICES.path("default"), {"apiVersion": "v1", "kind": "Service", **service})
        await client.create(JOBS.path("default"), a_job("web", "sleep 600"))
        path = ENDPOINT_SLICES.path("default")
        [found] = await eventually(lambda: client.list(path), holds=lambda items: items and items[0].get("endpoints"))
        await eventually(lambda: client.list(path), holds=lambda items: items[0]["endpoints"][0]["conditions"]["ready"])
        [pod] = await pods_of(client, "web")
        assert found["endpoints"][0]["addresses"] == [pod["status"]["podIP"]]
