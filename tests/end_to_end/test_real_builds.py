"""The Job of a revision's build on a real Kubernetes API server, with the controller's rights of deploy/builds.yaml and nothing else.

No builder runs: the cluster has no nodes, and the test says in the nodes' place how the pod ended.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from grid.environments.buildjobs import BuildSettings
from grid.environments.revisionbuilds import JobBuilder
from grid.environments.revisions import BuildProgress
from grid.kube.credentials import CredentialSource
from grid.kube.http import HttpKubeApi
from grid.models import EnvironmentRevision
from tests.end_to_end.real import ACCESS, DEPLOY, RealGrid, cluster_of_its_own, needs_real_cluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), needs_real_cluster]
SPACE = "compute-grid-builds"
DIGEST = f"sha256:{'1a' * 32}"


@pytest.fixture(scope="module")
def kubeconfig(real_grid: RealGrid) -> Iterator[Path]:
    real_grid.kubectl("apply", "-f", str(DEPLOY / "builds.yaml"))
    yield real_grid.write_kubeconfig("controller")
    real_grid.kubectl("delete", "-f", str(DEPLOY / "builds.yaml"), "--wait=true")


@pytest.fixture(scope="module")
def real_grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGrid]:
    with cluster_of_its_own(tmp_path_factory.mktemp("real")) as grid:
        grid.kubectl("apply", "-f", str(ACCESS))
        yield grid


def asked(kubeconfig: Path, builder: str) -> BuildProgress:
    """Ask as a controller does that was started just now."""
    base = EnvironmentRevision(image="quay.io/lab:1")
    revision = EnvironmentRevision(
        image=f"registry.example.com/grid/{builder}:2-0badcafe", base=base, requirements="polars==1.9.0"
    )

    async def ask() -> BuildProgress:
        api = HttpKubeApi(CredentialSource(str(kubeconfig)))
        try:
            return await JobBuilder(api, BuildSettings(builder, SPACE, secret="builds")).ask(revision)
        finally:
            await api.close()

    return asyncio.run(ask())


@pytest.mark.parametrize("builder", ["buildkit", "buildah"])
def test_real_api_server_runs_a_build_to_its_end(real_grid: RealGrid, kubeconfig: Path, builder: str) -> None:
    wait_until(lambda: "waits for a node with 1 cores and 4Gi" in asked(kubeconfig, builder).message, 60, "the pod")
    job = f"build-{builder}-2-0badcafe"
    selected = ("-n", SPACE, "-l", f"app.kubernetes.io/instance={job}", "-o", "name")
    (pod,) = real_grid.kubectl("get", "pods", *selected).split()
    (files,) = real_grid.kubectl("get", "configmaps", *selected).split()
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "message": f"{DIGEST}\n"}}
    container = {"name": "build", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": ended}
    status = json.dumps({"status": {"phase": "Succeeded", "containerStatuses": [container]}})
    real_grid.kubectl("patch", pod, "-n", SPACE, "--subresource=status", "--type=merge", "-p", status)
    wait_until(lambda: asked(kubeconfig, builder).state != "building", 60, "the Job's end")
    done = asked(kubeconfig, builder)
    assert (done.state, done.image) == ("ready", f"registry.example.com/grid/{builder}@{DIGEST}")
    real_grid.kubectl("delete", "job", job, "-n", SPACE)
    wait_until(
        lambda: not real_grid.try_kubectl("get", files, "-n", SPACE, "-o", "name").stdout,
        60,
        "the files to go with their Job",
    )
