"""The demo data of the embedded mode's first run: accounts, projects, tiers and environments to try things with.

Created once; later changes and archivings stay. The accounts' passwords are random; the caller stores them before the accounts are created,
so that a start that is killed half-way loses none.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction

from grid.accounts.backend import DEMO_GROUP, OPERATORS
from grid.models import Environment, HardwareTier, Project, User


@dataclass(frozen=True, slots=True)
class DemoAccount:
    """A login that is printed at the start."""

    username: str
    password: str
    role: str


_ACCOUNTS = (
    ("admin", "edits tiers, environments, projects and settings"),
    ("operator", "watches nodes and everybody's executions"),
    ("scientist", "launches workspaces"),
    ("colleague", "shares a project with scientist"),
)
_TIERS: Sequence[dict[str, Any]] = (
    {
        "id": "tiny",
        "name": "Tiny",
        "description": "A quarter of a core: heads and workers of small clusters.",
        "node_pool": "default",
        "cores": "250m",
        "memory": "1Gi",
        "cost_per_hour": "0.02",
    },
    {
        "id": "small",
        "name": "Small",
        "description": "Notebooks and light analysis.",
        "node_pool": "default",
        "cores": "1",
        "memory": "4Gi",
        "cost_per_hour": "0.05",
        "is_default": True,
    },
    {
        "id": "medium",
        "name": "Medium",
        "description": "Feature engineering and model training on CPUs.",
        "node_pool": "default",
        "cores": "3500m",
        "memory": "14Gi",
        "cost_per_hour": "0.19",
    },
    {
        "id": "large",
        "name": "Large",
        "description": "A whole machine: 7 cores, shared memory for data loaders.",
        "node_pool": "default",
        "cores": "7",
        "memory": "28Gi",
        "shared_memory": "4Gi",
        "cost_per_hour": "0.38",
        "maximum_simultaneous": 4,
    },
    {
        "id": "gpu",
        "name": "GPU",
        "description": "One GPU; its machine is started when you need it.",
        "node_pool": "default-gpu",
        "cores": "3",
        "memory": "12Gi",
        "gpus": 1,
        "shared_memory": "2Gi",
        "cost_per_hour": "0.53",
    },
)
JUPYTERLAB_COMMAND = [
    # Without packages of the user's own (-s) and modules in the folder where it starts (-P): neither can break the server.
    "python",
    "-sP",
    "-m",
    "jupyterlab",
    "--no-browser",
    "--allow-root",
    # On its Unix socket, or without nginx in front on its address.
    "--ServerApp.sock={socket}",
    "--ip={host}",
    "--port={port}",
    # On this machine other people's programs reach kernels' ports.
    "--KernelManager.transport_encryption=auto",
    "--ServerApp.base_url={base_url}",
    "--ServerApp.root_dir={project}",
    "--ServerApp.allow_remote_access=True",
    "--ServerApp.trust_xheaders=True",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.news_url=None",
]


CODE_SERVER_COMMAND = [
    "code-server",
    "--socket={socket}",
    "--bind-addr={host}:{port}",
    # Only the proxy reaches it, and asks who it is.
    "--auth=none",
    "--disable-telemetry",
    "--disable-update-check",
    "--disable-getting-started-override",
    "--disable-proxy",
    "--ignore-last-opened",
    "{project}",
]


def _environments_of(framework: str, name: str, version: str, joining: str) -> Sequence[dict[str, Any]]:
    """Return a notebook, a script and a cluster that share one image of a framework, so that their versions are the same."""
    short = version.rpartition(".")[0]
    common = {"image": f"compute-grid/{framework}:{short}", "frameworks": {framework: version}}
    return (
        {
            **common,
            "id": f"{framework}-notebook",
            "name": f"{name} notebook",
            "description": f"JupyterLab 4 with {name} {short} and pandas; {joining}.",
            "kind": "workspace",
            "port": 8888,
            "command": JUPYTERLAB_COMMAND,
        },
        {
            **common,
            "id": f"{framework}-script",
            "name": f"{name} script",
            "description": f"Runs main.py in the project's folder, once, with {name} {short}; {joining}.",
            "kind": "job",
            "command": ["python", "main.py"],
        },
        {
            **common,
            "id": f"{framework}-cluster",
            "name": f"{name} cluster",
            "description": f"A {name} {short} head and workers with Python 3 and pandas.",
            "kind": "cluster",
        },
    )


_ENVIRONMENTS: Sequence[dict[str, Any]] = (
    {
        "id": "jupyterlab",
        "name": "JupyterLab",
        "description": "JupyterLab 4 with Python 3.",
        "kind": "workspace",
        "image": "compute-grid/jupyterlab:4.6",
        "port": 8888,
        "command": JUPYTERLAB_COMMAND,
    },
    {
        "id": "datascience",
        "name": "Data science notebook",
        "description": "JupyterLab 4 with pandas, scikit-learn and matplotlib.",
        "kind": "workspace",
        "image": "compute-grid/datascience:1",
        "port": 8888,
        "command": JUPYTERLAB_COMMAND,
    },
    {
        "id": "vscode",
        "name": "VS Code",
        "description": "VS Code in the browser (code-server) with Python 3 and a terminal.",
        "kind": "workspace",
        "image": "compute-grid/code-server:4.100",
        "port": 8080,
        "command": CODE_SERVER_COMMAND,
        # It would take a login shell's PATH for its terminals, and with it the distribution's Python.
        "variables": {"VSCODE_CLI": "1"},
        "allows_service_workers": True,
    },
    *_environments_of("dask", "Dask", "2026.8.0", "Client() joins the attached Dask cluster"),
    *_environments_of("ray", "Ray", "2.60.0", "ray.init() joins the attached Ray cluster"),
    *_environments_of("spark", "Spark", "4.3.0", "its sessions run on the attached Spark cluster"),
    {
        "id": "python-script",
        "name": "Python script",
        "description": "Runs main.py in the project's folder, once.",
        "kind": "job",
        "image": "compute-grid/datascience:1",
        "command": ["python", "main.py"],
    },
)


def new_accounts() -> list[DemoAccount]:
    """Return the accounts to create, with fresh passwords; [] when there are users already."""
    if User.objects.exists():
        return []
    return [DemoAccount(name, secrets.token_urlsafe(9), role) for name, role in _ACCOUNTS]


@transaction.atomic
def create_demo_data(accounts: Sequence[DemoAccount]) -> None:
    """Create all demo data in one transaction."""
    users = {account.username: _create_user(account) for account in accounts}
    users["operator"].groups.add(Group.objects.get_or_create(name=OPERATORS)[0])
    churn = Project.objects.start(
        id="churn", name="Customer churn", description="Who leaves, and why.", owner=users["scientist"]
    )
    churn.members.add(users["colleague"], through_defaults={"role": "contributor"})
    Project.objects.start(
        id="vision", name="Product photos", description="Labels for product photos.", owner=users["colleague"]
    )
    for tier in _TIERS:
        HardwareTier.objects.create(**tier)
    for environment in _ENVIRONMENTS:
        Environment.objects.create(**environment)


def _create_user(account: DemoAccount) -> User:
    make = User.objects.create_superuser if account.username == "admin" else User.objects.create_user
    user = make(username=account.username, password=account.password)
    user.groups.add(Group.objects.get_or_create(name=DEMO_GROUP)[0])
    return user
