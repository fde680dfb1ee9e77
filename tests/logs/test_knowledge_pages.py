"""The knowledge base's pages: what admins may write into it, what observers read, and that a change is in force at once."""

from datetime import timedelta

import pytest
from django.test import Client

from grid.diagnosis import logfindings
from grid.logs import knowledge
from grid.models import AuditEntry, Execution, ExecutionLog, KnowledgeEntry, LogOccurrence, State, User
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import make_execution, make_project

LICENCE = {
    "id": "licence",
    "pattern": r"LIC-(\d+)",
    "meaning": "The licences of product {} are in use.",
    "cure": "Wait for one.",
    "link": "https://wiki.example/licences",
}
pytestmark = pytest.mark.usefixtures("runtime")


@pytest.fixture
def as_admin(client: Client, people: People) -> Client:
    client.force_login(people.admin)
    return client


def text_of(client: Client, path: str) -> str:
    return client.get(path).content.decode()


def occurrence(
    runtime: Runtime, owner: User, *, days: float = 0, entry: str = "licence", title: str = "Train"
) -> Execution:
    """A failed execution in whose log the entry was found so many days ago."""
    project = make_project(owner, id=f"p{LogOccurrence.objects.count()}")
    execution = make_execution(owner, project, state=State.FAILED, title=title)
    at = runtime.clock() - timedelta(days=days)
    log = ExecutionLog.objects.create(execution=execution, text="LIC-17", at=at)
    LogOccurrence.objects.create(
        log=log, entry=entry, meaning="The licences of product 17 are in use.", line="LIC-17", at=at
    )
    return execution


def test_saved_entry_is_in_force_at_once_and_audited(as_admin: Client, people: People) -> None:
    answer = as_admin.post("/knowledge/new/", LICENCE, follow=True)
    assert answer.redirect_chain[-1][0] == "/knowledge/"
    assert "The licences of product … are in use." in answer.content.decode()
    [known] = logfindings.findings("LIC-17")
    assert (known.meaning, known.link) == ("The licences of product 17 are in use.", LICENCE["link"])
    entry = AuditEntry.objects.get(object_type="knowledgeentry")
    assert (entry.actor, entry.action, entry.changes["pattern"]) == (
        people.admin,
        "created",
        [None, LICENCE["pattern"]],
    )


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"pattern": "("}, "no regular expression"),
        ({"pattern": ".*"}, "matches every line"),
        ({"pattern": r"(\w)\1"}, "no regular expression"),
        ({"pattern": "LIC"}, "put a part of it in parentheses"),
        ({"link": "javascript:alert(1)"}, "begins with https://"),
        ({"link": "//evil.example"}, "begins with https://"),
        ({"id": "grid.refused"}, "lower-case letters"),
        ({"meaning": ""}, "required"),
    ],
)
def test_unusable_entry_is_refused_with_the_reason(as_admin: Client, changed: dict[str, str], sentence: str) -> None:
    answer = as_admin.post("/knowledge/new/", LICENCE | changed)
    assert answer.status_code == 400
    assert sentence in answer.content.decode()
    assert not KnowledgeEntry.objects.exists()


def test_built_in_entry_is_switchable_but_not_editable(as_admin: Client) -> None:
    line = "Connection refused"
    assert as_admin.get("/knowledge/grid.refused/").headers["Location"] == "/knowledge/grid.refused/found/"
    answer = as_admin.post("/knowledge/grid.refused/archive/", follow=True)
    assert "A service refused the connection. is archived: no log is searched for it." in answer.content.decode()
    assert logfindings.findings(line) == []
    assert "This entry is off" in text_of(as_admin, "/knowledge/grid.refused/found/")
    as_admin.post("/knowledge/grid.refused/archive/", follow=True)
    assert [known.key for known in logfindings.findings(line)] == ["grid.refused"]
    actions = AuditEntry.objects.filter(object_id="grid.refused").values_list("action", flat=True)
    assert sorted(actions) == ["archived", "restored"]
    assert as_admin.post("/knowledge/grid.nothing/archive/").status_code == 404


def test_pasted_log_shows_matching_entries_and_changes_nothing(client: Client, people: People) -> None:
    client.force_login(people.operator)
    KnowledgeEntry.objects.create(**LICENCE)
    page = client.post("/knowledge/", {"log": "<b>LIC-17</b>\nMemoryError\n"}).content.decode()
    assert "2 entries match, the last line first" in page
    assert page.index("It ran out of memory.</strong>") < page.index("The licences of product 17 are in use.</strong>")
    assert "&lt;b&gt;LIC-17&lt;/b&gt;" in page
    assert 'href="https://wiki.example/licences"' in page
    assert "No entry matches." in client.post("/knowledge/", {"log": "all is well"}).content.decode()
    assert not LogOccurrence.objects.exists()


@pytest.fixture
def failed(client: Client, people: People, runtime: Runtime) -> Execution:
    """Its message has the first of two findings; the second was found further up. Its owner has logged in."""
    execution = occurrence(runtime, people.owner)
    client.force_login(people.owner)
    Execution.objects.filter(pk=execution.pk).update(
        kind="job", message="It ended: exit code 1. The licences of product 17 are in use. Wait for one."
    )
    log = ExecutionLog.objects.get(pk=execution.pk)
    ExecutionLog.objects.filter(pk=execution.pk).update(text="Connection refused\nepoch\nLIC-17\nbye\n")
    refused = "A service refused the connection."
    LogOccurrence.objects.create(log=log, entry="grid.refused", meaning=refused, line="Connection refused", at=log.at)
    KnowledgeEntry.objects.create(**LICENCE)
    knowledge.refresh()
    return execution


def test_failed_execution_page_shows_findings_once(client: Client, failed: Execution) -> None:
    head = text_of(client, f"/executions/{failed.pk}/").split('id="head"')[1].split('id="actions"')[0]
    assert head.count("The licences of product 17 are in use. Wait for one.") == 1
    assert "A service refused the connection. Check its address" in head
    assert head.index(">LIC-17<") < head.index(">Connection refused<")
    assert 'href="https://wiki.example/licences"' in head
    assert 'href="?tab=log#finding"' in head


def test_log_marks_known_lines_and_links_the_last(client: Client, failed: Execution) -> None:
    page = text_of(client, f"/executions/{failed.pk}/?tab=log")
    assert page.count("log-known") == 2
    assert page.count('id="finding"') == 1
    assert "LIC-17" in page.split('id="finding"')[1]
    assert "Found: The licences of product 17 are in use." in page
    rows = text_of(client, f"/executions/{failed.pk}/log/?part=rows&before=~~1")
    assert "log-known" in rows
    assert 'id="finding"' not in rows, "a page of lines that is added to another has no second target"


def test_download_has_findings_and_former_members_get_none(client: Client, failed: Execution) -> None:
    path = f"/executions/{failed.pk}/lifecycle/"
    assert "# Found in its log: A service refused the connection. Check its address" in text_of(client, path)
    failed.project.memberships.all().delete()
    assert "Found in its log" not in text_of(client, path)
    page = text_of(client, f"/executions/{failed.pk}/")
    assert "Connection refused" not in page
