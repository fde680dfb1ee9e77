"""What the manifests of deploy/ say together."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import structs

from grid.clusters.manifests import first, workers
from grid.clusters.registration import NAME, OWNER
from grid.controller.leader import LEASE
from grid.core.quantity import parse_quantity
from grid.executions.ingress import objects as ingress_objects
from grid.executions.manifests import Manifest, build
from grid.executions.policykeeper import build_for_all
from grid.executions.runpod import sidecar_needs
from grid.executions.spec import FilesSpec
from grid.kube.pools import AUTOSCALER_NAMESPACE, AUTOSCALER_STATUS
from grid.kube.resources import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    LEASES,
    LIMIT_RANGES,
    NETWORK_POLICIES,
    NODES,
    PODS,
    RESOURCE_QUOTAS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)
from grid.metrics.external import ServiceReference
from grid.tiers.placeholders import CLASS
from tests.clusters.cluster_specs import cluster, spec
from tests.executions.test_front import INGRESS_FRONT

DEPLOY = Path(__file__).parents[1] / "deploy"
BUILD_NAMESPACE = "compute-grid-builds"  # GRID_BUILD_NAMESPACE's default
OPTIONAL = "external-metrics.yaml"


def objects(*files: str) -> dict[tuple[str, str], Any]:
    documents = [document for file in files for document in yaml.safe_load_all((DEPLOY / file).read_text()) if document]
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def settings_of(deployment: str, applied: Mapping[tuple[str, str], Any]) -> dict[str, str]:
    """As the kubelet gathers them; the Secret is made by hand."""
    (container,) = applied["Deployment", deployment]["spec"]["template"]["spec"]["containers"]
    settings: dict[str, str] = {}
    for source in container["envFrom"]:
        if "configMapRef" in source:
            known = applied.get(("ConfigMap", source["configMapRef"]["name"]))
            assert known or source["configMapRef"].get("optional"), "the pod would not start"
            settings |= known["data"] if known else {}
    return settings


@pytest.mark.parametrize("deployment", ["web", "controller"])
def test_growth_on_demand_is_absent_without_its_file(deployment: str) -> None:
    assert "GRID_DEMAND_PORT" not in settings_of(deployment, objects("compute-grid.yaml"))


@pytest.mark.parametrize("deployment", ["web", "controller"])
def test_demand_file_serves_tasks_and_tells_the_controller(deployment: str) -> None:
    applied = objects("compute-grid.yaml", OPTIONAL)
    settings = settings_of(deployment, applied)
    (port,) = applied["Service", "demand"]["spec"]["ports"]
    assert settings["GRID_DEMAND_PORT"] == str(port["targetPort"])
    assert settings["GRID_DEMAND_HOST"] == "0.0.0.0"
    service = ServiceReference.parse(settings["GRID_DEMAND_SERVICE"])
    assert service == ServiceReference("demand", applied["ConfigMap", "demand"]["metadata"]["namespace"], port["port"])
    labels = applied["Deployment", "web"]["spec"]["template"]["metadata"]["labels"]
    assert applied["Service", "demand"]["spec"]["selector"].items() <= labels.items()


# --- What each process may do


def rules(account: str, namespace: str = "compute-grid") -> list[dict[str, Any]]:
    """Of a service account of ours in a namespace, or for the whole cluster ("")."""
    kind = "Role" if namespace else "ClusterRole"
    documents = [document for document in yaml.safe_load_all((DEPLOY / "access.yaml").read_text()) if document]
    bound = {
        document["roleRef"]["name"]
        for document in documents
        if document["kind"] == f"{kind}Binding"
        and document["metadata"].get("namespace", "") == namespace
        and {"kind": "ServiceAccount", "name": account, "namespace": "compute-grid-system"} in document["subjects"]
    }
    roles = [
        document
        for document in documents
        if document["kind"] == kind
        and document["metadata"]["name"] in bound
        and document["metadata"].get("namespace", "") == namespace
    ]
    return [rule for role in roles for rule in role["rules"]]


def may(account: str, verb: str, group: str, resource: str, name: str = "", namespace: str = "compute-grid") -> bool:
    return any(
        group in rule["apiGroups"]
        and resource in rule["resources"]
        and verb in rule["verbs"]
        and name in rule.get("resourceNames", [name])
        for rule in rules(account, namespace)
    )


def made_by_the_controller() -> Iterator[Manifest]:
    for name in ("dask", "ray", "spark"):
        of = spec(of=cluster(name))
        yield from first(of, namespace="n", anchor_uid="u")
        yield from workers(of, namespace="n", anchor_uid="u", head_address="10.0.0.9")
    for kind in ("workspace", "job", "app"):
        yield from build(spec(id="xyz", kind=kind, cluster=None), namespace="n", token="t", anchor_uid="u")
    yield from build_for_all("n", [])
    yield from ingress_objects(spec(kind="workspace", cluster=None, front=INGRESS_FRONT), namespace="n", anchor_uid="u")


def test_the_controller_may_make_and_find_whatever_it_makes() -> None:
    made = {manifest.resource for manifest in made_by_the_controller()}
    assert {CONFIG_MAPS, NETWORK_POLICIES, VOLUME_CLAIMS} < made
    for resource in made:
        for verb in ("create", "get"):
            assert may("controller", verb, resource.group, resource.plural), f"{verb} {resource.plural}"


def test_builds_file_allows_the_controller_only_what_builds_need() -> None:
    role = objects("builds.yaml")["Role", "compute-grid-controller"]
    assert role["metadata"]["namespace"] == BUILD_NAMESPACE
    allowed = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    made = {(resource, verb) for resource in ("jobs", "configmaps") for verb in ("get", "create")}
    assert allowed == {*made, ("pods", "list"), ("pods/log", "get")}


def test_controller_may_list_what_missing_node_messages_tell() -> None:
    for resource in (NODES, PODS, VOLUMES, STORAGE_CLASSES):
        assert may("controller", "list", resource.group, resource.plural, namespace=""), resource.plural
    assert may("controller", "list", "", VOLUME_CLAIMS.plural)
    assert may("controller", "get", "", CONFIG_MAPS.plural, AUTOSCALER_STATUS, namespace=AUTOSCALER_NAMESPACE)
    assert not may("controller", "get", "", CONFIG_MAPS.plural, "another", namespace=AUTOSCALER_NAMESPACE)


def test_controller_may_block_the_deletion_of_owners() -> None:
    """Where OwnerReferencesPermissionEnforcement is on, `blockOwnerDeletion` needs update on the owner's finalizers."""
    owners = {
        (owner["apiVersion"], owner["kind"])
        for manifest in made_by_the_controller()
        for owner in manifest.body["metadata"].get("ownerReferences", ())
        if owner["blockOwnerDeletion"]
    }
    assert owners == {(CONFIG_MAPS.api_version, CONFIG_MAPS.kind)}
    assert may("controller", "update", CONFIG_MAPS.group, f"{CONFIG_MAPS.plural}/finalizers")


def test_controller_may_restore_only_its_own_network_policies() -> None:
    for manifest in build_for_all("n", []):
        assert may("controller", "update", "networking.k8s.io", "networkpolicies", manifest.name)
    assert not may("controller", "update", "networking.k8s.io", "networkpolicies", "shut")
    assert not may("controller", "delete", "networking.k8s.io", "networkpolicies", "shut")


def test_controller_may_read_only_the_api_server_address() -> None:
    assert rules("controller", "default") == [
        {
            "apiGroups": ["discovery.k8s.io"],
            "resources": ["endpointslices"],
            "resourceNames": ["kubernetes"],
            "verbs": ["get"],
        },
        {"apiGroups": [""], "resources": ["endpoints"], "resourceNames": ["kubernetes"], "verbs": ["get"]},
    ]


def test_the_proxy_may_find_executions_pods_and_nothing_else() -> None:
    assert rules("proxy") == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
    assert [rules("proxy", elsewhere) for elsewhere in ("", "default", "kube-system", "kube-node-lease")] == [[]] * 4


def test_web_process_may_see_the_lease_but_not_lead() -> None:
    assert may("web", "get", LEASES.group, LEASES.plural, LEASE)
    assert not may("web", "get", LEASES.group, LEASES.plural, "somebody-elses")
    assert not may("web", "update", LEASES.group, LEASES.plural, LEASE)


def test_web_process_may_see_namespace_limits_but_change_none() -> None:
    for resource in (RESOURCE_QUOTAS, LIMIT_RANGES):
        assert may("web", "list", resource.group, resource.plural)
        for verb in ("create", "update", "patch", "delete"):
            assert not may("web", verb, resource.group, resource.plural)


def test_web_process_may_list_volumes_in_no_other_namespace() -> None:
    assert may("web", "list", VOLUME_CLAIMS.group, VOLUME_CLAIMS.plural)
    assert may("web", "list", VOLUMES.group, VOLUMES.plural, namespace="")
    assert may("web", "list", STORAGE_CLASSES.group, STORAGE_CLASSES.plural, namespace="")
    assert not may("web", "list", VOLUME_CLAIMS.group, VOLUME_CLAIMS.plural, namespace="")


def test_controller_may_only_cordon_and_evict_in_cluster() -> None:
    assert may("controller", "patch", NODES.group, NODES.plural, namespace="")
    assert may("controller", "create", PODS.group, f"{PODS.plural}/eviction", namespace="")
    allowed = {(of, verb) for rule in rules("controller", "") for of in rule["resources"] for verb in rule["verbs"]}
    changing = {right for right in allowed if right[1] not in ("get", "list", "watch")}
    assert changing == {(NODES.plural, "patch"), (f"{PODS.plural}/eviction", "create")}


def test_web_process_may_list_disruption_budgets() -> None:
    assert may("web", "list", DISRUPTION_BUDGETS.group, DISRUPTION_BUDGETS.plural, namespace="")


@pytest.mark.parametrize("account", ["web", "proxy"])
def test_exposed_processes_may_change_nothing(account: str) -> None:
    for namespace in ("", "compute-grid", "kube-system", "kube-node-lease", "default"):
        for rule in rules(account, namespace):
            assert set(rule["verbs"]) <= {"get", "list", "watch"}
            assert not {"secrets", "pods/exec", "*"} & set(rule["resources"])


# --- The processes


@pytest.mark.parametrize("name", ["web", "proxy"])
def test_exposed_processes_have_replicas_behind_a_service(name: str) -> None:
    applied = objects("compute-grid.yaml", "access.yaml")
    deployment, service = applied["Deployment", name], applied["Service", name]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["replicas"] > 1
    assert service["spec"]["selector"].items() <= labels.items()
    assert applied["PodDisruptionBudget", name]["spec"]["selector"]["matchLabels"].items() <= labels.items()
    pod = deployment["spec"]["template"]["spec"]
    assert ("ServiceAccount", pod["serviceAccountName"]) in applied
    (container,) = pod["containers"]
    (port,) = container["ports"]
    assert f"--port={port['containerPort']}" in container["args"]
    assert {"secretRef": {"name": "compute-grid"}} in container["envFrom"]
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"]["port"] == port["name"]
    assert container["lifecycle"]["preStop"]


def test_dashboard_and_workspaces_have_own_routes_and_certificates() -> None:
    settings = objects("compute-grid.yaml")["ConfigMap", "settings"]["data"]
    host = {
        name: settings[name].removeprefix("https://") for name in ("GRID_DASHBOARD_ORIGIN", "GRID_WORKSPACE_ORIGIN")
    }
    led: dict[str, str] = {}
    for (kind, _), ingress in objects("ingress.yaml").items():
        assert kind == "Ingress"
        for rule in ingress["spec"]["rules"]:
            (path,) = rule["http"]["paths"]
            led[rule["host"]] = path["backend"]["service"]["name"]
            assert any(rule["host"] in tls["hosts"] for tls in ingress["spec"]["tls"])
    workspaces = host["GRID_WORKSPACE_ORIGIN"]
    assert led == {host["GRID_DASHBOARD_ORIGIN"]: "web", f"*.{workspaces}": "proxy", workspaces: "proxy"}
    assert host["GRID_DASHBOARD_ORIGIN"] in settings["GRID_ALLOWED_HOSTS"].split(",")


def test_image_is_built_from_a_base_pinned_by_digest() -> None:
    bases = re.findall(r"^FROM (.*)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert bases
    assert all(re.fullmatch(r"python:3\.11\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base) for base in bases)


def test_both_namespaces_are_shut_before_anything_runs() -> None:
    documents = [document for document in yaml.safe_load_all((DEPLOY / "network.yaml").read_text()) if document]
    shut = [
        document
        for document in documents
        if document["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    ]
    assert {document["metadata"]["namespace"] for document in shut} == {"compute-grid", "compute-grid-system"}


def test_manifests_register_no_api_of_the_cluster() -> None:
    assert not [kind for kind, _ in objects(*(file.name for file in DEPLOY.glob("*.yaml"))) if kind == "APIService"]


def test_controller_may_register_this_api_only() -> None:
    rules = objects(OPTIONAL)["ClusterRole", OWNER]["rules"]
    named = [rule for rule in rules if rule["verbs"] != ["create"]]
    assert {name for rule in named for name in rule["resourceNames"]} == {NAME, OWNER}
    assert [rule["resources"] for rule in rules if rule["verbs"] == ["create"]] == [["apiservices"]]


def test_placeholder_class_is_the_one_of_the_controller() -> None:
    assert objects("access.yaml")["PriorityClass", CLASS["metadata"]["name"]] == CLASS


def test_controller_reads_platform_parts_and_changes_none() -> None:
    for namespace in ("kube-system", "compute-grid-system"):
        for resource in ("deployments", "daemonsets"):
            assert may("controller", "list", "apps", resource, namespace=namespace)
    for name in ("kube-scheduler", "kube-controller-manager"):
        assert may("controller", "get", "coordination.k8s.io", "leases", name, namespace="kube-system")
    for namespace in ("kube-system", "compute-grid-system"):
        assert {verb for rule in rules("controller", namespace) for verb in rule["verbs"]} <= {"get", "list"}


def test_own_containers_keep_to_the_documented_ratios() -> None:
    """docs/installation.md says which quotas and limit ranges the namespace may have."""
    applied = objects("compute-grid.yaml", "migrate.yaml")
    pods = [
        each["spec"]["template"]["spec"] for (kind, _name), each in applied.items() if kind in ("Deployment", "Job")
    ]
    containers = [each for pod in pods for each in (*pod.get("initContainers", ()), *pod["containers"])]
    assert len(containers) >= 7
    for container in containers:
        resources = container["resources"]
        assert set(resources["requests"]) == {"cpu", "memory"}
        assert set(resources["limits"]) == {"memory"}, "a CPU limit would hold up everybody's page"
        limit, request = (parse_quantity(resources[kind]["memory"]) for kind in ("limits", "requests"))
        assert limit <= 4 * request


@pytest.mark.parametrize(
    ("cores", "executor_memory", "ratios"),
    [(("10m", "50m"), "64Mi", {100, 20, 4, 16}), (("100m", "100m"), "256Mi", {10, 4})],
)
def test_sidecars_have_the_documented_ratios(cores: tuple[str, str], executor_memory: str, ratios: set[int]) -> None:
    front = structs.replace(INGRESS_FRONT, cores=cores[0])
    files = FilesSpec(claim="", repository="", image="", cores=cores[1], memory=executor_memory)
    needs = sidecar_needs(structs.replace(spec(), front=front, files=files))
    assert len(needs) == 2
    seen = {
        parse_quantity(of.limits[name]) / parse_quantity(of.requests[name])
        for of in needs
        for name in ("cpu", "memory")
    }
    assert seen == ratios
