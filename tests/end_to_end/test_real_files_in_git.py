"""Jobs with files in Git on a real control plane without native sidecars (1.20), where the executor is an ordinary container.

Needs REAL_KUBECONFIG, see `test_real_control_plane`.
"""

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.end_to_end.grid import Session
from tests.end_to_end.real import NAMESPACE, RealGrid, cluster_of_its_own, needs_real_cluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), needs_real_cluster]

PULL_SECONDS, SOON = 400.0, 120.0


@dataclass
class GitGrid:
    grid: RealGrid
    scientist: Session
    repositories: Path
    phases: Path  # a line for each pod and phase that the API server told of

    def git(self, *arguments: str) -> str:
        folder = self.repositories / "churn.git"
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True)
        return done.stdout.strip()

    def launch(self, title: str, command: str, **more: str) -> str:
        fields = {"kind": "job", "project": "churn", "environment": "dask-script", "tier": "small"}
        return self.scientist.launch({**fields, "title": title, "command": command, **more})

    def had_phase(self, job: str, phase: str) -> bool:
        return f"job-{job} {phase}" in self.phases.read_text().splitlines()


def status_of(url: str) -> int:
    """Return 0 while nothing listens there."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except urllib.error.URLError:
        return 0


def make_volume(grid: RealGrid, folder: Path) -> None:
    """The volume of the repositories, as the installation guide has an admin make it."""
    folder.mkdir()
    claim = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": NAMESPACE, "name": "repositories"}
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": str(folder)},
        "claimRef": claim,
    }
    file = grid.folder / "repositories.json"
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "repositories"}, "spec": spec}
    file.write_text(json.dumps(body))
    grid.kubectl("create", "-f", str(file))


@pytest.fixture(scope="module")
def git_grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitGrid]:
    with cluster_of_its_own(tmp_path_factory.mktemp("real")) as grid:
        repositories, phases = grid.folder / "repositories", grid.folder / "phases"
        grid.prepare()
        grid.start_nodes()
        grid.start_controller()
        grid.start_web(GRID_REPOSITORIES=str(repositories), GRID_FRONT_IMAGE="compute-grid/nginx:1")
        make_volume(grid, repositories)
        show = 'jsonpath={.metadata.name} {.status.phase}{"\\n"}'
        watch = grid.begin_kubectl(phases, "get", "pods", "-n", NAMESPACE, "--watch", "-o", show)
        try:
            scientist = Session(grid, "scientist")
            chosen = {"name": "Customer churn", "files": "git"}
            scientist.post("/projects/churn/settings/", chosen, page="/projects/churn/settings/")
            yield GitGrid(grid, scientist, repositories, phases)
        finally:
            watch.terminate()
            watch.wait(30)
            grid.try_kubectl("delete", "pv", "repositories", "--wait=false")


def test_job_files_are_saved_and_pod_ends(git_grid: GitGrid) -> None:
    job = git_grid.launch("Write", "mkdir -p data && echo made by a job > data/result.txt")
    git_grid.scientist.wait_for(job, "Succeeded", seconds=PULL_SECONDS)
    assert git_grid.git("show", "main:data/result.txt") == "made by a job"
    assert git_grid.had_phase(job, "Succeeded")
    commit = git_grid.git("rev-parse", "main")
    assert commit[:8] in git_grid.scientist.get(f"/executions/{job}/")

    failing = git_grid.launch("Fail", "cat data/result.txt && echo half > data/half.txt && exit 7")
    git_grid.scientist.wait_for(failing, "Failed", seconds=SOON)
    assert git_grid.git("show", "main:data/half.txt") == "half"
    assert git_grid.had_phase(failing, "Failed")
    assert "exit code 7" in git_grid.scientist.get(f"/executions/{failing}/")

    paged = git_grid.launch("Page", "cp data/result.txt data/again.txt", page_port="8000")
    git_grid.scientist.wait_for(paged, "Succeeded", seconds=SOON)
    assert git_grid.git("show", "main:data/again.txt") == "made by a job"
    wait_until(lambda: f"pod/job-{paged}" not in git_grid.grid.pods(), SOON, "its nginx has ended")
    git_grid.grid.nothing_was_forbidden()


def test_a_stopped_jobs_files_are_saved(git_grid: GitGrid) -> None:
    serve = "python3 -m http.server 8000 --bind $POD_IP"
    job = git_grid.launch("Stopped", f"echo begun > begun.txt && echo begun && {serve}", page_port="8000")
    git_grid.scientist.wait_for(job, "Running", seconds=PULL_SECONDS)
    pod = json.loads(git_grid.grid.kubectl("get", "pod", f"job-{job}", "-n", NAMESPACE, "-o", "json"))
    assert [container["name"] for container in pod["spec"]["initContainers"]] == ["executor-prepare"]
    assert [container["name"] for container in pod["spec"]["containers"]] == ["run", "nginx", "executor"]
    front = f"http://{pod['status']['podIP']}:{pod['spec']['containers'][1]['ports'][0]['containerPort']}/"
    # A job runs as soon as its program does, which may be before nginx listens and before the program's first line.
    wait_until(lambda: status_of(front) == 403, SOON, "nginx, which answers nobody without our token")
    git_grid.scientist.wait_for_line(job, "begun", seconds=SOON)
    page = f"/executions/{job}/"
    git_grid.scientist.post(f"{page}stop/", {}, page=page)
    git_grid.scientist.wait_for(job, "Stopped", seconds=SOON)
    # It failed once on a busy machine; the page says why files were not saved.
    assert git_grid.git("show", "main:begun.txt") == "begun", git_grid.scientist.get(page)
    assert f"pod/job-{job}" not in git_grid.grid.pods()
