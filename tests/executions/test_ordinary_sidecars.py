"""Executions with files in Git on a server without native sidecars, whose executor is a container like the program."""

import json
from typing import Any

import pytest

from grid.core.labels import PROGRAM_ENDED
from grid.executions.stopping import request_stop
from grid.kube.objects import RawObject
from grid.kube.resources import PODS
from grid.models import Execution, LifecycleEntry, RunFiles
from tests.controller.world import World, fresh, in_world
from tests.files.test_files_in_git import OTHER, SAVED, prepared, runs
from tests.support.builders import condition, container_status, stamp
from tests.support.shop import OWNER, Shop

WAITS = {"waiting": {"reason": "PodInitializing"}}


def ended(code: int, report: dict[str, Any] | None = None) -> RawObject:
    message = json.dumps(report) if report else ""
    return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}}


class OldKubelet:
    """Writes the pod's status as the kubelet of such a server would: by the containers' states, of `run` and `executor` by name."""

    def __init__(self, world: World, execution: Execution) -> None:
        self._world = world
        self._execution = execution
        world.cluster.server.registry.native_sidecars = False

    @property
    def pod(self) -> RawObject:
        return self._world.pod_of(self._execution)

    @property
    def is_told(self) -> bool:
        return bool(self.pod["metadata"]["annotations"].get(PROGRAM_ENDED) == "true")

    def reports(self, phase: str, *, prepare: RawObject, executor: RawObject = WAITS, run: RawObject = WAITS) -> None:
        pod = self.pod
        is_ready = "running" in run and "running" in executor
        pod["status"] = {
            "phase": phase,
            "conditions": [condition("PodScheduled", "True"), condition("Ready", str(is_ready))],
            "initContainerStatuses": [container_status("executor-prepare", state=prepare)],
            "containerStatuses": [
                container_status(name, ready="running" in state, state=state)
                for name, state in (("executor", executor), ("run", run))
            ],
        }
        self._world.cluster.put(PODS, pod)

    @property
    def running(self) -> RawObject:
        return {"running": {"startedAt": stamp(self._world.now)}}

    def fetches(self) -> None:
        self.reports("Pending", prepare=self.running)

    def runs(self) -> None:
        self.reports("Running", prepare=ended(0), executor=self.running, run=self.running)

    def program_ends(self, code: int = 0) -> None:
        self.reports("Running", prepare=ended(0), executor=self.running, run=ended(code))

    def executor_ends(self, code: int, report: dict[str, Any] | None = None, *, run: int = 0) -> None:
        phase = "Failed" if code or run else "Succeeded"
        self.reports(phase, prepare=ended(0), executor=ended(code, report), run=ended(run))


@in_world
async def test_executor_is_told_only_when_the_program_has_ended(shop: Shop) -> None:
    world, controller, execution, kubelet = await runs(shop, OldKubelet)
    assert not kubelet.is_told
    kubelet.program_ends()
    await world.step(controller)
    assert (fresh(execution).state, kubelet.is_told) == ("finishing", True)
    assert "deletionTimestamp" not in kubelet.pod["metadata"]
    kubelet.executor_ends(0, SAVED)
    await world.step(controller)
    assert world.pods() == []
    assert fresh(execution).state == "succeeded"
    assert RunFiles.objects.get().ended == OTHER


@in_world
async def test_another_controller_tells_what_a_killed_one_did_not(shop: Shop) -> None:
    world, _, _, kubelet = await runs(shop, OldKubelet)
    kubelet.program_ends()
    for _ in range(2):
        await world.step(world.controller())
    assert kubelet.is_told


@pytest.mark.parametrize(
    ("run", "executor", "state", "reason"),
    [(7, 0, "failed", "FilesSaved"), (0, 137, "succeeded", "FilesNotPushed"), (7, 137, "failed", "FilesNotPushed")],
)
@in_world
async def test_exit_code_of_program_alone_decides_the_end(
    shop: Shop, run: int, executor: int, state: str, reason: str
) -> None:
    world, controller, execution, kubelet = await runs(shop, OldKubelet)
    kubelet.program_ends(run)
    await world.step(controller)
    kubelet.executor_ends(executor, None if executor else SAVED, run=run)
    for _ in range(2):
        await world.step(controller)
        world.behave()
    await world.step(controller)
    assert (fresh(execution).state, execution.exit_code) == (state, run)
    assert LifecycleEntry.objects.filter(execution=execution, reason=reason).exists()


@in_world
async def test_executor_that_cannot_start_yet_is_waited_for(shop: Shop) -> None:
    world, controller, execution, kubelet = await runs(shop, OldKubelet)
    late: RawObject = {"waiting": {"reason": "ImagePullBackOff"}}
    kubelet.reports("Running", prepare=ended(0), executor=late, run=ended(0))
    for _ in range(3):
        await world.step(controller)
    assert fresh(execution).state == "finishing"
    assert kubelet.pod["metadata"].get("deletionTimestamp") is None
    kubelet.executor_ends(0, SAVED)
    for _ in range(3):
        await world.step(controller)
    assert RunFiles.objects.get().ended == OTHER


@in_world
async def test_a_run_goes_on_when_its_executor_was_killed(shop: Shop) -> None:
    world, controller, execution, kubelet = await runs(shop, OldKubelet)
    kubelet.reports("Running", prepare=ended(0), executor=ended(137), run=kubelet.running)
    await world.step(controller)
    assert fresh(execution).state == "running"
    assert not RunFiles.objects.exists()


@in_world
async def test_crashing_workspace_restarts_without_telling_its_executor(shop: Shop) -> None:
    world, controller, execution, kubelet = await runs(shop, OldKubelet, "workspace")
    kubelet.program_ends(1)
    await world.step(controller)
    assert (fresh(execution).state, kubelet.is_told) == ("running", False)


@in_world
async def test_stop_ends_both_at_once_and_report_is_kept(shop: Shop) -> None:
    world, controller, execution, kubelet = await runs(shop, OldKubelet, "workspace")
    request_stop(execution, by="alice", now=world.now)
    await world.step(controller)
    assert kubelet.pod["metadata"]["deletionGracePeriodSeconds"] == 930
    kubelet.program_ends()
    await world.step(controller)
    assert not kubelet.is_told  # a kubelet writes no files of a pod that is ending
    kubelet.executor_ends(0, SAVED)
    await world.step(controller)
    world.behave()
    await world.step(controller)
    assert fresh(execution).state == "stopped"
    assert RunFiles.objects.get().ended == OTHER


@in_world
async def test_job_with_unusable_files_ends_with_a_sentence(shop: Shop) -> None:
    world, controller, execution, kubelet = await prepared(shop, OldKubelet)
    problem = "It cannot be used: no answer"
    kubelet.reports("Failed", prepare=ended(4, {"code": 4, "problem": problem}))
    await world.step(controller)
    assert (fresh(execution).state, execution.reason) == ("error", "files_unusable")
    assert problem in execution.words(OWNER)
    assert "Ask an operator to look at the repositories' volume." in execution.words(OWNER)
