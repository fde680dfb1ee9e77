"""The objects of an execution, whole."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.core.labels import KEYS, NODE_POOL
from grid.executions import own_packages
from grid.executions.manifests import build, labels_of
from grid.executions.spec import EnvironmentSpec, ExecutionSpec, HomeSpec, ProjectSpec, TierSpec
from grid.executions.storage import Storage
from grid.kube.resources import CONFIG_MAPS, PODS, SECRETS, VOLUME_CLAIMS

# What every pod of ours may not do.
CONFINED = {
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
    "securityContext": {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "fsGroup": 1000,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}

LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
LABELS = {
    "app.kubernetes.io/name": "jupyterlab",
    "app.kubernetes.io/instance": "workspace-abc",
    "app.kubernetes.io/component": "workspace",
    "app.kubernetes.io/managed-by": "compute-grid",
    "dominodatalab.com/workload-type": "workspace",
    "dominodatalab.com/hardware-tier-id": "gpu",
    "dominodatalab.com/project-id": "churn",
    "dominodatalab.com/starting-user-username": "alice",
    "dominodatalab.com/execution-id": "abc",
}
OWNER = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "workspace-abc",
    "uid": "anchor-uid",
    "controller": True,
    "blockOwnerDeletion": True,
}


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


def test_objects_come_in_order_of_creation_with_anchor_first() -> None:
    built = build(spec(), namespace="grid", token="t")
    assert [manifest.resource for manifest in built] == [CONFIG_MAPS, VOLUME_CLAIMS, VOLUME_CLAIMS, SECRETS, PODS]


def test_anchor_is_owned_by_nobody() -> None:
    assert objects(spec())[CONFIG_MAPS] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "workspace-abc", "namespace": "grid", "labels": LABELS},
        "data": {
            "execution": "abc",
            "tier": "gpu",
            "environment": "jupyterlab",
            "default_setting_overrides.json": '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}',
            "jupyter_server_config.json": json.dumps(
                {
                    "ServerApp": {
                        "terminado_settings": {
                            "shell_command": ["sh", "-c", 'exec "${SHELL:-$(command -v bash || command -v sh)}"']
                        }
                    }
                }
            ),
            "sitecustomize.py": Path(own_packages.__file__).read_text(),
        },
    }


def test_the_secret_goes_with_the_anchor() -> None:
    assert objects(spec())[SECRETS] == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "workspace-abc", "namespace": "grid", "labels": LABELS, "ownerReferences": [OWNER]},
        "type": "Opaque",
        "data": {
            "token": base64.b64encode(b"secret").decode(),
            "variable.THREADS": base64.b64encode(b"2").decode(),
            "variable.HOME": base64.b64encode(b"/theirs").decode(),
        },
    }


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


@pytest.mark.parametrize(
    ("name", "size", "more"),
    [("project-churn", "10Gi", {}), ("home-churn-7", "5Gi", {"dominodatalab.com/starting-user-username": "alice"})],
)
def test_files_of_project_and_person_outlive_every_execution(name: str, size: str, more: dict[str, str]) -> None:
    built = build(spec(), namespace="grid", token="t", anchor_uid="anchor-uid")
    labels = {"app.kubernetes.io/managed-by": "compute-grid", "dominodatalab.com/project-id": "churn", **more}
    assert [manifest.body for manifest in built if manifest.name == name] == [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "grid", "labels": labels},
            "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": size}}},
        }
    ]


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


GPU_CONTAINER = {
    "name": "run",
    "image": "lab:4",
    "command": ["lab", "--ip=$(POD_IP)", "--port=8888", "--base=/", "--json={}", "--root=/mnt/project"],
    "workingDir": "/home/grid",
    "env": [
        {"name": "GRID_EXECUTION_ID", "value": "abc"},
        {"name": "GRID_BASE_URL", "value": "/"},
        {"name": "GRID_PROJECT_PATH", "value": "/mnt/project"},
        {"name": "HOME", "value": "/home/grid"},
        {"name": "JUPYTER_RUNTIME_DIR", "value": "/run/grid"},
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "GRID_LISTEN_HOST", "value": "$(POD_IP)"},
        {"name": "JUPYTER_TOKEN", "valueFrom": {"secretKeyRef": {"name": "workspace-abc", "key": "token"}}},
        {"name": "JUPYTER_CONFIG_PATH", "value": "/etc/grid/jupyter"},
        {"name": "PYTHONPATH", "value": "/etc/grid/jupyter/python"},
        {"name": "GRID_PACKAGES_PATH", "value": "/home/grid/.local/grid/jupyterlab"},
        {"name": "JUPYTERLAB_WORKSPACES_DIR", "value": "/home/grid/.jupyter/lab/workspaces/first"},
        {"name": "THREADS", "valueFrom": {"secretKeyRef": {"name": "workspace-abc", "key": "variable.THREADS"}}},
        {"name": "URL", "value": "http://$(POD_IP):1/"},
    ],
    "ports": [{"name": "http", "containerPort": 8888, "protocol": "TCP"}],
    "readinessProbe": {"tcpSocket": {"port": 8888}, "periodSeconds": 2, "timeoutSeconds": 2, "failureThreshold": 3},
    "resources": {
        "requests": {"cpu": "3", "memory": "12Gi", "ephemeral-storage": "2Gi", "nvidia.com/gpu": "1"},
        "limits": {"cpu": "4", "memory": "14Gi", "ephemeral-storage": "20Gi", "nvidia.com/gpu": "1"},
    },
    "volumeMounts": [
        {"name": "project", "mountPath": "/mnt/project"},
        {"name": "home", "mountPath": "/home/grid"},
        {"name": "runtime", "mountPath": "/run/grid"},
        {"name": "jupyter", "mountPath": "/etc/grid/jupyter", "readOnly": True},
        {"name": "shared-memory", "mountPath": "/dev/shm"},
    ],
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    "terminationMessagePolicy": "FallbackToLogsOnError",
}


def test_the_pod_of_a_workspace_on_a_gpu() -> None:
    assert objects(spec())[PODS] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "workspace-abc",
            "namespace": "grid",
            "labels": {**LABELS, "team": "vision"},
            "annotations": {
                "cost-centre": "42",
                "dominodatalab.com/title": "Explore “all” of it",
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            },
            "ownerReferences": [OWNER],
        },
        "spec": {
            "containers": [GPU_CONTAINER],
            "volumes": [
                {"name": "project", "persistentVolumeClaim": {"claimName": "project-churn"}},
                {"name": "home", "persistentVolumeClaim": {"claimName": "home-churn-7"}},
                {"name": "runtime", "emptyDir": {"sizeLimit": "20Gi"}},
                {
                    "name": "jupyter",
                    "configMap": {
                        "name": "workspace-abc",
                        "items": [
                            {
                                "key": "default_setting_overrides.json",
                                "path": "labconfig/default_setting_overrides.json",
                            },
                            {"key": "jupyter_server_config.json", "path": "jupyter_server_config.json"},
                            {"key": "sitecustomize.py", "path": "python/sitecustomize.py"},
                        ],
                        "optional": True,
                    },
                },
                {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}},
            ],
            "restartPolicy": "OnFailure",
            "terminationGracePeriodSeconds": 30,
            "nodeSelector": {NODE_POOL: "default-gpu"},
            "tolerations": [
                {"key": "team", "operator": "Equal", "value": "vision"},
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            ],
            **CONFINED,
        },
    }


def test_plain_job_has_no_port_gpu_or_shared_memory() -> None:
    plain = tier(gpus=0, shared_memory="", ephemeral_storage="", tolerations=())
    pod = objects(spec(kind="job", port=0, tier=plain))[PODS]["spec"]
    (container,) = pod["containers"]
    assert (pod["restartPolicy"], pod["tolerations"]) == ("Never", [])
    assert not {"ports", "readinessProbe"} & container.keys()
    assert container["resources"]["limits"] == {"cpu": "4", "memory": "14Gi"}
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/mnt/project", "/home/grid"]


def environment_of(spec: ExecutionSpec) -> dict[str, dict[str, Any]]:
    (container,) = objects(spec)[PODS]["spec"]["containers"]
    return {variable["name"]: variable for variable in container["env"]}


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
