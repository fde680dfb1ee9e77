"""An operator writes to the owners of selected executions: each gets one notification that names the owner's own."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from grid.core.wording import one_line
from grid.models import AuditEntry, Execution, Notification, State
from grid.notifications.outbox import MESSAGE_LONGEST, message_sentence, send_message
from tests.conftest import People
from tests.executions.executing import make_execution, make_project
from tests.queue.test_at_once import at_once
from tests.shell.browsing import client_of
from tests.support.builders import MOMENT
from tests.support.database import database_on_file

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
PATH = "/executions/message/"
TEXT = "Save your work"


@pytest.fixture
def four(people: People) -> list[Execution]:
    """Two of the owner's, one of the team-mate's, and one that has ended."""
    project = make_project(people.owner, people.teammate)
    return [
        make_execution(people.owner, project, title="Explore"),
        make_execution(people.owner, project, title="Train", requested_at=MOMENT + timedelta(seconds=1)),
        make_execution(people.teammate, project, title="theirs <b>"),
        make_execution(people.teammate, project, title="ended-run", state=State.SUCCEEDED),
    ]


def notified() -> list[tuple[str, str, str]]:
    rows = Notification.objects.filter(event="message").order_by("user__username")
    return list(rows.values_list("user__username", "title", "sentence"))


def ids(executions: list[Execution]) -> list[str]:
    return [execution.pk for execution in executions]


def test_sentence_names_the_first_ten_executions() -> None:
    assert message_sentence("Save!", ["a"]) == "Save! This is about a."
    assert message_sentence("Save", list("abcdefghijkl")).endswith("about a, b, c, d, e, f, g, h, i, j and 2 more.")
    assert one_line(" Save\n\0it  now ") == "Save it now"


def test_owners_get_one_notification_and_audit_log_an_entry(people: People, four: list[Execution]) -> None:
    client = client_of(people.operator)
    page = client.get(PATH, {"id": ids(four)}).content.decode()
    assert "Write to the owners of 3 executions?" in page
    assert "It has already ended." in page
    assert "theirs &lt;b&gt;" in page
    for _ in range(2):
        assert client.post(PATH, {"id": ids(four), "reason": TEXT}).status_code == 302
    title = f"Message from {people.operator.username}"
    assert notified() == [
        (people.owner.username, title, "Save your work. This is about Explore and Train."),
        (people.teammate.username, title, "Save your work. This is about theirs <b>."),
    ], "a form that is sent twice is one message"
    entry = AuditEntry.objects.get(object_type="message")
    assert (entry.actor_name, entry.action, entry.object_name) == (people.operator.username, "sent", TEXT)
    assert sorted(entry.changes["executions"][1]) == sorted(ids(four[:3]))


@pytest.mark.parametrize("text", ["", " \n", "x" * (MESSAGE_LONGEST + 1)])
def test_empty_or_overlong_text_is_asked_for_again(people: People, four: list[Execution], text: str) -> None:
    answer = client_of(people.operator).post(PATH, {"id": ids(four), "reason": text})
    assert "Write a text of at most 300 characters." in answer.content.decode()
    assert notified() == []


def test_simultaneous_messages_are_one_for_ten_minutes(people: People, four: list[Execution], tmp_path: Path) -> None:
    def send(minutes: int = 0) -> Callable[[], int]:
        at = MOMENT + timedelta(minutes=minutes)
        return lambda: send_message(ids(four), TEXT, by=people.operator, now=at)

    with database_on_file(tmp_path / "grid.sqlite3"):
        at_once(send(), send(), send())
        assert len(notified()) == 2
        assert send(11)() == 2
