"""The pod of an execution whose files are in Git: its executor, as a native sidecar or as an ordinary container."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from grid.executions.manifests import Manifest, bare, build, without_sidecars
from grid.kube.resources import PODS, VOLUME_CLAIMS
from tests.executions.test_front import FRONT
from tests.executions.test_manifests import spec
from tests.files.test_files_in_git import FILES
from tests.support.golden import assert_golden


def pod_of(**changed: Any) -> Manifest:
    made = build(spec(**{"files": FILES, **changed}), namespace="grid", token="t")
    (pod,) = [manifest for manifest in made if manifest.resource == PODS]
    return pod


def names_of(containers: list[Any]) -> list[str]:
    return [container["name"] for container in containers]


def test_executor_is_sidecar_with_sole_access_to_repository() -> None:
    made = build(spec(files=FILES, title="It costs $(HOME)"), namespace="grid", token="t")
    bodies = {manifest.name: manifest.body for manifest in made}
    assert_golden("pod-with-files-in-git", json.dumps(bodies["workspace-abc"]["spec"], indent=1), ending="json")
    assert "project-churn" not in bodies
    # A person's text, in which Kubernetes would expand variables.
    (executor,) = bodies["workspace-abc"]["spec"]["initContainers"]
    assert {"name": "GRID_TITLE", "value": "It costs $$(HOME)"} in executor["env"]


@pytest.mark.parametrize("kind", ["workspace", "job"])
def test_ordinary_containers_replace_sidecars_on_older_clusters(kind: str) -> None:
    pod = pod_of(kind=kind)
    before = json.dumps(pod.body)
    made = without_sidecars(pod)
    assert json.dumps(pod.body) == before
    assert made.name == pod.name
    if kind == "workspace":
        assert_golden("pod-with-files-in-git-ordinary", json.dumps(made.body["spec"], indent=1), ending="json")
    (step,), (run, executor) = made.body["spec"]["initContainers"], made.body["spec"]["containers"]
    assert (step["name"], run["name"], executor["name"]) == ("executor-prepare", "run", "executor")
    # Nobody starts the setup step of a job again.
    assert any("--patience" in argument for argument in step["args"]) == (kind == "job")
    assert run == pod.body["spec"]["containers"][0]
    assert not {"restartPolicy", "startupProbe"} & {*step, *executor} and (
        "lifecycle" in executor,
        "lifecycle" in step,
    ) == (True, False)


def test_nginx_sits_between_program_and_executor_without_sidecars() -> None:
    pod = pod_of(front=FRONT)
    made = without_sidecars(pod).body["spec"]
    assert names_of(made["initContainers"]) == ["executor-prepare"]
    assert names_of(made["containers"]) == ["run", "nginx", "executor"]
    (front,) = [container for container in pod.body["spec"]["initContainers"] if container["name"] == "nginx"]
    assert made["containers"][1] == {key: value for key, value in front.items() if key != "restartPolicy"}


def test_trial_pod_has_nothing_older_servers_refuse() -> None:
    (step,) = bare(pod_of()).body["spec"]["initContainers"]
    assert step["restartPolicy"] == "Always"
    assert not {"startupProbe", "lifecycle"} & {*step}


@pytest.mark.parametrize(
    ("reserved", "limits"),
    [
        (("50m", "64Mi"), [("1", "128Mi"), ("1", "1Gi")]),
        (("1000m", "1Gi"), [("1", "1Gi"), ("1", "1Gi")]),
        (("1500m", "2Gi"), [("1500m", "2Gi"), ("1500m", "2Gi")]),
    ],
)
def test_sidecars_reserve_at_most_their_limits(reserved: tuple[str, str], limits: list[tuple[str, str]]) -> None:
    cores, memory = reserved
    files, front = replace(FILES, cores=cores, memory=memory), replace(FRONT, cores=cores, memory=memory)
    pod = pod_of(files=files, front=front)
    resources = [container["resources"] for container in pod.body["spec"]["initContainers"]]
    assert [tuple(amounts["requests"][name] for name in ("cpu", "memory")) for amounts in resources] == [reserved] * 2
    assert [tuple(amounts["limits"][name] for name in ("cpu", "memory")) for amounts in resources] == limits


def test_the_claim_of_repositories_is_no_new_volume() -> None:
    made = build(spec(files=FILES), namespace="grid", token="t")
    (claim,) = [manifest for manifest in made if manifest.resource == VOLUME_CLAIMS and manifest.name == "repositories"]
    assert claim.body["spec"]["storageClassName"] == ""
