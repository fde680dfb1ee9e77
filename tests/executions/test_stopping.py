"""Stopping several executions after one confirmation, and what each confirmation says."""

import pytest

from grid.models import Execution, State
from tests.clusters.clustering import make_cluster
from tests.conftest import People
from tests.executions.executing import make_execution, make_project
from tests.shell.browsing import client_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
PATH = "/executions/stop/"


def stopped() -> set[str]:
    return set(Execution.objects.filter(stop_requested_at__isnull=False).values_list("title", flat=True))


@pytest.fixture
def three(people: People) -> list[Execution]:
    """The owner's, the team-mate's, and one that has ended, all in one project that the owner does not own."""
    project = make_project(people.admin, people.owner, people.teammate)
    return [
        make_execution(people.owner, project, title="my-run"),
        make_execution(people.teammate, project, title="theirs <b>"),
        make_execution(people.owner, project, title="ended-run", state=State.SUCCEEDED),
    ]


def test_permitted_stops_happen_together_and_others_are_named(people: People, three: list[Execution]) -> None:
    client, query = client_of(people.owner), {"id": [each.pk for each in three]}
    page = client.get(PATH, query).content.decode()

    assert "Stop 1 execution?" in page
    assert "theirs &lt;b&gt;" in page
    assert "Only its owner" in page
    assert "It has already ended." in page
    client.post(PATH, query)
    assert stopped() == {"my-run"}


def test_a_stranger_learns_nothing_and_stops_nothing(people: People, three: list[Execution]) -> None:
    client, query = client_of(people.stranger), {"id": [each.pk for each in three]}
    there = client.get(PATH, query).content.decode()
    assert "Nothing to stop" in there
    assert not any(each.title in there for each in three)
    client.post(PATH, query)
    assert stopped() == set()


@pytest.mark.parametrize("ids", [[], ["\x00", "' OR 1=1 --", "x" * 5000]])
def test_ids_that_are_none_are_no_error(people: People, three: list[Execution], ids: list[str]) -> None:
    client = client_of(people.admin)
    assert "Nothing to stop" in client.get(PATH, {"id": ids}).content.decode()
    assert client.post(PATH, {"id": ids}).status_code == 302
    assert stopped() == set()


def test_stop_question_says_owner_and_what_else_ends(people: People) -> None:
    project = make_project(people.owner)
    workspace = make_execution(people.owner, project, title="notebook", state=State.RUNNING)
    cluster = make_cluster(people.owner, project, title="workers")
    Execution.objects.filter(pk=cluster.pk).update(attached_to=workspace.pk)

    single = client_of(people.operator).get(f"/executions/{workspace.pk}/stop/").content.decode()
    assert f"It belongs to {people.owner.username}." in single
    assert "Its cluster workers ends too." in single
    assert "are kept" in single
    several = client_of(people.operator).get(PATH, {"id": workspace.pk}).content.decode()
    assert "Its cluster workers ends too." in several
    assert "belongs to" not in client_of(people.owner).get(f"/executions/{workspace.pk}/stop/").content.decode()
