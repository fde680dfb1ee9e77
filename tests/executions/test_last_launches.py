"""The order in which the launch form offers environments: the one that was used last comes first, for each of them."""

import re
from datetime import timedelta

import pytest

from dashboard.executions.launch_facts import last_launches
from grid.models import Environment, Execution, Project
from tests.conftest import People, client_of
from tests.executions.executing import make_environment, make_project, make_tier
from tests.support.builders import MOMENT
from tests.support.frozen import on_tier

pytestmark = pytest.mark.usefixtures("runtime")


@pytest.fixture
def project(people: People) -> Project:
    for id in ("alpha", "beta", "gamma", "delta"):
        make_environment(id, name=id.capitalize(), frameworks={"dask": "2026.8.0"} if id == "gamma" else {})
    make_tier()
    return make_project(people.owner, people.teammate)


def launch(people: People, project: Project, environment: str, minute: int, **fields: object) -> None:
    values = {"kind": "workspace", **on_tier(make_tier(f"t{minute}")), "owner": people.owner, **fields}
    Execution.objects.create(
        project=project,
        environment=Environment.objects.get(pk=environment),
        requested_at=MOMENT + timedelta(minutes=minute),
        **values,
    )


def offered(people: People, query: str = "") -> list[str]:
    page = client_of(people.owner).get(f"/launch/{query}").content.decode()
    return re.findall(r'<input[^>]* name="environment"[^>]* value="([^"]*)"', page)


def test_environments_are_in_the_order_of_their_last_use(people: People, project: Project) -> None:
    assert offered(people) == ["alpha", "beta", "delta", "gamma"], "without a framework first, then by name"
    for minute, environment in enumerate(("alpha", "gamma", "delta", "gamma")):
        launch(people, project, environment, minute)
    launch(people, project, "beta", 9, owner=people.teammate)
    assert offered(people) == ["gamma", "delta", "alpha", "beta"]
    assert offered(people, "?environment=beta") == ["beta", "gamma", "delta", "alpha"], "what was asked for is first"


def test_form_begins_with_the_last_launch_of_its_kind(people: People, project: Project) -> None:
    launch(people, project, "alpha", 1)
    launch(people, project, "beta", 2, kind="job")
    first = last_launches(people.owner).first_choices("workspace")
    assert (first["project"], first["environment"], first["tier"]) == ("churn", "alpha", "t1")
    assert "environment" not in last_launches(people.owner).first_choices("app")
    assert last_launches(people.stranger).first_choices("job")["project"] is None
