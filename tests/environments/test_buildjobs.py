"""Revisions that a rootless builder makes on a real cluster: the Job, what its state means, and a controller that dies meanwhile."""

import os
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
import pytest
import yaml
from asgiref.sync import async_to_sync

from grid.core.errors import NotAllowed, NotFound, Rejected
from grid.environments import revisions
from grid.environments.buildjobs import BuildSettings, RevisionOrder, files_manifest, job_manifest, progress_of
from grid.environments.revisionbuilds import JobBuilder
from grid.environments.revisions import BuildProgress
from grid.kube.objects import Pod
from grid.kube.resources import CONFIG_MAPS, JOBS, NAMESPACES, PODS
from grid.models import Environment, EnvironmentRevision
from tests.support.cluster import FakeCluster
from tests.support.golden import FOLDER
from tests.support.shop import NOW

SPACE, REPOSITORY = "compute-grid-builds", "registry.example.com/grid/"
SETTINGS = BuildSettings("buildkit", SPACE, secret="builds", index="https://pypi.example.com/simple")
ORDER = RevisionOrder(f"{REPOSITORY}lab:2-0badcafe", "quay.io/jupyter/minimal-notebook:1", ("polars==1.9.0", "rich>13"))
DIGEST = f"sha256:{'1a' * 32}"
JOB: dict[str, Any] = {"metadata": {"uid": "12345678-1234-1234-1234-123456789012"}}


class Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such, and everything in full."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)


Dumper.add_representer(str, Dumper.represent_str)


@pytest.mark.parametrize("builder", ["buildkit", "buildah"])
def test_the_manifests_of_a_build_are_these(builder: str) -> None:
    settings = replace(SETTINGS, builder=builder)
    made = [job_manifest(ORDER, settings), files_manifest(ORDER, settings, job_uid="u-1")]
    file = FOLDER / "builds" / f"{builder}.yaml"
    if os.environ.get("GRID_GOLDEN") == "write":
        file.write_text(yaml.dump_all([manifest.body for manifest in made], Dumper=Dumper, sort_keys=False, width=1000))
    assert list(yaml.safe_load_all(file.read_text())) == [manifest.body for manifest in made]


def test_job_name_is_valid_for_long_environment_names() -> None:
    name = RevisionOrder(f"{REPOSITORY}{'e' * 40}:12345-0badcafe", "b", ()).job
    assert len(name) <= 63
    assert name == f"build-{'e' * 40}-12345-0badcafe"


def job(**condition: str) -> dict[str, Any]:
    return {**JOB, "status": {"conditions": [{"status": "True", **condition}]}}


def pod(phase: str = "Running", *, conditions: Any = (), **state: Any) -> Pod:
    status = {
        "phase": phase,
        "conditions": list(conditions),
        "containerStatuses": [{"name": "build", "state": state}] if state else [],
    }
    return msgspec.convert({"metadata": {"name": "build-x", "namespace": SPACE}, "status": status}, Pod)


FAILED = job(type="Failed", reason="BackoffLimitExceeded")
UNPLACED = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available."}


@pytest.mark.parametrize(
    ("job", "pod", "log", "state", "message"),
    [
        (JOB, None, "", "building", "BuildKit (Job build-lab-2-0badcafe in compute-grid-builds) has no pod yet."),
        (JOB, pod("Pending", conditions=[UNPLACED]), "", "building", "waits for a node with 1 cores and 4Gi. 0/3 nodes"),
        (JOB, pod("Pending"), "", "building", "waits for its image, docker.io/moby/buildkit:rootless and the Secret builds."),
        (JOB, pod("Pending", waiting={"reason": "ErrImagePull", "message": "no such host"}), "", "building", "ErrImagePull. no such"),
        (JOB, pod(running={}), "#1 load", "building", ""),
        (job(type="Complete"), pod(terminated={"message": f"{DIGEST}\n"}), "done", "ready", ""),
        (job(type="Complete"), None, "", "failed", "before its digest was read. Build it again."),
        (FAILED, pod(terminated={"reason": "OOMKilled"}), "", "failed", "ran out of memory, of which it has 4Gi"),
        (FAILED, pod(terminated={"reason": "Error"}), "1 ERROR: No matching distribution found for polar\nERROR: process x", "failed",
         "BuildKit failed: No matching distribution found for polar."),
        (FAILED, pod(terminated={}), "error: failed to push: 401 Unauthorized", "failed", "failed to push: 401 Unauthorized."),
        (FAILED, None, "", "failed", "wrote nothing"),
        (job(type="Failed", reason="DeadlineExceeded"), None, "", "failed", "not built within 30 minutes. It waited."),
    ],
)  # fmt: skip
def test_job_state_maps_to_build_progress(job: Any, pod: Pod | None, log: str, state: str, message: str) -> None:
    progress = progress_of(job, pod, log, order=ORDER, settings=SETTINGS, before="It waited.")
    assert (progress.state, progress.log, len(progress.id)) == (state, log, 32)
    assert message in progress.message
    assert bool(message) == bool(progress.message)
    assert progress.image == (f"{REPOSITORY}lab@{DIGEST}" if state == "ready" else "")


@pytest.fixture
def lab(db: None) -> EnvironmentRevision:
    Environment.objects.create(id="lab", name="Lab", image="quay.io/lab:1", port=8888)
    about = {"note": "", "by": "admin", "now": NOW}
    return revisions.make_built("lab", 1, "polars==1.9.0", repository=REPOSITORY, **about)  # type: ignore[arg-type]


@pytest.fixture
def cluster() -> FakeCluster:
    fake = FakeCluster()
    fake.put(NAMESPACES, {"metadata": {"name": SPACE}})
    return fake


def asked(cluster: FakeCluster, revision: EnvironmentRevision, builder: JobBuilder | None = None) -> BuildProgress:
    """Ask once, as a controller does that was started just now, and store the answer."""
    revision = EnvironmentRevision.objects.select_related("base").get(pk=revision.pk)
    progress = async_to_sync((builder or JobBuilder(cluster, SETTINGS)).ask)(revision)
    revisions.record_progress(revision.pk, progress, now=datetime.now(NOW.tzinfo))
    return progress


def end(cluster: FakeCluster, kind: str, message: str = "") -> None:
    (job,) = cluster.objects(JOBS)
    labels = job["spec"]["template"]["metadata"]["labels"]
    status = {
        "phase": "Succeeded",
        "containerStatuses": [{"name": "build", "state": {"terminated": {"message": message}}}],
    }
    cluster.put(PODS, {"metadata": {"name": "b-1", "namespace": SPACE, "labels": labels}, "status": status})
    cluster.set_log("b-1", ["#7 Successfully installed polars-1.9.0"], namespace=SPACE, container="build")
    cluster.put(JOBS, {**job, "status": {"conditions": [{"type": kind, "status": "True"}]}})


def test_build_continues_across_callers_and_ends_as_digest(cluster: FakeCluster, lab: EnvironmentRevision) -> None:
    assert asked(cluster, lab).state == "building"
    cluster.fail_next(NotFound("killed between the two"), verb="create")
    assert asked(cluster, lab).state == "building"
    assert (len(cluster.objects(JOBS)), len(cluster.objects(CONFIG_MAPS))) == (1, 1)
    end(cluster, "Complete", DIGEST)
    assert asked(cluster, lab).state == "ready"
    lab.refresh_from_db()
    assert (lab.image, lab.digest, lab.builds) == (f"{REPOSITORY}lab@{DIGEST}", DIGEST, 1)
    assert "Successfully installed" in lab.log
    assert Environment.objects.get().image == lab.image


@pytest.mark.parametrize("error", [NotFound("no namespace"), NotAllowed("no right")])
def test_cluster_without_namespace_or_permission_is_waited_for(
    cluster: FakeCluster, lab: EnvironmentRevision, error: NotFound | NotAllowed
) -> None:
    cluster.fail_next(error, times=9)
    assert "BuildKit cannot be run in the namespace compute-grid-builds" in asked(cluster, lab).message
    lab.refresh_from_db()
    assert (lab.state, lab.builds) == ("building", 0)
    cluster.heal()
    assert asked(cluster, lab).state == "building"


@pytest.mark.usefixtures("db")
@pytest.mark.parametrize("what", ["job", "base"])
def test_foreign_or_embedded_base_build_is_refused(cluster: FakeCluster, lab: EnvironmentRevision, what: str) -> None:
    if what == "base":
        EnvironmentRevision.objects.filter(number=1).update(image="compute-grid-built/lab:1-a")
    else:
        body = job_manifest(RevisionOrder(lab.image, "b:1", ()), SETTINGS).body
        body["metadata"]["labels"] = {"app": "another"}
        cluster.put(JOBS, body)
    with pytest.raises(Rejected, match="embedded cluster" if what == "base" else "somebody else"):
        asked(cluster, lab)
