"""Holding, releasing and cancelling several executions of the queue: who may, what the question says, what is recorded.

Who gets which answer is told by `tests/access/answers.txt`.
"""

import pytest

from grid.models import AuditEntry, Execution, QueueOrder, State, User
from grid.runtime import Runtime
from tests.clusters.clustering import make_cluster
from tests.conftest import People, client_of
from tests.executions.executing import make_execution, make_project, read_executions

pytestmark = pytest.mark.django_db(transaction=True)
HOLD, RELEASE, CANCEL = "/queue/hold/", "/queue/release/", "/queue/cancel/"
Waiting = dict[str, str]


@pytest.fixture
def waiting(people: People, runtime: Runtime) -> Waiting:
    """Ids by title: three that wait, of three people, of whom the owner and the team-mate share a project; and one that runs."""
    shared = make_project(people.admin, people.owner, people.teammate)
    made = [
        make_execution(people.owner, shared, state=State.QUEUED, title="mine <b>"),
        make_execution(people.teammate, shared, state=State.QUEUED, title="team-mate's"),
        make_execution(people.stranger, make_project(people.stranger, id="other"), state=State.QUEUED, title="far"),
        make_execution(people.owner, shared, state=State.RUNNING, title="runs"),
    ]
    read_executions(runtime)
    return {each.title: each.pk for each in made}


def ask(user: User, path: str, waiting: Waiting) -> str:
    return client_of(user).get(path, {"id": list(waiting.values())}).text


def do(user: User, path: str, waiting: Waiting, **fields: str) -> str:
    answer = client_of(user).post(path, {"id": list(waiting.values()), **fields}, follow=True)
    assert answer.redirect_chain == [("/queue/", 302)]
    return answer.text


def held() -> set[str]:
    return set(QueueOrder.objects.filter(held_at__isnull=False).values_list("execution__title", flat=True))


def ended() -> set[str]:
    return set(Execution.objects.filter(state=State.STOPPED).values_list("title", flat=True))


def test_operator_holds_several_with_a_recorded_reason(people: People, waiting: Waiting) -> None:
    page = ask(people.operator, HOLD, waiting)
    assert "Hold 3 executions?" in page
    assert "mine &lt;b&gt;" in page
    assert "They do not start until an operator releases them, and others go ahead of them." in page
    assert "It no longer waits." in page and "Reason, which each owner reads" in page
    assert held() == set()
    answer = do(people.operator, HOLD, waiting, reason="The licence server is down")
    assert "3 executions held. 1 was left alone" in answer
    assert held() == {"mine <b>", "team-mate's", "far"}
    assert set(QueueOrder.objects.values_list("held_reason", flat=True)) == {"The licence server is down"}
    entries = AuditEntry.objects.filter(object_type="execution", actor=people.operator)
    assert set(entries.values_list("object_id", flat=True)) == {id for title, id in waiting.items() if title != "runs"}


def test_held_executions_are_released_together_and_others_named(people: People, waiting: Waiting) -> None:
    chosen = {"far": waiting["far"]}
    do(people.operator, HOLD, chosen, reason="r")
    again = ask(people.operator, HOLD, waiting)
    assert "Hold 2 executions?" in again and "It is held already." in again
    page = ask(people.operator, RELEASE, waiting)
    assert "Release 1 execution?" in page and page.count("Nobody holds it.") == 2
    assert "1 execution released. 3 were left alone" in do(people.operator, RELEASE, waiting)
    assert held() == set()


def test_people_cancel_only_their_own_executions(people: People, waiting: Waiting) -> None:
    page = ask(people.owner, CANCEL, waiting)
    assert "Cancel 1 execution?" in page
    assert "They leave the queue and do not start." in page
    assert "team-mate" in page and "Only its owner, the project" in page
    assert "far" not in page.split("<main")[1].split("</main>")[0]
    assert "1 execution cancelled. 2 were left alone" in do(people.owner, CANCEL, waiting)
    assert ended() == {"mine <b>"}
    assert Execution.objects.get(pk=waiting["runs"]).stop_requested_at is None


def test_cluster_that_waits_with_its_workspace_ends_with_it(people: People, runtime: Runtime) -> None:
    project = make_project(people.owner)
    workspace = make_execution(people.owner, project, title="notebook", state=State.QUEUED)
    cluster = make_cluster(people.owner, project, title="workers", state=State.QUEUED)
    Execution.objects.filter(pk=cluster.pk).update(attached_to=workspace.pk)
    chosen = {"notebook": workspace.pk}
    assert "Its cluster workers ends too." in ask(people.owner, CANCEL, chosen)
    assert "Its cluster workers ends too." not in ask(people.operator, HOLD, chosen)
    do(people.owner, CANCEL, chosen)
    assert ended() == {"notebook", "workers"}


@pytest.mark.parametrize("path", [HOLD, RELEASE, CANCEL])
@pytest.mark.parametrize("ids", [[], ["\x00", "' OR 1=1 --", "x" * 5000, "0000000000"]])
def test_ids_that_are_none_are_no_error(path: str, ids: list[str], people: People, waiting: Waiting) -> None:
    client = client_of(people.admin)
    assert "Select executions in the list first." in client.get(path, {"id": ids}).text
    assert client.post(path, {"id": ids}).status_code == 302
    assert held() == ended() == set()


def test_the_bar_has_what_one_may_do(people: People, waiting: Waiting) -> None:
    own, every = (client_of(user).get("/queue/").text for user in (people.owner, people.operator))
    assert "Cancel executions" in own and HOLD not in own
    assert CANCEL in every and HOLD in every and RELEASE in every
    for id in (waiting["mine <b>"], waiting["far"]):
        assert f'form="selected" name="id" value="{id}"' in every
    assert waiting["far"] not in own
