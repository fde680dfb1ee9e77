"""The objects of a cluster but for its autoscaler, whole; what its programs are is the frameworks' matter and tested with them."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.clusters.frameworks import framework
from grid.clusters.frameworks.base import Program
from grid.clusters.kind import variables_of_clients
from grid.core.labels import KEYS
from grid.executions.manifests import build
from grid.executions.spec import EnvironmentSpec, ExecutionSpec
from grid.executions.storage import Storage
from grid.kube.resources import (
    AUTOSCALERS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    NETWORK_POLICIES,
    PODS,
    SECRETS,
    SERVICES,
    VOLUME_CLAIMS,
)
from tests.clusters.cluster_objects import firsts, metadata, object_of, seconds
from tests.clusters.cluster_specs import HEAD_PODS, LABELS, WORKER_PODS, cluster, spec
from tests.executions.test_manifests import CONFINED

FRAMEWORKS = pytest.mark.parametrize("name", ["dask", "ray", "spark"])
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
EVERY_POD = {"restartPolicy": "Always", **CONFINED}


def expected_container(program: Program, resources: dict[str, Any], mounts: list[dict[str, str]]) -> dict[str, Any]:
    """What a container is besides its program."""
    whole: dict[str, Any] = {
        "name": "run",
        "image": "science:1",
        "command": list(program.command),
        "workingDir": "/mnt/project",
        "env": [
            {"name": "GRID_EXECUTION_ID", "value": "abc"},
            {"name": "GRID_BASE_URL", "value": "/"},
            {"name": "GRID_PROJECT_PATH", "value": "/mnt/project"},
            {"name": "HOME", "value": "/home/grid"},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            *({"name": key, "value": value} for key, value in program.variables.items()),
            {"name": "THREADS", "valueFrom": {"secretKeyRef": {"name": "cluster-abc", "key": "variable.THREADS"}}},
        ],
        "ports": [{"name": p.name, "containerPort": p.target, "protocol": "TCP"} for p in program.ports],
        "readinessProbe": program.readiness,
        "resources": resources,
        "volumeMounts": mounts,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if program.liveness:
        whole["livenessProbe"] = program.liveness
    if program.pre_stop:
        whole["lifecycle"] = {"preStop": {"exec": {"command": list(program.pre_stop)}}}
    return whole


def test_objects_come_in_creation_order_with_rules_before_pods() -> None:
    assert [(m.resource, m.name, m.owned) for m in firsts(spec())] == [
        (CONFIG_MAPS, "cluster-abc", False),
        (VOLUME_CLAIMS, "project-churn", False),
        (SECRETS, "cluster-abc", True),
        (SERVICES, "cluster-abc-head", True),
        (NETWORK_POLICIES, "cluster-abc", True),
        (NETWORK_POLICIES, "cluster-abc-head", True),
        (NETWORK_POLICIES, "cluster-abc-client", True),
        (DISRUPTION_BUDGETS, "cluster-abc-head", True),
        (DEPLOYMENTS, "cluster-abc-head", True),
    ]
    assert [(m.resource, m.name, m.owned) for m in seconds(spec())] == [
        (DEPLOYMENTS, "cluster-abc-worker", True),
        (AUTOSCALERS, "cluster-abc-worker", True),
    ]


def test_anchor_is_unowned_and_volume_is_the_usual_one() -> None:
    made = firsts(spec(), storage=Storage("ReadWriteOnce", "local-path"))
    assert object_of(made, CONFIG_MAPS) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cluster-abc", "namespace": "grid", "labels": LABELS},
        "data": {"execution": "abc", "tier": "gpu", "environment": "science"},
    }
    assert object_of(made, VOLUME_CLAIMS)["spec"]["storageClassName"] == "local-path"


def test_variable_values_are_in_a_secret_of_the_cluster() -> None:
    made = firsts(spec())
    assert object_of(made, SECRETS)["metadata"] == metadata("cluster-abc")
    assert object_of(made, SECRETS)["data"].keys() == {"variable.THREADS", "variable.POD_IP"}
    plain = EnvironmentSpec(id="science", name="Science", image="science:1", image_pull_secret="our-registry")
    of = spec(environment=plain)
    assert not [m for m in firsts(of) if m.resource == SECRETS], "nothing to keep"
    for deployment in (object_of(firsts(of), DEPLOYMENTS), object_of(seconds(of), DEPLOYMENTS)):
        assert deployment["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "our-registry"}]


@FRAMEWORKS
def test_the_service_gives_the_head_an_address_that_stays(name: str) -> None:
    of = spec(of=cluster(name))
    ports = framework(name).head(of).ports
    assert framework(name).ui_port in {port.number for port in ports}
    assert object_of(firsts(of), SERVICES) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata("cluster-abc-head"),
        "spec": {
            "type": "ClusterIP",
            "selector": HEAD_PODS,
            "ports": [
                {"name": port.name, "port": port.number, "targetPort": port.target, "protocol": "TCP"} for port in ports
            ],
            "publishNotReadyAddresses": False,
        },
    }


OWN = {"podSelector": {"matchLabels": {"dominodatalab.com/execution-id": "abc"}}}
CLIENT = {"podSelector": {"matchLabels": {"dominodatalab.com/execution-id": "xyz"}}}


def system(component: str) -> dict[str, Any]:
    ours = {"app.kubernetes.io/name": "compute-grid", "app.kubernetes.io/component": component}
    namespace = {"matchLabels": {"kubernetes.io/metadata.name": "compute-grid-system"}}
    return {"namespaceSelector": namespace, "podSelector": {"matchLabels": ours}}


@pytest.mark.parametrize(("name", "called_back"), [("dask", []), ("ray", []), ("spark", [CLIENT])])
def test_cluster_pods_talk_to_each_other_and_their_workspace(name: str, called_back: list[Any]) -> None:
    assert object_of(firsts(spec(of=cluster(name))), NETWORK_POLICIES, "cluster-abc") == {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata("cluster-abc"),
        "spec": {
            **OWN,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [OWN, CLIENT]}],
            "egress": [{"to": [OWN, *called_back]}],
        },
    }


def test_standalone_cluster_talks_to_its_own_pods_alone() -> None:
    made = firsts(spec(of=cluster("spark", attached_to="")))
    rules = object_of(made, NETWORK_POLICIES, "cluster-abc")["spec"]
    assert (rules["ingress"], rules["egress"]) == ([{"from": [OWN]}], [{"to": [OWN]}])
    assert [m.name for m in made if m.resource == NETWORK_POLICIES] == ["cluster-abc", "cluster-abc-head"]


@FRAMEWORKS
def test_head_page_is_open_to_proxy_and_controller_only(name: str) -> None:
    assert object_of(firsts(spec(of=cluster(name))), NETWORK_POLICIES, "cluster-abc-head") == {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata("cluster-abc-head"),
        "spec": {
            "podSelector": {"matchLabels": HEAD_PODS},
            "policyTypes": ["Ingress"],
            "ingress": [
                {
                    "from": [system("proxy"), system("controller")],
                    "ports": [{"protocol": "TCP", "port": framework(name).ui_port}],
                }
            ],
        },
    }


def test_workspace_reaches_its_cluster_and_spark_reaches_it_back() -> None:
    to_cluster = {"policyTypes": ["Egress"], "egress": [{"to": [OWN]}]}
    both = {"policyTypes": ["Ingress", "Egress"], "ingress": [{"from": [OWN]}], "egress": [{"to": [OWN]}]}
    for name, rules in (("dask", to_cluster), ("ray", to_cluster), ("spark", both)):
        made = firsts(spec(of=cluster(name)))
        policy = object_of(made, NETWORK_POLICIES, "cluster-abc-client")
        assert (policy["metadata"], policy["spec"]) == (metadata("cluster-abc-client"), {**CLIENT, **rules})
        resources = [m.resource for m in made]
        assert resources.index(DEPLOYMENTS) > resources.index(NETWORK_POLICIES) + 2, "the rules before the pods"


def test_the_head_is_not_moved_while_it_works() -> None:
    assert object_of(firsts(spec()), DISRUPTION_BUDGETS) == {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata("cluster-abc-head"),
        "spec": {
            "minAvailable": 1,
            "selector": {"matchLabels": HEAD_PODS},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


@FRAMEWORKS
def test_head_deployment_is_written_for_each_framework(name: str) -> None:
    of = spec(of=cluster(name))
    resources = {
        "requests": {"cpu": "1", "memory": "4Gi", "ephemeral-storage": "1Gi"},
        "limits": {"cpu": "1", "memory": "4Gi", "ephemeral-storage": "10Gi"},
    }
    mounts = [
        {"name": "project", "mountPath": "/mnt/project"},
        {"name": "home", "mountPath": "/home/grid"},
        {"name": "local", "mountPath": "/mnt/local"},
    ]
    program = framework(name).head(of)
    assert object_of(firsts(of), DEPLOYMENTS) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata("cluster-abc-head"),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": HEAD_PODS},
            "strategy": {"type": "Recreate"},
            "revisionHistoryLimit": 1,
            "progressDeadlineSeconds": 2147483647,
            "template": {
                "metadata": {
                    "labels": {**LABELS, **HEAD_PODS, "dominodatalab.com/hardware-tier-id": "small"},
                    "annotations": {
                        "dominodatalab.com/title": "Explore “all” of it",
                        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                    },
                },
                "spec": {
                    "containers": [expected_container(program, resources, mounts)],
                    "volumes": [
                        {"name": "project", "persistentVolumeClaim": {"claimName": "project-churn"}},
                        {"name": "home", "emptyDir": {"sizeLimit": "10Gi"}},
                        {"name": "local", "emptyDir": {"sizeLimit": "10Gi"}},
                    ],
                    "terminationGracePeriodSeconds": 30,
                    "nodeSelector": {"dominodatalab.com/node-pool": "default"},
                    "tolerations": [],
                    **EVERY_POD,
                },
            },
        },
    }


@FRAMEWORKS
def test_worker_deployment_has_gpu_and_local_storage(name: str) -> None:
    of = spec(of=cluster(name))
    program = framework(name).worker(of, "10.0.0.9")
    resources = {
        "requests": {"cpu": "3", "memory": "12Gi", "ephemeral-storage": "2Gi", "nvidia.com/gpu": "1"},
        "limits": {"cpu": "4", "memory": "14Gi", "ephemeral-storage": "20Gi", "nvidia.com/gpu": "1"},
    }
    mounts = [
        {"name": "project", "mountPath": "/mnt/project"},
        {"name": "home", "mountPath": "/home/grid"},
        {"name": "shared-memory", "mountPath": "/dev/shm"},
        {"name": "local", "mountPath": "/mnt/local"},
    ]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}
    assert object_of(seconds(of), DEPLOYMENTS) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata("cluster-abc-worker"),
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": WORKER_PODS},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": "100%"}},
            "revisionHistoryLimit": 1,
            "progressDeadlineSeconds": 2147483647,
            "template": {
                "metadata": {
                    "labels": {**LABELS, **WORKER_PODS, "team": "vision"},
                    "annotations": {
                        "cost-centre": "42",
                        "dominodatalab.com/title": "Explore “all” of it",
                        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
                    },
                },
                "spec": {
                    "containers": [expected_container(program, resources, mounts)],
                    "volumes": [
                        {"name": "project", "persistentVolumeClaim": {"claimName": "project-churn"}},
                        {"name": "home", "emptyDir": {"sizeLimit": "20Gi"}},
                        {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}},
                        {
                            "name": "local",
                            "ephemeral": {
                                "volumeClaimTemplate": {
                                    "metadata": {"labels": {**LABELS, **WORKER_PODS}},
                                    "spec": claim,
                                }
                            },
                        },
                    ],
                    "terminationGracePeriodSeconds": 75,
                    "nodeSelector": {"dominodatalab.com/node-pool": "default-gpu"},
                    "tolerations": [
                        {"key": "team", "operator": "Equal", "value": "vision"},
                        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                    ],
                    **EVERY_POD,
                },
            },
        },
    }


def test_workers_without_storage_of_their_own_use_the_nodes() -> None:
    template = object_of(seconds(spec(of=cluster(local_storage=""))), DEPLOYMENTS)["spec"]["template"]
    assert template["spec"]["volumes"][-1] == {"name": "local", "emptyDir": {"sizeLimit": "20Gi"}}


@given(st.text(max_size=150), st.text(max_size=120))
def test_texts_of_people_become_valid_labels_outside_selectors(owner: str, title: str) -> None:
    of = spec(owner=owner, title=title)
    for made in (object_of(firsts(of), DEPLOYMENTS), object_of(seconds(of), DEPLOYMENTS)):
        template = made["spec"]["template"]["metadata"]
        assert all(LABEL_VALUE.fullmatch(value) for value in template["labels"].values())
        assert template["annotations"]["dominodatalab.com/title"] == title
        selector = made["spec"]["selector"]["matchLabels"]
        assert selector.keys() == WORKER_PODS.keys() and selector.items() <= template["labels"].items()


@pytest.mark.parametrize("build_objects", [firsts, seconds])
def test_other_kind_has_no_cluster_objects(build_objects: Any) -> None:
    with pytest.raises(ValueError, match="cluster-abc is not a cluster"):
        build_objects(
            ExecutionSpec(**{f: getattr(spec(), f) for f in ("id", "kind", "owner", "project", "tier", "environment")})
        )


@FRAMEWORKS
def test_workspace_finds_its_cluster_in_its_variables(name: str) -> None:
    of = spec(of=cluster(name))
    theirs = dict(framework(name).client_variables(of, "10.0.0.9"))
    assert theirs
    environment = EnvironmentSpec(id="lab", name="Lab", image="lab:1", variables={next(iter(theirs)): "elsewhere"})
    workspace = spec(id="xyz", kind="workspace", cluster=None, environment=environment)
    made = build(
        workspace, namespace="grid", token="t", anchor_uid="u", client_variables=variables_of_clients(of, "10.0.0.9")
    )
    env = object_of(made, PODS)["spec"]["containers"][0]["env"]
    assert {e["name"]: e["value"] for e in env if e["name"] in theirs} == theirs
    assert len({e["name"] for e in env}) == len(env)
    assert {KEYS.execution: "xyz"}.items() <= object_of(made, PODS)["metadata"]["labels"].items()
