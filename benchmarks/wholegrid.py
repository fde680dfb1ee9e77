"""What benchmarks of a whole Compute Grid need: the operator's login, rows and pods of executions that nobody runs, and live pages."""

import json
import os
import re

import aiohttp
from yarl import URL

from tests.end_to_end.grid import Grid

_NAMESPACE = "compute-grid"


async def log_in(grid: Grid) -> str:
    """The operator's session cookie."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with session.get(f"{grid.url}/login/") as answer:
            token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', await answer.text())
        assert token is not None
        form = {"username": "operator", "password": grid.password("operator"), "csrfmiddlewaretoken": token[1]}
        async with session.post(f"{grid.url}/login/", data=form, headers={"Origin": grid.url}) as answer:
            assert answer.status == 200, await answer.text()
        cookies = session.cookie_jar.filter_cookies(URL(grid.url))
        return "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items())


def create_executions(grid: Grid, count: int, *, port: int = 0) -> list[str]:
    """Rows in the grid's own database for pods that this benchmark makes."""
    os.environ.update(grid.environment())
    os.environ["DJANGO_SETTINGS_MODULE"] = "grid.settings"
    import django

    django.setup()
    from django.utils import timezone

    from grid.executions.spec import pod_columns, tier_spec
    from grid.models import Environment, Execution, HardwareTier, Project, State, User

    tier = HardwareTier.objects.get(id="small")
    made = Execution.objects.bulk_create(
        Execution(
            kind="workspace",
            title=f"benchmark {number}",
            owner=User.objects.get(username="scientist"),
            project=Project.objects.get(id="churn"),
            environment=Environment.objects.get(id="jupyterlab"),
            tier=tier,
            spec={"port": port},
            data_plane=tier.data_plane,
            **pod_columns(tier_spec(tier)),
            state=State.DEPLOYING,
            slots_reserved_at=timezone.now(),
        )
        for number in range(count)
    )
    return [execution.id for execution in made]


def pod(execution_id: str) -> dict[str, object]:
    labels = {
        "app.kubernetes.io/managed-by": "compute-grid",
        "dominodatalab.com/execution-id": execution_id,
        "dominodatalab.com/workload-type": "workspace",
    }
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"workspace-{execution_id}", "labels": labels},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "run", "image": "none", "resources": resources}]},
    }


def status(restarts: int) -> dict[str, object]:
    container = {"name": "run", "image": "none", "imageID": "", "ready": False, "restartCount": restarts, "state": {}}
    return {"status": {"containerStatuses": [container]}}


async def follow_page(session: aiohttp.ClientSession, grid: Grid, cookie: str) -> None:
    """Take what the operator's page of executions gets."""
    url = f"{grid.url.replace('http', 'ws', 1)}/live/executions/"
    async with session.ws_connect(url, headers={"Cookie": cookie}, origin=grid.url, max_msg_size=0) as socket:
        async for _ in socket:
            pass


async def change(session: aiohttp.ClientSession, server: str, name: str, number: int) -> None:
    url = f"{server}/api/v1/namespaces/{_NAMESPACE}/pods/{name}/status"
    headers = {"Content-Type": "application/strategic-merge-patch+json"}
    async with session.patch(url, data=json.dumps(status(number)), headers=headers) as answer:
        assert answer.status == 200, await answer.text()
