"""What the manifests of deploy/ say together."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[1] / "deploy"
OPTIONAL = "external-metrics.yaml"


def objects(*files: str) -> dict[tuple[str, str], Any]:
    found = [one for file in files for one in yaml.safe_load_all((DEPLOY / file).read_text()) if one]
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def settings_of_web(applied: Mapping[tuple[str, str], Any]) -> dict[str, str]:
    """As the kubelet gathers them; the Secret is made by hand."""
    (container,) = applied["Deployment", "web"]["spec"]["template"]["spec"]["containers"]
    settings: dict[str, str] = {}
    for source in container["envFrom"]:
        if "configMapRef" in source:
            known = applied.get(("ConfigMap", source["configMapRef"]["name"]))
            assert known or source["configMapRef"].get("optional"), "the pod would not start"
            settings |= known["data"] if known else {}
    return settings


def test_growth_for_waiting_tasks_is_not_offered_where_nobody_is_registered_to_tell_of_them() -> None:
    assert "GRID_DEMAND_PORT" not in settings_of_web(objects("compute-grid.yaml"))


def test_one_file_registers_the_web_processes_for_waiting_tasks_and_has_them_serve_these() -> None:
    applied = objects("compute-grid.yaml", OPTIONAL)
    settings = settings_of_web(applied)
    (port,) = applied["Service", "demand"]["spec"]["ports"]
    assert settings["GRID_DEMAND_PORT"] == str(port["targetPort"])
    assert settings["GRID_DEMAND_HOST"] == "0.0.0.0"
    assert applied["APIService", "v1beta1.external.metrics.k8s.io"]["spec"]["service"] == {
        "name": "demand",
        "namespace": applied["ConfigMap", "demand"]["metadata"]["namespace"],
        "port": port["port"],
    }
    labels = applied["Deployment", "web"]["spec"]["template"]["metadata"]["labels"]
    assert applied["Service", "demand"]["spec"]["selector"].items() <= labels.items()
