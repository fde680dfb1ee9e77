"""The Executions page over HTTP and its websocket: who sees what, the filter in the URL, ended ones, updates, and stopping several."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from grid.kube.objects import RawObject
from grid.kube.resources import PODS
from grid.models import Execution, State, User
from grid.runtime import Runtime
from tests.clusters.clustering import make_cluster
from tests.conftest import People, client_of
from tests.executions.executing import make_execution, make_project, make_tier, pod_of, put, read_executions
from tests.shell.live import changed, connected
from tests.support.builders import MOMENT, container_status
from tests.support.cluster import FakeCluster
from tests.support.frozen import on_tier
from tests.support.runtime import fill

pytestmark = pytest.mark.django_db(transaction=True)
HOSTILE = '<script>alert("1")</script>'
PATH = "/executions/stop/"


@pytest.fixture
def mine(people: People, runtime: Runtime) -> Execution:
    """One running execution of the owner's, in a project with the teammate."""
    execution = make_execution(people.owner, make_project(people.owner, people.teammate), title="Alice's notebook")
    read_executions(runtime)
    return execution


def get(user: User, path: str = "/executions/", **query: str) -> Any:
    client = Client()
    client.force_login(user)
    return client.get(path, query)


def text(user: User, **query: str) -> str:
    answer = get(user, **query)
    assert answer.status_code == 200
    return str(answer.content.decode())


def running(execution: Execution, **fields: Any) -> RawObject:
    return pod_of(execution.pk, name=execution.object_name, node="node-a", phase="Running", ready=True, **fields)


@pytest.mark.parametrize("who", ["owner", "teammate", "operator", "admin"])
def test_owner_teammate_operator_and_admin_see_the_row(people: People, mine: Execution, who: str) -> None:
    page = text(getattr(people, who))
    assert f'id="row-{mine.pk}"' in page
    assert "1 execution<" in page


def test_a_stranger_sees_nothing_and_no_hint_of_it(people: People, mine: Execution) -> None:
    page = text(people.stranger)
    for hint in (mine.pk, "Alice", "alice", "Customer churn", "Small", "1 execution"):
        assert hint not in page
    assert "Nothing is running or waiting." in page


def test_impostor_pod_from_another_namespace_is_not_believed(
    people: People, mine: Execution, cluster: FakeCluster, runtime: Runtime
) -> None:
    cluster.put(
        PODS, pod_of(mine.pk, name="impostor", namespace="elsewhere", node="node-x", phase="Running", ready=True)
    )
    fill(runtime, cluster)
    for user in (people.owner, people.operator):
        assert "impostor" not in text(user)


def test_pod_without_known_execution_is_for_operators_only(
    people: People, mine: Execution, cluster: FakeCluster, runtime: Runtime
) -> None:
    put(runtime, cluster, PODS, pod_of("gone", name="lost-pod", node="node-x", phase="Running", ready=True))
    assert "lost-pod" in text(people.operator)
    assert "lost-pod" not in text(people.owner)


@pytest.mark.parametrize("title", [HOSTILE, "{{ 7777*7 }}"])
def test_any_title_is_shown_as_text(people: People, mine: Execution, runtime: Runtime, title: str) -> None:
    Execution.objects.filter(pk=mine.pk).update(title=title)
    read_executions(runtime)
    page = text(people.owner)
    assert "<script>alert" not in page
    assert 'dir="auto"' in page
    assert "54439" not in page


def test_filter_comes_from_url_and_stays_in_every_link(people: People, mine: Execution, runtime: Runtime) -> None:
    other = make_execution(people.owner, mine.project, kind="job", state=State.QUEUED)
    read_executions(runtime)
    page = text(people.owner, kind="job", sort="-name")
    assert f'id="row-{other.pk}"' in page
    assert f'id="row-{mine.pk}"' not in page
    assert "?kind=job&amp;sort=name" in page
    assert '<option value="job" selected>' in page
    assert "/live/executions/?kind=job&amp;sort=-name" in page


def test_nonsense_in_the_url_is_harmless_and_said(people: People, mine: Execution) -> None:
    page = text(people.owner, sort="-drop table", page="0", kind=HOSTILE, memory=HOSTILE, tier=HOSTILE)
    assert "<script>alert" not in page
    assert "is not a quantity" in page
    assert "No execution matches." in page


def test_ended_ones_have_a_tab_with_filter_and_order(people: People, mine: Execution) -> None:
    failed = make_execution(
        people.owner, mine.project, state=State.FAILED, title="Broken", message="Out of memory.", ended_at=MOMENT
    )
    make_execution(
        people.owner, mine.project, state=State.STOPPED, title="Done", ended_at=MOMENT, tier=make_tier("big")
    )
    page = text(people.owner, show="ended")
    assert f'href="/executions/{failed.pk}/"' in page
    assert "Out of memory." in page
    assert mine.pk not in page
    assert "Done" not in text(people.owner, show="ended", status="failed")
    assert "Broken" not in text(people.owner, show="ended", tier="big")
    assert "No ended execution matches." in text(people.owner, show="ended", text="zzz")


def test_ended_ones_come_in_pages(people: People, mine: Execution) -> None:
    Execution.objects.bulk_create(
        Execution(
            id=f"old{number:04}", kind="job", owner=people.owner, project=mine.project, **on_tier(mine.tier),
            environment=mine.environment, state=State.SUCCEEDED, ended_at=MOMENT + timedelta(seconds=number),
        )
        for number in range(60)
    )  # fmt: skip
    first = text(people.teammate, show="ended")
    assert first.count('scope="row"') == 50
    assert "old0059" in first
    older = re.search(r'href="\?show=ended&amp;before=([^"]+)" rel="next"', first)
    assert older is not None
    second = text(people.teammate, show="ended", before=unquote(older[1]))
    assert second.count('scope="row"') == 10
    assert "old0009" in second
    assert 'rel="next"' not in second


@pytest.mark.parametrize("position", ["~", "9999-12-31T23:59:59-14:00~x", "yesterday~old1", "9" * 100])
def test_position_that_no_page_has_written_is_newest_page(people: People, mine: Execution, position: str) -> None:
    make_execution(people.owner, mine.project, state=State.STOPPED, title="Done", ended_at=MOMENT)
    assert "Done" in text(people.owner, show="ended", before=position, after=position)


async def test_a_change_reaches_the_browser_as_its_row_only(
    people: People, cluster: FakeCluster, runtime: Runtime
) -> None:
    def two() -> tuple[Execution, Execution]:
        project = make_project(people.owner)
        return make_execution(people.owner, project), make_execution(people.owner, project, state=State.PREPARING)

    first, second = await sync_to_async(two)()
    for execution in (first, second):
        cluster.put(PODS, running(execution))
    fill(runtime, cluster)
    await sync_to_async(read_executions)(runtime)
    async with connected("/live/executions/?sort=name", people.owner) as socket:
        assert ("executions", "innerMorph") in changed(await socket.message())
        waiting = container_status(state={"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}})
        put(runtime, cluster, PODS, pod_of(second.pk, name=second.object_name, node="node-a", statuses=[waiting]))
        message = await socket.message()
        assert changed(message) == [(f"row-{second.pk}", "outerMorph")]
        assert "status-problem" in message
        assert await socket.is_silent()


async def test_launch_of_teammate_appears_and_of_stranger_does_not(people: People, runtime: Runtime) -> None:
    project = await sync_to_async(make_project)(people.owner, people.teammate)
    foreign = await sync_to_async(make_project)(people.stranger, id="secret", name="Secret")
    async with connected("/live/executions/", people.owner) as socket:
        await socket.message()
        await sync_to_async(make_execution)(people.stranger, foreign)
        await sync_to_async(read_executions)(runtime)
        assert await socket.is_silent()
        shared = await sync_to_async(make_execution)(people.teammate, project)
        await sync_to_async(read_executions)(runtime)
        assert f"row-{shared.pk}" in await socket.message()


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


@pytest.mark.usefixtures("runtime")
def test_permitted_stops_happen_together_and_others_are_named(people: People, three: list[Execution]) -> None:
    client, query = client_of(people.owner), {"id": [each.pk for each in three]}
    page = client.get(PATH, query).content.decode()

    assert "Stop 1 execution?" in page
    assert "theirs &lt;b&gt;" in page
    assert "Only its owner" in page
    assert "It has already ended." in page
    client.post(PATH, query)
    assert stopped() == {"my-run"}


@pytest.mark.usefixtures("runtime")
def test_a_stranger_learns_nothing_and_stops_nothing(people: People, three: list[Execution]) -> None:
    client, query = client_of(people.stranger), {"id": [each.pk for each in three]}
    there = client.get(PATH, query).content.decode()
    assert "Nothing to stop" in there
    assert not any(each.title in there for each in three)
    client.post(PATH, query)
    assert stopped() == set()


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("ids", [[], ["\x00", "' OR 1=1 --", "x" * 5000]])
def test_ids_that_are_none_are_no_error(people: People, three: list[Execution], ids: list[str]) -> None:
    client = client_of(people.admin)
    assert "Nothing to stop" in client.get(PATH, {"id": ids}).content.decode()
    assert client.post(PATH, {"id": ids}).status_code == 302
    assert stopped() == set()


@pytest.mark.usefixtures("runtime")
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
