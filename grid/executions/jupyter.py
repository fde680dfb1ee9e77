"""What JupyterLab and Python are told beyond the command line, by variables and by files of a workspace's pod; other programs ignore both.
A person's workspaces in a project share HOME, and so the settings of JupyterLab; the layout of its tabs is kept for each workspace, and
what is installed with pip for each environment, because another one may have another Python."""

import json
from pathlib import Path
from typing import Any

from grid.executions.kinds import kind_of
from grid.executions.spec import ExecutionSpec

_CONFIG_PATH = "/etc/grid/jupyter"
_FILE = "default_setting_overrides.json"
_VOLUME = "jupyter"
_SERVER_FILE = "jupyter_server_config.json"
# Unless it is told a shell, its terminals run login shells, whose /etc/profile replaces the image's PATH by the distribution's: `pip` and
# `python` would be others than the notebooks'.
_SHELL = ["sh", "-c", 'exec "${SHELL:-$(command -v bash || command -v sh)}"']
_SERVER = {"ServerApp": {"terminado_settings": {"shell_command": _SHELL}}}
_SITE_CUSTOMIZE = "sitecustomize.py"
_PYTHON_FOLDER = "python"
_OWN_PACKAGES = Path(__file__).with_name("own_packages.py").read_text(encoding="utf-8")
# Defaults that a user may change in JupyterLab. It asks whether to fetch news unless that is set, even where there are no news.
_SETTINGS = {"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}
MOUNT: dict[str, Any] = {"name": _VOLUME, "mountPath": _CONFIG_PATH, "readOnly": True}


def data(spec: ExecutionSpec) -> dict[str, str]:
    """Return the files for the execution's ConfigMap, by their keys."""
    if not kind_of(spec.kind).starts_at_home:
        return {}
    return {_FILE: json.dumps(_SETTINGS), _SERVER_FILE: json.dumps(_SERVER), _SITE_CUSTOMIZE: _OWN_PACKAGES}


def variables(spec: ExecutionSpec, home: str) -> dict[str, str]:
    """Return the variables that an environment may replace."""
    if not kind_of(spec.kind).starts_at_home:
        return {}
    layout = {"JUPYTERLAB_WORKSPACES_DIR": f"{home}/.jupyter/lab/workspaces/{spec.workspace}"}
    return {
        "JUPYTER_CONFIG_PATH": _CONFIG_PATH,
        "PYTHONPATH": f"{_CONFIG_PATH}/{_PYTHON_FOLDER}",
        "GRID_PACKAGES_PATH": f"{home}/.local/grid/{spec.environment.id}",
        **(layout if spec.workspace else {}),
    }


def volumes(spec: ExecutionSpec) -> list[dict[str, Any]]:
    """Return the volume with the files. They are optional, because a ConfigMap that was made by an earlier version does not have them."""
    items = [
        {"key": _FILE, "path": f"labconfig/{_FILE}"},
        {"key": _SERVER_FILE, "path": _SERVER_FILE},
        {"key": _SITE_CUSTOMIZE, "path": f"{_PYTHON_FOLDER}/{_SITE_CUSTOMIZE}"},
    ]
    return [{"name": _VOLUME, "configMap": {"name": spec.object_name, "items": items, "optional": True}}]
