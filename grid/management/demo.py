"""The demo data of the embedded mode's first run: accounts, projects, tiers and environments to try things with.

Created once; later changes and archivings stay. The accounts' passwords are random; the caller stores them before the accounts are created,
so that a start that is killed half-way loses none.
"""

import secrets
from collections.abc import Iterator, Sequence
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
_RUNS = "Runs main.py in the project's folder, once"
JUPYTERLAB_COMMAND = [
    # Without packages of the user's own (-s) and modules in the folder where it starts (-P): neither can break the server.
    *("python", "-sP", "-m", "jupyterlab", "--no-browser", "--allow-root"),
    # On its Unix socket, or without nginx in front on its address.
    *("--ServerApp.sock={socket}", "--ip={host}", "--port={port}"),
    # On this machine other people's programs reach kernels' ports.
    "--KernelManager.transport_encryption=auto",
    *("--ServerApp.base_url={base_url}", "--ServerApp.root_dir={project}"),
    *("--ServerApp.allow_remote_access=True", "--ServerApp.trust_xheaders=True"),
    *("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=None"),
]
CODE_SERVER_COMMAND = [
    *("code-server", "--socket={socket}", "--bind-addr={host}:{port}"),
    "--auth=none",  # only the proxy reaches it, and asks who it is
    *("--disable-telemetry", "--disable-update-check", "--disable-getting-started-override", "--disable-proxy"),
    *("--ignore-last-opened", "{project}"),
]
_SCRIPT_COMMAND = ["python", "main.py"]


def _tiers() -> Iterator[HardwareTier]:
    def tier(id: str, name: str, cores: str, memory: str, cost: str, description: str, **values: Any) -> HardwareTier:
        sizes = {"cores": cores, "memory": memory, "cost_per_hour": cost, "node_pool": "default"}
        return HardwareTier(id=id, name=name, description=description, **{**sizes, **values})

    yield tier("tiny", "Tiny", "250m", "1Gi", "0.02", "A quarter of a core: heads and workers of small clusters.")
    yield tier("small", "Small", "1", "4Gi", "0.05", "Notebooks and light analysis.", is_default=True)
    yield tier("medium", "Medium", "3500m", "14Gi", "0.19", "Feature engineering and model training on CPUs.")
    whole = "A whole machine: 7 cores, shared memory for data loaders."
    yield tier("large", "Large", "7", "28Gi", "0.38", whole, shared_memory="4Gi", maximum_simultaneous=4)
    gpu = "One GPU; its machine is started when you need it."
    yield tier("gpu", "GPU", "3", "12Gi", "0.53", gpu, node_pool="default-gpu", gpus=1, shared_memory="2Gi")


def _environments() -> Iterator[Environment]:
    def make(id: str, name: str, description: str, kind: str, image: str, **values: Any) -> Environment:
        return Environment(
            id=id, name=name, description=description, kind=kind, image=f"compute-grid/{image}", **values
        )

    lab = {"port": 8888, "command": JUPYTERLAB_COMMAND}
    yield make("jupyterlab", "JupyterLab", "JupyterLab 4 with Python 3.", "workspace", "jupyterlab:4.6", **lab)
    packages = "JupyterLab 4 with pandas, scikit-learn and matplotlib."
    yield make("datascience", "Data science notebook", packages, "workspace", "datascience:1", **lab)
    # With the variable, or it would take a login shell's PATH for its terminals, and with it the distribution's Python.
    variables = {"VSCODE_CLI": "1"}
    code = {"port": 8080, "command": CODE_SERVER_COMMAND, "allows_service_workers": True, "variables": variables}
    terminal = "VS Code in the browser (code-server) with Python 3 and a terminal."
    yield make("vscode", "VS Code", terminal, "workspace", "code-server:4.100", **code)
    # A notebook, a script and a cluster share one image of a framework, so that their versions are the same.
    for framework, title, version, joining in (
        ("dask", "Dask", "2026.8.0", "Client() joins the attached Dask cluster"),
        ("ray", "Ray", "2.60.0", "ray.init() joins the attached Ray cluster"),
        ("spark", "Spark", "4.3.0", "its sessions run on the attached Spark cluster"),
    ):
        short = version.rpartition(".")[0]
        image, both = f"{framework}:{short}", f"{title} {short}"
        for kind, noun, description, values in (
            ("workspace", "notebook", f"JupyterLab 4 with {both} and pandas; {joining}.", lab),
            ("job", "script", f"{_RUNS}, with {both}; {joining}.", {"command": _SCRIPT_COMMAND}),
            ("cluster", "cluster", f"A {both} head and workers with Python 3 and pandas.", {}),
        ):
            yield make(
                f"{framework}-{noun}",
                f"{title} {noun}",
                description,
                kind,
                image,
                frameworks={framework: version},
                **values,
            )
    yield make("python-script", "Python script", f"{_RUNS}.", "job", "datascience:1", command=_SCRIPT_COMMAND)


def new_accounts() -> list[DemoAccount]:
    """Return the accounts to create, with fresh passwords; [] when there are users already."""
    if User.objects.exists():
        return []
    return [DemoAccount(name, secrets.token_urlsafe(9), role) for name, role in _ACCOUNTS]


@transaction.atomic
def create_demo_data(accounts: Sequence[DemoAccount]) -> None:
    users = {}
    for account in accounts:
        make = User.objects.create_superuser if account.username == "admin" else User.objects.create_user
        user = users[account.username] = make(username=account.username, password=account.password)
        user.groups.add(Group.objects.get_or_create(name=DEMO_GROUP)[0])
    users["operator"].groups.add(Group.objects.get_or_create(name=OPERATORS)[0])
    churn = Project.objects.start(
        id="churn", name="Customer churn", description="Who leaves, and why.", owner=users["scientist"]
    )
    churn.members.add(users["colleague"], through_defaults={"role": "contributor"})
    Project.objects.start(
        id="vision", name="Product photos", description="Labels for product photos.", owner=users["colleague"]
    )
    for row in (*_tiers(), *_environments()):
        row.save(force_insert=True)
