"""The page of the audit log: what its filter finds page by page, what it links to, and its file. Who reads it: tests/access."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.test import Client
from hypothesis import given, strategies as st

from dashboard.audit.viewmodel import AuditPosition, AuditView
from dashboard.audit.views import read_audit
from grid.audit.sealing import seal
from grid.models import AuditEntry, User
from tests.conftest import People, client_of
from tests.executions.executing import make_project

NOW = datetime(2026, 2, 2, 10, tzinfo=UTC)


def write(**about: Any) -> AuditEntry:
    fields: dict[str, Any] = {
        "actor_name": "ada",
        "action": "changed",
        "object_type": "hardwaretier",
        "object_id": "small",
        "object_name": "Small",
        "changes": {"cores": ["1", "2"]},
        "at": NOW,
    }
    return AuditEntry.objects.create(**fields | about)


@pytest.fixture
def auditor(people: People) -> Client:
    people.stranger.groups.set([Group.objects.get_or_create(name="auditors")[0]])
    return client_of(people.stranger)


def test_entry_is_shown_in_words_of_object_history(admin: Client) -> None:
    write(actor_name="<b>eve", object_name="")
    write(object_type="environment", object_id="py", object_name="Python", action="created")
    page = admin.get("/audit-log/").content.decode()
    assert "&lt;b&gt;eve" in page and "<b>eve" not in page
    assert "Cores" in page and "1 → <strong>2</strong>" in page
    assert "everything new" in page
    assert "2 entries are not sealed yet" in page
    seal(NOW)
    assert "All entries are sealed." in admin.get("/audit-log/").content.decode()


def test_object_is_linked_where_it_exists_and_is_accessible(admin: Client, auditor: Client, people: People) -> None:
    project = make_project(people.owner)
    for id in (project.pk, "gone"):
        write(object_type="project", object_id=id, object_name=f"Project {id}")
    write(object_type="user", object_id=str(people.owner.pk), object_name="alice")
    write(object_type="user", object_id="nobody", object_name="nobody")
    write(object_type="setting", object_id="x", object_name="Setting x")
    pages = {client: client.get("/audit-log/").content.decode() for client in (admin, auditor)}
    for page in pages.values():
        assert f'href="/projects/{project.pk}/"' in page and "/projects/gone/" not in page
    assert f'href="/people/{people.owner.pk}/"' in pages[admin] and "/people/" not in pages[auditor]


def test_values_of_environment_variables_are_never_shown(admin: Client) -> None:
    before, after = (
        {"OLD": "hush1", "KEPT": "same", "TOKEN": "hush2"},
        {"KEPT": "same", "TOKEN": "hush3", "NEW": "hush4"},
    )
    write(object_type="environment", changes={"image": ["a", "b"], "variables": [before, after]})
    page = admin.get("/audit-log/").content.decode()
    file = b"".join(_streamed(admin.get("/audit-log/export/"))).decode()
    for text in (page, file):
        assert "hush" not in text and "TOKEN (new value)" in text and "NEW" in text and "OLD" in text
        assert "KEPT" not in text


@pytest.fixture
def many(db: None) -> list[AuditEntry]:
    """Newest first; several at the same moment, and ids that do not follow the time."""
    rows = [
        write(
            at=NOW + timedelta(hours=number // 3 * (7 if number % 2 else 5)),
            actor_name=("ada", "bob")[number % 2],
            action=("changed", "archived", "created")[number % 3],
            object_type=("project", "user")[number // 3 % 2],
            object_id=f"object-{number}",
            object_name=f"Name {number % 5}",
        )
        for number in range(40)
    ]
    return sorted(rows, key=lambda row: (row.at, row.pk), reverse=True)


def walked(view: AuditView, **bounds: int) -> Iterator[AuditEntry]:
    for _ in range(200):
        page = read_audit(view, **bounds)
        yield from page.rows
        if page.older is None:
            return
        again = AuditPosition.parse(str(page.older))
        assert again == page.older
        view = replace(view, before=again)
    raise AssertionError("it never ends")


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"who": "ada"},
        {"kind": "user", "action": "archived"},
        {"who": "bob", "kind": "project", "text": "name 3"},
        {"text": "OBJECT-1"},
        {"since": "2026-02-03", "until": "2026-02-04"},
        {"who": "nobody"},
        {"until": "9999-12-31", "since": "0001-01-01", "text": "%"},
    ],
)
def test_page_after_page_has_each_match_once_in_order(many: list[AuditEntry], query: dict[str, str]) -> None:
    view = AuditView.parse(query)

    def is_match(row: AuditEntry) -> bool:
        return (
            view.who in ("", row.actor_name)
            and view.kind in ("", row.object_type)
            and view.action in ("", row.action)
            and (view.text.lower() in row.object_id or view.text.lower() in row.object_name.lower())
            and (view.since is None or row.at.date() >= view.since)
            and (view.until is None or row.at.date() <= view.until)
        )

    expected = [row.pk for row in many if is_match(row)]
    for bounds in ({"at_most": 3, "searched": 7}, {"at_most": 1, "searched": 1}, {"at_most": 100, "searched": 100}):
        assert [row.pk for row in walked(view, **bounds)] == expected


@given(st.dictionaries(st.sampled_from(["who", "kind", "action", "text", "since", "until", "before"]), st.text()))
def test_any_address_is_a_view_that_has_an_address(query: dict[str, str]) -> None:
    view = AuditView.parse(query)
    assert len(view.chips({})) == view.query.count("=")
    assert AuditView.parse({"before": "0001-01-01T00:00:00+14:00~1"}).before is None
    assert "\0" not in view.who + view.text


def _streamed(answer: Any) -> list[bytes]:
    async def read() -> list[bytes]:
        return [chunk async for chunk in answer.streaming_content]

    return async_to_sync(read)()


def test_the_file_has_all_matches_and_no_formula(admin: Client, many: list[AuditEntry], monkeypatch: Any) -> None:
    monkeypatch.setattr("dashboard.audit.views._EXPORTED_AT_ONCE", 7)
    write(actor_name="=cmd()", object_name="@SUM(1)", changes={"name": ["-1", "+1"]}, at=NOW + timedelta(days=90))
    seal(NOW)
    answer = admin.get("/audit-log/export/", {"before": "2000-01-01T00:00:00+00:00~1"})
    assert answer["Content-Type"].startswith("text/csv")
    chunks = _streamed(answer)
    assert len(chunks) > 5, "it is sent in parts"
    own, *rows = csv.DictReader(io.StringIO(b"".join(chunks).decode()))
    assert (own["who"], own["action"], own["number"]) == ("ada-admin", "Downloaded", ""), (
        "the export is the latest entry"
    )
    assert [row["object_id"] for row in rows[1:]] == [row.object_id for row in many]
    assert (rows[0]["who"], rows[0]["object"]) == ("'=cmd()", "'@SUM(1)")
    assert all(not value.startswith(("=", "+", "-", "@")) for row in [own, *rows] for value in row.values())
    assert rows[0]["number"] == "41" and len(rows[0]["hash"]) == 64
    few = admin.get("/audit-log/export/", {"who": "bob", "action": "archived"})
    assert len(b"".join(_streamed(few)).splitlines()) == 1 + sum(
        row.actor_name == "bob" and row.action == "archived" for row in many
    )


def test_the_entry_of_a_deleted_account_stays(admin: Client, people: People) -> None:
    write(actor=people.teammate, actor_name=people.teammate.username)
    seal(NOW)
    User.objects.filter(pk=people.teammate.pk).delete()
    assert people.teammate.username in admin.get("/audit-log/").content.decode()
