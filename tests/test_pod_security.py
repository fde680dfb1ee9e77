"""Every pod that we make is one that a namespace with Pod Security *restricted* takes, and our namespaces ask for that."""

import copy
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from grid.clusters.kind import variables_of_clients
from grid.clusters.manifests import first, workers
from grid.executions.apply import ensure_namespace
from grid.executions.manifests import build, without_sidecars
from grid.executions.spec import FilesSpec
from grid.kube.resources import DEPLOYMENTS, NAMESPACES, PODS
from grid.tiers.placeholders import manifest as placeholder
from grid.tiers.warmhours import DAYS, WantedPlaceholder, WarmHours, WarmTier
from tests.clusters.cluster_specs import cluster, spec
from tests.support.cluster import FakeCluster
from tests.support.podsecurity import violations
from tests.test_deploy import DEPLOY

Pod = dict[str, Any]  # with metadata and spec, as a pod or a template of pods has them


def pods_of_runs() -> Iterator[tuple[str, Pod]]:
    for kind in ("workspace", "job", "app"):
        run = spec(id="xyz", kind=kind, cluster=None)
        made = build(
            run, namespace="n", token="t", anchor_uid="u", client_variables=variables_of_clients(spec(), "10.0.0.9")
        )
        yield from ((kind, m.body) for m in made if m.resource == PODS)


def pods_with_files_in_git() -> Iterator[tuple[str, Pod]]:
    files = FilesSpec(claim="repositories", repository="churn.git", image="executor:1", cores="50m", memory="64Mi")
    made = build(spec(id="xyz", kind="job", cluster=None, files=files), namespace="n", token="t", anchor_uid="u")
    for manifest in made:
        if manifest.resource == PODS:
            yield "with an executor", manifest.body
            yield "with an ordinary executor", without_sidecars(manifest).body


def pods_of_clusters() -> Iterator[tuple[str, Pod]]:
    for name in ("dask", "ray", "spark"):
        for storage in ("", "20Gi"):
            of = spec(of=cluster(name, local_storage=storage))
            made = [*first(of, namespace="n"), *workers(of, namespace="n", anchor_uid="u", head_address="10.0.0.9")]
            for manifest in made:
                if manifest.resource == DEPLOYMENTS:
                    yield f"{manifest.name} of {name}", manifest.body["spec"]["template"]


def pods_of_deploy() -> Iterator[tuple[str, Pod]]:
    for file in sorted(DEPLOY.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if document and "template" in document.get("spec", {}):
                yield document["metadata"]["name"], document["spec"]["template"]


def placeholders() -> Iterator[tuple[str, Pod]]:
    now = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
    plans: tuple[dict[str, Any], ...] = ({}, {"plan": "a", "image": "python:3.11", "sidecar_requests": {"cpu": 50}})
    for extra in plans:
        warm = WarmTier(spec().tier, 1, WarmHours(frozenset(DAYS), time(), time(), ZoneInfo("UTC")), **extra)
        asked = WantedPlaceholder(warm, 1, now + timedelta(hours=1))
        yield f"placeholder{' of a plan' if extra else ''}", placeholder(asked, image="pause:3.10", now=now)


ALL = [*placeholders(), *pods_of_runs(), *pods_with_files_in_git(), *pods_of_clusters(), *pods_of_deploy()]


@pytest.mark.parametrize(("name", "pod"), ALL, ids=[name for name, _ in ALL])
def test_a_restricted_namespace_takes_it(name: str, pod: Pod) -> None:
    assert violations(pod.get("metadata", {}), pod["spec"]) == []


def test_all_of_deploys_workloads_are_among_them() -> None:
    assert {"web", "proxy", "controller", "migrate"} <= {name for name, _ in ALL}


def container(pod: Pod) -> dict[str, Any]:
    first_container: dict[str, Any] = pod["spec"]["containers"][0]
    return first_container


@pytest.mark.parametrize(
    "spoil",
    [
        lambda pod: pod["spec"].update(hostNetwork=True),
        lambda pod: pod["spec"]["volumes"].append({"name": "host", "hostPath": {"path": "/"}}),
        lambda pod: pod["spec"].pop("securityContext"),
        lambda pod: pod["spec"]["securityContext"].update(runAsUser=0),
        lambda pod: pod["spec"]["securityContext"].update(seccompProfile={"type": "Unconfined"}),
        lambda pod: container(pod).pop("securityContext"),
        lambda pod: container(pod)["securityContext"].update(privileged=True),
        lambda pod: container(pod)["securityContext"]["capabilities"].update(add=["SYS_ADMIN"]),
        lambda pod: container(pod).update(ports=[{"containerPort": 1, "hostPort": 1}]),
        lambda pod: container(pod).update(livenessProbe={"tcpSocket": {"host": "10.0.0.1", "port": 1}}),
        lambda pod: pod["spec"].update(initContainers=[{"name": "first"}]),
    ],
)
def test_the_rules_find_what_is_not_allowed(spoil: Callable[[Pod], object]) -> None:
    (pod,) = [copy.deepcopy(pod) for name, pod in ALL if name == "workspace"]
    spoil(pod)
    assert violations(pod["metadata"], pod["spec"])


def test_both_namespaces_of_deploy_are_restricted() -> None:
    documents = yaml.safe_load_all((DEPLOY / "access.yaml").read_text())
    namespaces = {
        document["metadata"]["name"]: document["metadata"]["labels"]
        for document in documents
        if document["kind"] == "Namespace"
    }
    assert namespaces.keys() == {"compute-grid", "compute-grid-system"}
    assert all(labels["pod-security.kubernetes.io/enforce"] == "restricted" for labels in namespaces.values())


async def test_a_namespace_that_the_controller_makes_is_restricted() -> None:
    api = FakeCluster()
    await ensure_namespace(api, "grid")
    made = await api.get(NAMESPACES, "grid")
    assert made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
