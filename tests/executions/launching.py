"""The launch form's cluster for page tests: what is offered, how the form is filled in, and what an answer says."""

import html
import re
from decimal import Decimal

from grid.configuration import NAMESPACE
from grid.models import ConfigRecord, Project, User
from tests.conftest import People
from tests.executions.executing import make_environment, make_project, make_tier
from tests.shell.browsing import client_of, page_at

CLUSTER = {
    "framework": "dask",
    "cluster_environment": "dask-cluster",
    "head_tier": "small",
    "worker_tier": "medium",
    "workers_minimum": "1",
    "workers_maximum": "5",
    "autoscale": "on",
    "target_cpu": "80",
    "target_memory": "80",
    "local_storage": "",
}
FORM = {"kind": "workspace", "project": "churn", "environment": "jupyterlab", "tier": "small", "token": "t1"}
ALONE = {"kind": "cluster", "project": "churn", "token": "t1", **CLUSTER}
ATTACHED = {**FORM, "with_cluster": "on", **CLUSTER}


def offer_clusters(people: People) -> Project:
    """A project of the owner's, a notebook with Dask, clusters of Dask and of Ray, and two tiers."""
    make_environment(frameworks={"dask": "2026.8.0"})
    make_environment("dask-cluster", name="Dask", kind="cluster", port=None, frameworks={"dask": "2026.8.0"})
    make_environment("ray-cluster", name="Ray", kind="cluster", port=None, frameworks={"ray": "2.60.0"})
    make_tier("small", is_default=True, cost_per_hour=Decimal("0.05"))
    make_tier("medium", cores="3500m", memory="14Gi", cost_per_hour=Decimal("0.19"))
    return make_project(people.owner, people.teammate)


def page(user: User, query: str = "") -> str:
    return page_at(user, f"/launch/{query}")


def sent(user: User, fields: dict[str, str], path: str = "/launch/") -> tuple[int, str]:
    answer = client_of(user).post(path, fields)
    return answer.status_code, html.unescape(answer.content.decode())


def configure(key: str, value: int) -> None:
    ConfigRecord.objects.create(namespace=NAMESPACE, key=key, value=str(value))


def error_at(shown: str, field: str) -> str:
    error = re.search(rf'id="id_{field}_error"[^>]*>(.*?)</div>', shown, re.DOTALL)
    return re.sub(r"<[^>]+>", " ", error[1]).strip() if error else ""


def value_of(shown: str, field: str) -> str:
    control = re.search(rf'<input[^>]*name="{field}"[^>]*>', shown)
    value = re.search(r'value="([^"]*)"', control[0]) if control else None
    return value[1] if value else ""
