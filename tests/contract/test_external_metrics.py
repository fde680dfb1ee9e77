"""A HorizontalPodAutoscaler follows a number from outside: the sum of an external metric's values, in all or for each pod.

Here the pods are nobody's, so what the autoscaler reads is served by the tests. Its words are compared whole: they are shown to people.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.contract.aggregated import OwnApi, api_service, external_name, own_api
from tests.contract.client import Object
from tests.contract.manifests import deployment
from tests.contract.space import Space
from tests.support.waiting import eventually

RBAC = "/apis/rbac.authorization.k8s.io/v1"
API = "v1beta1.external.metrics.k8s.io"
PATIENCE_SECONDS = 60.0  # an autoscaler is looked at every 15 seconds where nobody says otherwise
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
SELECTOR = {"matchLabels": {"execution-id": "abc"}}
SHOWN = (
    "&LabelSelector{MatchLabels:map[string]string{execution-id: abc,},MatchExpressions:[]LabelSelectorRequirement{},}"
)


@pytest_asyncio.fixture
async def api(space: Space, cluster: Space, name: str, tmp_path: Path, reaches_us: None) -> AsyncIterator[OwnApi]:
    """The cluster's external metrics, for as long as the test runs."""
    if (await cluster.get("apiservices", API)).status != 404:
        pytest.skip("this cluster has external metrics already")
    config = await Space(space.client, "kube-system").get("configmaps", "extension-apiserver-authentication")
    authority = config.ok(200)["data"]["requestheader-client-ca-file"]
    server_name = f"{name}.{space.namespace}.svc"
    served = own_api("external.metrics.k8s.io", "v1beta1", server_name, tmp_path, client_authority=authority)
    async with served as api:
        (await space.create("services", external_name(name))).ok(201)
        body = api_service(api, space.namespace, name, caBundle=api.bundle)
        (await cluster.create("apiservices", body)).ok(201)
        try:
            await allow(cluster, name)
            yield api
        finally:
            await cluster.delete("apiservices", API)
            for kind in ("clusterrolebindings", "clusterroles"):
                await cluster.client.request("DELETE", f"{RBAC}/{kind}/{name}")


async def allow(cluster: Space, name: str) -> None:
    """The autoscaler's controller may read external metrics only if told so, where there is authorization at all."""
    head: Object = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    rule = {"apiGroups": ["external.metrics.k8s.io"], "resources": ["*"], "verbs": ["get", "list"]}
    role = head | {"kind": "ClusterRole", "rules": [rule]}
    answer = await cluster.client.request("POST", f"{RBAC}/clusterroles", body=role)
    if answer.status == 404:
        return
    answer.ok(201)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    account = {"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler", "namespace": "kube-system"}
    binding = head | {"kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [account]}
    (await cluster.client.request("POST", f"{RBAC}/clusterrolebindings", body=binding)).ok(201)


def autoscaler(name: str, target: Object, *, selector: Object | None = SELECTOR) -> Object:
    metric: Object = {"name": "wanted"} | ({"selector": selector} if selector else {})
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 1,
            "maxReplicas": 5,
            "metrics": [{"type": "External", "external": {"metric": metric, "target": target}}],
        },
    }


async def until(space: Space, name: str, holds: Any, why: str) -> Object:
    async def read() -> Object:
        return (await space.get("horizontalpodautoscalers", name)).ok(200)

    return await eventually(read, why, holds=holds, within=PATIENCE_SECONDS)


def condition(hpa: Object, kind: str) -> Object:
    conditions = hpa["status"].get("conditions") or ()
    return next((dict(item) for item in conditions if item["type"] == kind), {})


def current(hpa: Object) -> Object:
    metrics = hpa["status"].get("currentMetrics") or [{}]
    return dict(metrics[0].get("external", {}).get("current", {}))


async def messages(space: Space, name: str, reason: str) -> list[str]:
    fields = f"involvedObject.name={name},reason={reason}"
    return [event["message"] for event in (await space.listing("events", fieldSelector=fields)).ok(200)["items"]]


async def expect_event(space: Space, name: str, reason: str, message: str) -> None:
    """Events are written in the background, also after the status that they tell of."""

    async def is_reported() -> bool:
        return message in await messages(space, name, reason)

    await eventually(is_reported, f"{reason} should be told: {message}")


async def test_each_pod_has_its_share(space: Space, api: OwnApi, name: str) -> None:
    api.values = ["2", "1500m"]
    (await space.create("deployments", deployment(name, replicas=1))).ok(201)
    target = {"type": "AverageValue", "averageValue": "1"}
    (await space.create("horizontalpodautoscalers", autoscaler(name, target))).ok(201)
    hpa = await until(space, name, lambda hpa: hpa["status"].get("currentReplicas") == 4, "3.5 are 4 pods")
    active = condition(hpa, "ScalingActive")
    assert (active["status"], active["reason"]) == ("True", "ValidMetricFound")
    shown = f"external metric wanted({SHOWN})"
    assert active["message"] == f"the HPA was able to successfully calculate a replica count from {shown}"
    await expect_event(space, name, "SuccessfulRescale", f"New size: 4; reason: {shown} above target")
    assert len(await messages(space, name, "SuccessfulRescale")) == 1
    assert "execution-id=abc" in api.asked
    steady = await until(space, name, lambda hpa: current(hpa).get("averageValue") == "875m", "3.5 by 4")
    assert steady["status"]["currentMetrics"][0]["external"]["metric"] == {"name": "wanted", "selector": SELECTOR}
    table = (await space.get("horizontalpodautoscalers", name, accept=TABLE)).ok(200)
    shown_target = [column["name"] for column in table["columnDefinitions"]].index("Targets")
    assert table["rows"][0]["cells"][shown_target] == "875m/1 (avg)"
    api.values = ["0"]
    hpa = await until(space, name, lambda hpa: hpa["status"].get("currentReplicas") == 1, "nothing is 1 pod")
    await expect_event(space, name, "SuccessfulRescale", "New size: 1; reason: All metrics below target")
    assert condition(hpa, "ScalingLimited")["reason"] == "TooFewReplicas"


async def test_without_values_it_says_so_and_keeps_its_size(
    space: Space, api: OwnApi, name: str, version: tuple[int, int]
) -> None:
    (await space.create("deployments", deployment(name, replicas=2))).ok(201)
    target = {"type": "AverageValue", "averageValue": "1"}
    (await space.create("horizontalpodautoscalers", autoscaler(name, target))).ok(201)

    def failed(hpa: Object) -> bool:
        active = condition(hpa, "ScalingActive")
        return active.get("reason") == "FailedGetExternalMetric" and "no metrics returned" in active["message"]

    hpa = await until(space, name, failed, "no values are no zero")
    problem = (
        f"unable to get external metric {space.namespace}/wanted/{SHOWN}: no metrics returned from external metrics API"
    )
    active = condition(hpa, "ScalingActive")
    assert (active["status"], active["message"]) == (
        "False",
        f"the HPA was unable to compute the replica count: {problem}",
    )
    await expect_event(space, name, "FailedGetExternalMetric", problem)
    # Old servers, 1.20 among them, name the metric only.
    value = "failed to get wanted external metric value: " if version > (1, 20) else ""
    why = f"{value}failed to get wanted external metric: {problem}"
    summary = f"invalid metrics (1 invalid out of 1), first error is: {why}"
    await expect_event(space, name, "FailedComputeMetricsReplicas", summary)
    assert (await space.get("deployments", name)).ok(200)["spec"]["replicas"] == 2
