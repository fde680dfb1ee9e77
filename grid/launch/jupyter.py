"""What JupyterLab is told beyond its command line, by variables and by a file of a workspace's pod; other programs ignore both.

A person's workspaces in a project share HOME, and so the settings of JupyterLab; the layout of its tabs is kept for each workspace.
"""

import json
from typing import Any

from grid.launch.spec import ExecutionSpec

_CONFIG_PATH = "/etc/grid/jupyter"
_FILE = "default_setting_overrides.json"
_VOLUME = "jupyter"
# Defaults that a user may change in JupyterLab. It asks whether to fetch news unless that is set, even where there are no news.
_SETTINGS = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}


def data(spec: ExecutionSpec) -> dict[str, str]:
    """Return the file for the execution's ConfigMap, by its key."""
    return {_FILE: json.dumps(_SETTINGS)} if spec.kind == "workspace" else {}


def variables(spec: ExecutionSpec, home: str) -> dict[str, str]:
    """Return the variables that an environment may replace."""
    if spec.kind != "workspace":
        return {}
    found = {"JUPYTER_CONFIG_PATH": _CONFIG_PATH}
    return (
        {**found, "JUPYTERLAB_WORKSPACES_DIR": f"{home}/.jupyter/lab/workspaces/{spec.workspace}"}
        if spec.workspace
        else found
    )


def volumes(spec: ExecutionSpec) -> list[dict[str, Any]]:
    """Return the volume with the file. It is optional, because a ConfigMap that was made by an earlier version does not have it."""
    if spec.kind != "workspace":
        return []
    items = [{"key": _FILE, "path": f"labconfig/{_FILE}"}]
    return [{"name": _VOLUME, "configMap": {"name": spec.object_name, "items": items, "optional": True}}]


def mounts(spec: ExecutionSpec) -> list[dict[str, Any]]:
    return [{"name": _VOLUME, "mountPath": _CONFIG_PATH, "readOnly": True}] if spec.kind == "workspace" else []
