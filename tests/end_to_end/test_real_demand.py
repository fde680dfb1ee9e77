"""The external metrics on a real control plane do it no harm: ours go before they keep namespaces from being deleted.

Needs REAL_KUBECONFIG, see `test_real_control_plane`; no nodes are joined and nothing is launched.
"""

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.end_to_end.real import DEMAND, SYSTEM_NAMESPACE, RealGrid, cluster_of_its_own, needs_real_cluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), needs_real_cluster]

API_SERVICE = "v1beta1.external.metrics.k8s.io"
NUMBERS = "/apis/external.metrics.k8s.io/v1beta1/namespaces/compute-grid/compute_grid_wanted_workers?labelSelector=execution-id%3Da"


@pytest.fixture(scope="module")
def real_grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGrid]:
    with cluster_of_its_own(tmp_path_factory.mktemp("real")) as grid:
        grid.prepare()
        yield grid


def test_ours_is_there_only_while_served_and_allowed(real_grid: RealGrid) -> None:
    grid, settings = real_grid, real_grid.demand_settings()

    def registered() -> bool:
        return exists(grid, "apiservice", API_SERVICE)

    grid.allow_demand()
    grid.start_controller(**settings)
    grid.start_web(**settings)
    try:
        wait_until(grid.demand_is_registered, 60, "external metrics")
        metrics_are_served_to_the_api_server_only(grid)
        grid.stop("web")
        wait_until(lambda: not registered(), 90, "the end of a registration without an answer")
        with namespace(grid, "harmless") as name:
            grid.kubectl("delete", "namespace", name, "--timeout=60s")
        grid.start_web(**settings)
        wait_until(grid.demand_is_registered, 60, "external metrics again")
        grid.kubectl("delete", "-f", str(DEMAND))
        wait_until(lambda: not registered(), 60, "the end of a registration that is no longer allowed")
        grid.allow_demand()
        wait_until(grid.demand_is_registered, 60, "external metrics that are allowed again")
        grid.stop("controller")
        assert not registered()
    finally:
        grid.stop("controller")
        grid.stop("web")


def metrics_are_served_to_the_api_server_only(grid: RealGrid) -> None:
    metrics = json.loads(grid.kubectl("get", "--raw", NUMBERS))
    assert metrics["kind"] == "ExternalMetricValueList"
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"https://127.0.0.1:{grid.demand_port}{NUMBERS}", context=trusting, timeout=5)
    refused.value.close()
    assert refused.value.code == 401
    spec = json.loads(grid.kubectl("get", "apiservice", API_SERVICE, "-o", "json"))["spec"]
    assert spec["caBundle"]
    assert not spec.get("insecureSkipTLSVerify")


def test_a_registration_of_another_program_stays(real_grid: RealGrid) -> None:
    real_grid.kubectl("create", "-f", str(dead_api_service(real_grid, "keda")))
    real_grid.allow_demand()
    try:
        real_grid.start_controller(**real_grid.demand_settings())
        wait_until(lambda: "is left alone" in real_grid.output("controller"), 30, "a sentence about it")
        real_grid.stop("controller")
        assert exists(real_grid, "apiservice", API_SERVICE)
    finally:
        real_grid.stop("controller")
        real_grid.kubectl("delete", "apiservice", API_SERVICE)


@contextmanager
def namespace(grid: RealGrid, name: str) -> Iterator[str]:
    grid.kubectl("create", "namespace", name)
    try:
        yield name
    finally:
        grid.try_kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def dead_api_service(grid: RealGrid, service: str) -> Path:
    """A file that registers what nobody serves."""
    body = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": API_SERVICE},
        "spec": {
            "group": "external.metrics.k8s.io",
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"name": service, "namespace": SYSTEM_NAMESPACE, "port": 443},
        },
    }
    path = grid.folder / f"{service}.json"
    path.write_text(json.dumps(body))
    return path


def exists(grid: RealGrid, kind: str, name: str) -> bool:
    return grid.kubectl("get", kind, name, "--ignore-not-found", "-o", "name") != ""
