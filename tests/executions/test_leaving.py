"""Who has left a project sees that what he runs there exists, why it will end, and how to end it; nothing of the project's data."""

from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync, sync_to_async

from grid.kube.resources import PODS
from grid.models import Execution
from grid.runtime import Runtime
from tests.clusters.clustering import make_cluster
from tests.conftest import People, client_of, execution_page as text
from tests.executions.executing import make_environment, make_execution, make_project, pod_of
from tests.shell.live import changed, connected
from tests.support.builders import MOMENT, NAMESPACE, container_status
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

pytestmark = pytest.mark.django_db(transaction=True)
LAST_WORDS = "Traceback: the customers of row 7"


@pytest.fixture
def theirs(people: People, cluster: FakeCluster, runtime: Runtime) -> Execution:
    """The teammate's, in the owner's project; its program has crashed and said why."""
    execution = make_execution(people.teammate, make_project(people.owner, people.teammate), started_at=MOMENT)
    crashed = {"terminated": {"exitCode": 1, "reason": "Error", "message": LAST_WORDS}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    status = container_status(restarts=3, state=waiting) | {"lastState": crashed}
    pod = pod_of(execution.pk, name=execution.object_name, node="node-a", phase="Running", statuses=[status])
    cluster.put(PODS, pod)
    cluster.set_log(execution.object_name, ["the customers"], namespace=NAMESPACE, container="run")
    fill(runtime, cluster)
    refreshed(runtime)
    return execution


def refreshed(runtime: Runtime) -> None:
    async_to_sync(runtime.executions.refresh)()


def leave(execution: Execution) -> None:
    """And the controller notices it."""
    execution.project.members.remove(execution.owner)
    Execution.objects.filter(pk=execution.pk).update(access_lost_at=MOMENT)


@pytest.fixture
def left(theirs: Execution, runtime: Runtime) -> Execution:
    leave(theirs)
    refreshed(runtime)
    return theirs


def test_page_says_that_person_left_and_when_it_stops(people: People, left: Execution) -> None:
    page = text(people.teammate, left)
    assert "You have left the project Customer churn. This will be stopped" in page
    assert ">in 10 min</time>, at 09:10:00 UTC." in page
    assert f'href="/executions/{left.pk}/stop/"' in page
    assert "open-form" not in page
    assert "?tab=log" not in page


def test_the_others_are_told_who_has_left(people: People, left: Execution) -> None:
    for who in (people.owner, people.operator):
        assert "bob has left the project Customer churn. This will be stopped" in text(who, left)


def test_last_words_of_program_are_hidden_from_former_members(people: People, left: Execution) -> None:
    assert LAST_WORDS in text(people.owner, left)
    assert LAST_WORDS not in text(people.teammate, left)
    assert "the customers" not in text(people.teammate, left, "?tab=log")


@pytest.mark.parametrize("query", ["", "?download=1"])
def test_an_open_pages_log_is_replaced_by_the_reason(people: People, left: Execution, query: str) -> None:
    answer = client_of(people.teammate).get(f"/executions/{left.pk}/log/{query}")
    assert answer.status_code == 403
    body = answer.content.decode()
    assert body.startswith('<section id="log"')
    assert "You have left the project Customer churn." in body
    assert "the customers" not in body


@pytest.mark.parametrize("tab", ["", "?tab=log", "?tab=describe", "?tab=yaml"])
def test_its_pod_is_not_shown_any_more(people: People, left: Execution, tab: str) -> None:
    address = f"/pods/{NAMESPACE}/{left.object_name}/{tab}"
    assert client_of(people.teammate).get(address).status_code == 403
    assert client_of(people.owner).get(address).status_code == 200


def test_a_cluster_may_be_stopped_and_not_changed(people: People, left: Execution, runtime: Runtime) -> None:
    cluster = make_cluster(people.teammate, left.project, environment=make_environment("dask", kind="cluster"))
    refreshed(runtime)
    answer = client_of(people.teammate).get(f"/executions/{cluster.pk}/resize/")
    assert (answer.status_code, "You may stop the cluster, but not change it." in answer.text) == (403, True)
    assert f"/executions/{cluster.pk}/resize/" not in text(people.teammate, cluster)


def test_closed_account_of_owner_is_named_to_the_others(people: People, theirs: Execution, runtime: Runtime) -> None:
    people.teammate.is_active = False
    people.teammate.save()
    Execution.objects.update(access_lost_at=MOMENT - timedelta(minutes=9))
    refreshed(runtime)
    assert "The account of bob is closed. This will be stopped" in text(people.owner, theirs)


def test_when_it_has_ended_nothing_is_announced(people: People, left: Execution, runtime: Runtime) -> None:
    Execution.objects.update(state="stopped", ended_at=MOMENT, stop_requested_at=MOMENT)
    refreshed(runtime)
    page = " ".join(text(people.teammate, left).split())
    assert "You have left the project Customer churn. You no longer open it, change it or read its log." in page
    assert "will be stopped" not in page


async def test_an_open_page_changes_when_its_owner_leaves(people: People, theirs: Execution, runtime: Runtime) -> None:
    async with connected(f"/live/execution/?id={theirs.pk}", people.teammate) as socket:
        assert LAST_WORDS in await socket.message()
        await sync_to_async(leave)(theirs)
        await runtime.executions.refresh()
        message = await socket.message_about("You have left the project")
        assert "Open</button>" not in message


def view_only(execution: Execution) -> None:
    """And the controller notices it."""
    execution.project.memberships.filter(user=execution.owner).update(role="viewer")
    Execution.objects.filter(pk=execution.pk).update(access_lost_at=MOMENT)


def test_demoted_owner_still_reads_and_stops_the_execution(people: People, theirs: Execution, runtime: Runtime) -> None:
    view_only(theirs)
    refreshed(runtime)
    page = text(people.teammate, theirs)
    assert "You are only a viewer of the project Customer churn now." in page
    assert LAST_WORDS in page
    assert f'href="/executions/{theirs.pk}/stop/"' in page
    assert "bob only views the project Customer churn now. This will be stopped" in text(people.owner, theirs)
    Execution.objects.update(state="stopped", ended_at=MOMENT, stop_requested_at=MOMENT, revision=99)
    refreshed(runtime)
    assert "only view" not in text(people.teammate, theirs), "of what has ended he has lost nothing"


async def test_open_page_of_foreign_execution_ends_on_leaving(people: People, runtime: Runtime) -> None:
    def launched() -> Execution:
        return make_execution(people.owner, make_project(people.owner, people.teammate))

    execution = await sync_to_async(launched)()
    await runtime.executions.refresh()
    page, rows = f"/live/execution/?id={execution.pk}", "/live/executions/"
    async with connected(page, people.teammate) as own, connected(rows, people.teammate) as all_of_them:
        await own.message()
        assert execution.pk in await all_of_them.message()
        await sync_to_async(execution.project.members.remove)(people.teammate)
        await runtime.executions.refresh()
        assert "You no longer have access to this page" in await own.message_about("no longer have access")
        assert (f"row-{execution.pk}", "delete") in changed(await all_of_them.message())
