"""The side of a home: slots in use, what may be launched again, projects."""

from datetime import timedelta

import pytest

from dashboard.home.records import read_home
from grid.models import State
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import make_environment, make_execution, make_project, read_executions
from tests.shell.browsing import client_of
from tests.support.builders import MOMENT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]


def test_running_slots_and_queued_slots_are_distinguished(people: People, runtime: Runtime) -> None:
    project = make_project(people.owner)
    make_execution(people.owner, project, slots=3)
    make_execution(people.owner, project, state=State.QUEUED, slots=2)
    make_execution(people.teammate, project, slots=9)
    read_executions(runtime)
    home = client_of(people.owner).get("/").content.decode()
    assert "You use 3 of 25 slots. 2 more wait in the queue." in home
    assert "12 % of your slots are in use" in home


def test_similar_launches_are_offered_once_with_latest_first(people: People) -> None:
    project = make_project(people.owner)
    notebook = make_environment("notebook", name="Notebook")
    first = make_execution(people.owner, project, title="a <b>", environment=notebook)
    again = make_execution(
        people.owner, project, title="a <b>", environment=notebook, requested_at=MOMENT + timedelta(hours=1)
    )
    latest = make_execution(people.owner, project, requested_at=MOMENT + timedelta(hours=2))
    make_execution(people.teammate, project, title="not mine", requested_at=MOMENT + timedelta(hours=3))

    launches = read_home(people.owner.pk, 9).launches
    assert [(launch.id, launch.title) for launch in launches] == [(latest.pk, ""), (again.pk, "a <b>")]
    home = client_of(people.owner).get("/").content.decode()
    assert f'href="/launch/?from={again.pk}">a &lt;b&gt;</a>' in home
    assert first.pk not in home.partition("Launch again")[2].partition("Projects")[0]


def test_own_projects_are_listed_without_archived_ones(people: People) -> None:
    make_project(people.admin, people.owner, id="shared", name="Shared")
    old = make_project(people.owner, id="old", name="Old")
    old.is_archived = True
    old.save()
    assert [(project.name, project.role) for project in read_home(people.owner.pk, 1).projects] == [
        ("Shared", "contributor")
    ]
    assert read_home(people.stranger.pk, 1).projects == ()
