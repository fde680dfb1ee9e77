"""Executions of a project whose files are in Git: their pod, and how their files are fetched and saved around the program."""

import json
from typing import Any, Protocol, TypeVar

import pytest

from grid.configuration import NAMESPACE, RESULTS_SIZE
from grid.controller.controller import Controller
from grid.core.errors import Rejected
from grid.diagnosis.run_report import FilesReport
from grid.executions.launchrequest import JobSettings
from grid.executions.manifests import build
from grid.executions.spec import FilesSpec, parse_spec
from grid.executions.stopping import request_stop
from grid.files.filesaving import record
from grid.jobs.jobsettings import read_record
from grid.kube.objects import RawObject
from grid.kube.resources import PODS
from grid.models import ConfigRecord, Execution, JobRun, LifecycleEntry, Notification, Project, RunFiles
from tests.controller.world import World, fresh, in_world, states_of
from tests.executions.test_manifests import spec
from tests.support.builders import condition, container_status, stamp
from tests.support.shop import NOW, OWNER, Shop

COMMIT, OTHER = "a" * 40, "b" * 40
FILES = FilesSpec(claim="repositories", repository="churn.git", image="executor:1", cores="50m", memory="64Mi")
SAVED = {"code": 0, "began": COMMIT, "ended": OTHER, "branch": "main"}


def files_of(execution: Execution) -> FilesSpec:
    files = parse_spec(execution).files
    assert files is not None
    return files


def stop(execution: Execution, **files: str) -> None:
    """It has ended, and left its files like this."""
    execution.refresh_from_db()
    RunFiles.objects.create(execution=execution, **files)
    Execution.objects.filter(pk=execution.pk).update(state="stopped", settled_at=NOW, ended_at=NOW)


def test_clusters_and_projects_with_a_volume_have_no_executor(shop: Shop) -> None:
    assert parse_spec(shop.launch()).files is None
    Project.objects.update(files=Project.Files.GIT)
    assert parse_spec(shop.launch_cluster()).files is None
    files = files_of(shop.launch())
    assert (files.repository, files.branch, files.largest_gibibytes) == ("churn.git", "main", 50)


@pytest.mark.parametrize(("asked", "branch", "commit"), [("", "main", ""), ("tidy", "tidy", ""), (COMMIT, "", COMMIT)])
def test_job_attempts_start_at_the_chosen_branch_or_commit(shop: Shop, asked: str, branch: str, commit: str) -> None:
    Project.objects.update(files=Project.Files.GIT)
    execution = shop.launch(kind="job", environment=shop.job, job=JobSettings(files_at=asked, retries=1))
    files = files_of(execution)
    assert (files.branch, files.commit) == (branch, commit)
    assert execution.run is not None
    assert read_record(execution.run.settings.record).job.files_at == asked


def test_invalid_or_meaningless_branch_is_refused(shop: Shop) -> None:
    with pytest.raises(Rejected, match="not in Git"):
        shop.launch(kind="job", environment=shop.job, job=JobSettings(files_at="main"))
    Project.objects.update(files=Project.Files.GIT)
    with pytest.raises(Rejected, match="Name a branch"):
        shop.launch(kind="job", environment=shop.job, job=JobSettings(files_at="--all"))


def test_resumed_workspace_starts_at_the_branch_with_its_files(shop: Shop) -> None:
    Project.objects.update(files=Project.Files.GIT)
    first = shop.launch()
    stop(first, began=COMMIT, ended=OTHER, branch=first.object_name)
    second = shop.launch(workspace=first.workspace, after=60)
    assert files_of(second).branch == first.object_name
    stop(second, began=OTHER, kept="repository", problem="It could not be pushed")
    assert files_of(shop.launch(workspace=first.workspace, after=120)).branch == first.object_name


def test_job_keeps_bounded_results_and_workspace_none(shop: Shop) -> None:
    Project.objects.update(files=Project.Files.GIT)
    ConfigRecord.objects.create(namespace=NAMESPACE, key=RESULTS_SIZE.key, value="5")
    files = files_of(shop.launch(kind="job", environment=shop.job, job=JobSettings(folder="training")))
    assert (files.results, files.results_bytes) == ("training/results", 5 * 2**20)
    made = {manifest.name: manifest.body for manifest in build(spec(files=files), namespace="grid", token="t")}
    (executor,) = made["workspace-abc"]["spec"]["initContainers"]
    assert {"--results=training/results", f"--results-bytes={5 * 2**20}"} <= set(executor["args"])
    assert files_of(shop.launch()).results == ""


# --- Around the program ---


class NewKubelet:
    """Writes the pod's status as the node's kubelet would."""

    def __init__(self, world: World, execution: Execution) -> None:
        self._world = world
        self._execution = execution

    @property
    def pod(self) -> RawObject:
        return self._world.pod_of(self._execution)

    def reports(self, executor: RawObject, run: RawObject, phase: str, *, started: bool, ready: bool = False) -> None:
        pod = self.pod
        pod["status"] = {
            "phase": phase,
            "conditions": [condition("PodScheduled", "True"), condition("Ready", "True" if ready else "False")],
            "initContainerStatuses": [{**container_status("executor", ready=started), "started": started, **executor}],
            "containerStatuses": [container_status(ready=ready, state=run)],
        }
        self._world.cluster.put(PODS, pod)

    def fetches(self) -> None:
        waits = {"waiting": {"reason": "PodInitializing"}}
        self.reports({"state": _running(self._world)}, waits, "Pending", started=False)

    def runs(self) -> None:
        running = _running(self._world)
        self.reports({"state": running}, running, "Running", started=True, ready=True)

    def ends(self, code: int = 0) -> None:
        """The program has ended, and the executor saves."""
        self.reports({"state": _running(self._world)}, _ended(code), "Running", started=True)

    def saved(self, report: dict[str, Any], code: int = 0) -> None:
        executor = {"state": _ended(0, json.dumps(report))}
        self.reports(executor, _ended(code), "Failed" if code else "Succeeded", started=False)

    def cannot_fetch(self, report: dict[str, Any]) -> None:
        executor = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 1}
        executor["lastState"] = _ended(report["code"], json.dumps(report))
        self.reports(executor, {"waiting": {"reason": "PodInitializing"}}, "Pending", started=False)


def _running(world: World) -> RawObject:
    return {"running": {"startedAt": stamp(world.now)}}


def _ended(code: int, message: str = "") -> RawObject:
    return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "message": message}}


class Kubelet(Protocol):
    """What reports the states of an execution's containers."""

    def __init__(self, world: World, execution: Execution) -> None: ...
    def fetches(self) -> None: ...
    def runs(self) -> None: ...


K = TypeVar("K", bound=Kubelet)


async def prepared(shop: Shop, of: type[K], kind: str = "job") -> tuple[World, Controller, Execution, K]:
    """A world with an execution whose files are being fetched."""
    Project.objects.update(files=Project.Files.GIT)
    environment = shop.job if kind == "job" else shop.workspace
    world, execution = World(), shop.launch(kind=kind, environment=environment)
    controller, kubelet = world.controller(), of(world, execution)
    await world.step(controller)
    world.schedule(world.pod_of(execution))
    await world.step(controller)
    kubelet.fetches()
    await world.step(controller)
    assert fresh(execution).state == "preparing"
    return world, controller, execution, kubelet


async def runs(shop: Shop, of: type[K], kind: str = "job") -> tuple[World, Controller, Execution, K]:
    world, controller, execution, kubelet = await prepared(shop, of, kind)
    kubelet.runs()
    await world.step(controller)
    assert fresh(execution).state == "running"
    return world, controller, execution, kubelet


@pytest.mark.parametrize(("code", "state"), [(0, "succeeded"), (7, "failed")])
@in_world
async def test_job_finishes_at_program_end_and_ends_after_saving(shop: Shop, code: int, state: str) -> None:
    world, controller, execution, kubelet = await runs(shop, NewKubelet)
    kubelet.ends(code)
    await world.step(controller)
    assert fresh(execution).state == "finishing"
    assert "deletionTimestamp" not in kubelet.pod["metadata"]
    assert execution.slots_freed_at is None
    kubelet.saved(SAVED, code)
    await world.step(controller)
    world.behave()
    await world.step(controller)
    assert world.pods() == []
    assert states_of(execution)[-2:] == ["finishing", state]
    files = RunFiles.objects.get(execution=execution)
    assert (files.began, files.ended, files.branch, files.problem) == (COMMIT, OTHER, "main", "")
    entry = LifecycleEntry.objects.get(execution=execution, reason="FilesSaved")
    assert entry.words(OWNER) == "The project's files are saved: commit bbbbbbbb on main."


@in_world
async def test_stop_saves_files_within_grace_period(shop: Shop) -> None:
    world, controller, execution, kubelet = await runs(shop, NewKubelet, "workspace")
    request_stop(execution, by="alice", now=world.now)
    await world.step(controller)
    assert fresh(execution).state == "stopping"
    assert kubelet.pod["spec"]["terminationGracePeriodSeconds"] == 930
    kubelet.ends()
    await world.step(controller)
    assert fresh(execution).state == "stopping"
    kubelet.saved(SAVED)
    world.refresh(controller)  # the watch saw it, and then its deletion
    world.behave()
    world.refresh(controller)
    await world.step(controller)
    assert fresh(execution).state == "stopped"
    assert RunFiles.objects.get().ended == OTHER


LEFT_OUT = "d/…/a (its path has more than 4095 bytes), b (it cannot be read)"
RESULTS = {"results": OTHER, "results_files": 3, "results_bytes": 70}


@pytest.mark.parametrize(
    ("changed", "reason", "words"),
    [
        (
            {"branch": "", "kept": "repository", "problem": "It could not be pushed: no space"},
            "FilesNotPushed",
            "push them again",
        ),
        (
            {"left_out": 2, "left_out_names": LEFT_OUT, "kept": "home"},
            "FilesSaved",
            f"2 files could not be saved and are not in it: {LEFT_OUT}.",
        ),
        (
            {**RESULTS, "results_problem": "1 files are not kept", "results_kept": "home"},
            "FilesSaved",
            "Results: 3 files. 1 files are not kept.",
        ),
    ],
)
@in_world
async def test_unsaved_files_are_recorded_and_warned_about(
    shop: Shop, changed: dict[str, Any], reason: str, words: str
) -> None:
    world, controller, execution, kubelet = await runs(shop, NewKubelet)
    kubelet.saved({**SAVED, **changed})
    await world.step(controller)
    entry = LifecycleEntry.objects.get(execution=execution, reason=reason)
    assert (entry.level, words in entry.words(OWNER)) == ("Warning", True)
    files = RunFiles.objects.get()
    assert {name: getattr(files, name) for name in changed} == changed


@in_world
async def test_owner_is_notified_when_saving_was_cut_short(shop: Shop) -> None:
    world, controller, execution, kubelet = await runs(shop, NewKubelet)
    kubelet.reports({"state": _ended(137)}, _ended(0), "Succeeded", started=False)
    await world.step(controller)
    entry = LifecycleEntry.objects.get(execution=execution, reason="FilesNotPushed")
    assert (entry.level, entry.words(OWNER).partition(".")[0]) == ("Warning", "Saving its files was cut short")
    assert RunFiles.objects.get().problem == "Saving its files was cut short"
    notice = Notification.objects.get(event="files_not_saved")
    assert (notice.user.username, notice.sentence) == (execution.owner.username, entry.words(OWNER))


def test_file_trouble_is_notified_once_per_sweep(shop: Shop) -> None:
    def notices() -> int:
        return Notification.objects.filter(event="files_not_saved").count()

    first, second = (shop.launch(kind="job", environment=shop.job) for _ in range(2))
    trouble, good = FilesReport(problem="Saving was cut short", kept="unsure"), FilesReport(branch="main")
    for report, count in ((good, 0), (trouble, 1), (trouble, 1), (good, 1), (trouble, 2)):
        record(first.pk, report, NOW)
        assert notices() == count
    record(second.pk, FilesReport(results_problem="1 files are not kept"), NOW)
    record(second.pk, FilesReport(code=4, problem="The repository cannot be used"), NOW)
    assert notices() == 2, "too many results, and files that were never fetched, are no trouble with saving"
    JobRun.objects.update(sweep="1")
    Execution.objects.filter(pk=first.pk).update(state="succeeded", settled_at=NOW, ended_at=NOW)
    Execution.objects.filter(pk=second.pk).update(run=first.run)
    record(second.pk, FilesReport(results_problem="It could not be pushed", results_kept="home"), NOW)
    assert notices() == 2


@in_world
async def test_executor_killed_before_start_truncates_nothing(shop: Shop) -> None:
    world, controller, execution, kubelet = await prepared(shop, NewKubelet, "workspace")
    request_stop(execution, by="alice", now=world.now)
    await world.step(controller)
    kubelet.reports({"state": _ended(137)}, {"waiting": {"reason": "PodInitializing"}}, "Pending", started=False)
    await world.step(controller)
    assert not RunFiles.objects.exists()


@in_world
async def test_missing_branch_ends_execution_with_a_sentence(shop: Shop) -> None:
    world, controller, execution, kubelet = await prepared(shop, NewKubelet)
    kubelet.cannot_fetch({"code": 3, "problem": "The project's repository has no branch other."})
    await world.step(controller)
    assert (fresh(execution).state, execution.reason) == ("error", "files_missing")
    assert execution.words(OWNER) == "The project's repository has no branch other. Choose another branch or commit."


@in_world
async def test_unusable_repository_is_retried(shop: Shop) -> None:
    world, controller, execution, kubelet = await prepared(shop, NewKubelet)
    kubelet.cannot_fetch({"code": 4, "problem": "The project's repository cannot be used: no answer"})
    await world.step(controller)
    assert fresh(execution).state == "preparing"
    kubelet.runs()
    await world.step(controller)
    assert fresh(execution).state == "running"


@in_world
async def test_endless_executor_does_not_hold_its_slot_forever(shop: Shop) -> None:
    world, controller, _, kubelet = await runs(shop, NewKubelet)
    kubelet.ends()
    await world.step(controller)
    world.passes(1020)
    await world.step(controller)
    assert "deletionTimestamp" in kubelet.pod["metadata"]


@in_world
async def test_crashed_workspace_restarts_with_its_files(shop: Shop) -> None:
    world, controller, execution, kubelet = await runs(shop, NewKubelet, "workspace")
    kubelet.ends(1)
    await world.step(controller)
    assert fresh(execution).state == "running"


@in_world
async def test_foreign_init_container_is_not_queried(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    Project.objects.update(files=Project.Files.GIT)
    world, execution = World(), shop.launch()
    create = world.cluster.create

    async def meshed(resource: Any, body: RawObject, **more: Any) -> RawObject:
        """As a cluster whose service mesh changes every pod."""
        if resource == PODS:
            steps = [{"name": "mesh-init", "image": "mesh:1"}, *body["spec"]["initContainers"]]
            body = {**body, "spec": {**body["spec"], "initContainers": steps}}
        return await create(resource, body, **more)

    monkeypatch.setattr(world.cluster, "create", meshed)
    await world.step(world.controller())
    assert fresh(execution).state != "error"
    assert len(world.pods()) == 1
