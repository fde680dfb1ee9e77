"""The objects of an execution, whole."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from grid.core.labels import KEYS
from grid.executions import own_packages
from grid.executions.manifests import build, labels_of
from grid.executions.spec import EnvironmentSpec, ExecutionSpec, HomeSpec, ProjectSpec, TierSpec
from grid.executions.storage import Storage
from grid.kube.resources import CONFIG_MAPS, PODS, SECRETS, VOLUME_CLAIMS
from tests.support.golden import assert_golden

LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


def spec(**changes: Any) -> ExecutionSpec:
    whole: dict[str, Any] = {
        "id": "abc",
        "kind": "workspace",
        "owner": "alice",
        "title": "Explore “all” of it",
        "port": 8888,
        "address": "https://abc.ws.test/",
        "workspace": "first",
        "project": ProjectSpec(id="churn", volume_name="project-churn", volume_size="10Gi"),
        "home": HomeSpec(volume_name="home-churn-7", volume_size="5Gi"),
        "environment": EnvironmentSpec(
            id="jupyterlab",
            name="JupyterLab",
            image="lab:4",
            command=("lab", "--ip=$(POD_IP)", "--port={port}", "--base={base_url}", "--json={}", "--root={project}"),
            variables={"THREADS": "2", "HOME": "/theirs", "URL": "http://$(POD_IP):1/"},
        ),
        "tier": tier(),
    }
    return ExecutionSpec(**(whole | changes))


def tier(**changes: Any) -> TierSpec:
    whole: dict[str, Any] = {
        "id": "gpu",
        "name": "GPU",
        "node_pool": "default-gpu",
        "cores": "3",
        "cores_limit": "4",
        "memory": "12Gi",
        "memory_limit": "14Gi",
        "gpus": 1,
        "gpu_resource": "nvidia.com/gpu",
        "shared_memory": "2Gi",
        "ephemeral_storage": "20Gi",
        "tolerations": ({"key": "team", "operator": "Equal", "value": "vision"},),
        "extra_labels": {"team": "vision", "app.kubernetes.io/managed-by": "them"},
        "extra_annotations": {"cost-centre": "42", "cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
    }
    return TierSpec(**(whole | changes))


def objects(spec: ExecutionSpec, **more: Any) -> dict[Any, Any]:
    """By resource; of the two claims the project's, which comes first."""
    built = build(spec, namespace="grid", token="secret", anchor_uid="anchor-uid", **more)
    return {manifest.resource: manifest.body for manifest in reversed(built)}


def test_objects_of_a_workspace_on_a_gpu_are_as_stored() -> None:
    built = build(spec(), namespace="grid", token="secret", anchor_uid="u")
    assert built[0].resource == CONFIG_MAPS, "the anchor is made first"
    assert built[0].body["data"].pop("sitecustomize.py") == Path(own_packages.__file__).read_text()
    assert_golden("objects-of-a-workspace", json.dumps([made.body for made in built], indent=1), ending="json")


def test_variable_values_are_not_in_pod_unless_they_refer() -> None:
    secret = EnvironmentSpec(
        id="x",
        name="X",
        image="x",
        variables={"PASSWORD": "hunter2", "URL": "postgres://grid:$(PASSWORD)@db", "PRICE": "2$$", "token": "mine"},
    )
    made = objects(spec(environment=secret))
    assert "hunter2" not in str(made[PODS])
    variables = {variable.pop("name"): variable for variable in made[PODS]["spec"]["containers"][0]["env"]}
    assert variables["URL"] == {"value": "postgres://grid:$(PASSWORD)@db"}
    assert list(variables)[-4:] == ["PASSWORD", "URL", "PRICE", "token"], "Kubernetes fills in from what comes before"
    for name, value in (("PASSWORD", b"hunter2"), ("PRICE", b"2$$"), ("token", b"mine")):
        assert variables[name] == {"valueFrom": {"secretKeyRef": {"name": "workspace-abc", "key": f"variable.{name}"}}}
        assert base64.b64decode(made[SECRETS]["data"][f"variable.{name}"]) == value
    assert base64.b64decode(made[SECRETS]["data"]["token"]) == b"secret", (
        "nobody's variable takes the place of the token"
    )


@pytest.mark.parametrize(("name", "secrets"), [("", None), ("our-registry", [{"name": "our-registry"}])])
def test_image_is_fetched_with_the_credentials_of_its_environment(name: str, secrets: object) -> None:
    environment = EnvironmentSpec(id="x", name="X", image="registry.example.com/x", image_pull_secret=name)
    assert objects(spec(environment=environment))[PODS]["spec"].get("imagePullSecrets") == secrets


def test_launch_from_before_homes_has_a_temporary_one() -> None:
    built = build(spec(home=None), namespace="grid", token="t")
    assert [manifest.name for manifest in built if manifest.resource == VOLUME_CLAIMS] == ["project-churn"]
    assert {"name": "home", "emptyDir": {"sizeLimit": "20Gi"}} in built[-1].body["spec"]["volumes"]


@pytest.mark.parametrize("kind", ["job", "app"])
def test_jobs_and_apps_run_in_project_with_owner_home(kind: str) -> None:
    (container,) = objects(spec(kind=kind))[PODS]["spec"]["containers"]
    variables = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert (container["workingDir"], variables["HOME"]) == ("/mnt/project", "/home/grid")
    assert "JUPYTER_RUNTIME_DIR" not in variables


def test_storage_is_chosen_by_the_installation() -> None:
    built = build(spec(), namespace="grid", token="t", storage=Storage("ReadWriteOnce", "local-path"))
    for claim in (manifest.body["spec"] for manifest in built if manifest.resource == VOLUME_CLAIMS):
        assert (claim["accessModes"], claim["storageClassName"]) == (["ReadWriteOnce"], "local-path")


def test_plain_job_has_no_port_gpu_or_shared_memory() -> None:
    plain = tier(gpus=0, shared_memory="", ephemeral_storage="", tolerations=())
    pod = objects(spec(kind="job", port=0, tier=plain))[PODS]["spec"]
    (container,) = pod["containers"]
    assert (pod["restartPolicy"], pod["tolerations"]) == ("Never", [])
    assert not {"ports", "readinessProbe"} & container.keys()
    assert container["resources"]["limits"] == {"cpu": "4", "memory": "14Gi"}
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/mnt/project", "/home/grid"]


@pytest.mark.parametrize(("limit", "request_"), [("10Gi", "1Gi"), ("1Mi", "1Mi"), ("2T", "190734Mi")])
def test_tenth_of_the_writable_node_disk_is_reserved(limit: str, request_: str) -> None:
    (container,) = objects(spec(tier=tier(ephemeral_storage=limit)))[PODS]["spec"]["containers"]
    assert container["resources"]["limits"]["ephemeral-storage"] == limit
    assert container["resources"]["requests"]["ephemeral-storage"] == request_


def test_tier_that_tolerates_the_gpu_taint_does_so_once() -> None:
    own = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert objects(spec(tier=tier(tolerations=(own,))))[PODS]["spec"]["tolerations"] == [own]


@pytest.mark.parametrize("address", ["https://abc.x.test/", "https://x.test/w/abc/"])
def test_readiness_path_is_asked_below_the_root(address: str) -> None:
    own = EnvironmentSpec(id="x", name="X", image="x", readiness_path="/healthz?full")
    (container,) = objects(spec(environment=own, address=address))[PODS]["spec"]["containers"]
    root = "/w/abc/" if "/w/" in address else "/"
    assert container["readinessProbe"]["httpGet"] == {"path": f"{root}healthz?full", "port": 8888}
    assert "tcpSocket" not in container["readinessProbe"]


@given(st.text(max_size=150), st.text(max_size=120))
def test_texts_of_people_become_valid_label_values(owner: str, title: str) -> None:
    for value in labels_of(spec(owner=owner, title=title)).values():
        assert LABEL_VALUE.fullmatch(value), value


@given(st.text(max_size=60), st.text(max_size=60))
def test_two_users_never_share_a_label(owner: str, other: str) -> None:
    if owner != other:
        assert labels_of(spec(owner=owner))[KEYS.user] != labels_of(spec(owner=other))[KEYS.user]
