"""The platform's health on a whole Compute Grid: what the controller sees of the embedded cluster, and an incident that outlives it."""

import json

import pytest

from grid.platformhealth.apichecks.checks import CHECKS as API_CHECKS
from tests.end_to_end.grid import Grid
from tests.end_to_end.scripts import Session
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PAGE = "/platform-health/"
CHECKS = f"{PAGE}api-checks/"
LABELS = {"k8s-app": "kube-dns"}
# Its image exists nowhere, so that none of its pods gets ready.
DNS = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "coredns", "namespace": "kube-system", "labels": LABELS},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS},
            "spec": {"containers": [{"name": "coredns", "image": "nowhere.invalid/coredns:1"}]},
        },
    },
}


def test_lights_are_on_and_incident_outlives_the_controller(grid: Grid) -> None:
    grid.start()
    operator = Session(grid, "operator")
    wait_until(lambda: "The proxy takes connections." in operator.get(PAGE), 90, "the first look")
    page = operator.get(PAGE)
    assert "requests took" in page and "none failed." in page  # the API server
    assert "metrics.k8s.io answers." in page
    assert "Kubernetes v1." in page and "Not served: deployments" not in page
    assert "No incident." in page

    admin = Session(grid, "admin")
    admin.post(f"{CHECKS}run/", {}, page=f"{CHECKS}run/")
    wait_until(lambda: "checks passed" in admin.get(CHECKS), 120, "the checks of the API")
    assert f"{len(API_CHECKS)} checks passed" in admin.get(CHECKS)
    wait_until(lambda: "-api-check-" not in grid.kubectl("get", "namespaces"), 60, "their namespace is removed")

    file = grid.var.with_suffix(".dns.json")
    file.write_text(json.dumps(DNS))
    grid.kubectl("apply", "-f", str(file))
    wait_until(lambda: "Ongoing" in operator.get(PAGE), 150, "an incident of the DNS")
    page = operator.get(PAGE)
    assert "No pod of coredns is ready." in page
    assert "/pods/kube-system/coredns-" in page

    grid.kill_part("controller")
    looked = page.partition("The controller looked")[2].partition("datetime=")[2][:30]
    wait_until(lambda: "The controller looked" in (now := operator.get(PAGE)) and looked not in now, 120, "a new look")
    assert operator.get(PAGE).count("Ongoing") == 1
