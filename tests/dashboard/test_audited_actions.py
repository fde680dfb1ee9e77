"""What people do leaves one entry each in the audit log, and what is refused or done already leaves none."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.overview_records import admin_facts
from dashboard.viewmodels.audit_log import audit_lines
from grid.launch.grants import digest
from grid.models import AppShare, AuditEntry, Execution, Session
from tests.conftest import People
from tests.dashboard.browsing import client_of
from tests.dashboard.executing import make_execution, make_project
from tests.dashboard.launching import ATTACHED, offer_clusters

ADDRESS = "203.0.113.9"
pytestmark = pytest.mark.usefixtures("runtime")


def entries(**about: Any) -> list[tuple[str, str, str, str]]:
    rows = AuditEntry.objects.filter(**about).order_by("pk")
    return list(rows.values_list("actor_name", "action", "object_type", "object_id"))


def attempt(name: str, password: str) -> int:
    client = Client(REMOTE_ADDR=ADDRESS)
    status: int = client.post("/login/", {"username": name, "password": password}).status_code
    return status


def test_logins_and_wrong_passwords_are_recorded_and_unknown_names_are_not_kept(people: People) -> None:
    assert attempt("alice", "wrong") == 200
    assert attempt("hunter2-typed-in-the-wrong-field", "x") == 200
    assert attempt("alice", "alice-password") == 302
    assert entries() == [
        ("", "login failed", "login", "alice"),
        ("", "login failed", "login", ""),
        ("alice", "logged in", "login", "alice"),
    ]
    assert not AuditEntry.objects.filter(object_name__contains="hunter2").exists()
    assert set(AuditEntry.objects.values_list("object_name", flat=True)) == {
        f"alice at {ADDRESS}",
        f"an unknown name at {ADDRESS}",
    }
    [failed, *_] = audit_lines(AuditEntry.objects.filter(action="login failed"), {}, {})
    assert failed.line.who == "not logged in"


def test_a_locked_login_adds_nothing_more(people: People) -> None:
    for _ in range(10):
        attempt("alice", "wrong")
    count = AuditEntry.objects.count()
    assert attempt("alice", "wrong") == 429
    assert AuditEntry.objects.count() == count == 10


def test_an_own_password_and_ended_sessions_are_recorded(people: People) -> None:
    def log_in() -> Client:
        client = Client()
        assert client.post("/login/", {"username": "alice", "password": "alice-password"}).status_code == 302
        return client

    client, _ = log_in(), log_in()
    other = Session.objects.filter(user=people.owner).order_by("created_at").last()
    assert other is not None
    assert client.post("/account/sessions/end-others/").status_code == 302
    client.post("/account/sessions/end-others/")
    client.post("/account/sessions/end/", {"session": other.pk})
    new = "a new and long password"
    form = {"old_password": "alice-password", "new_password1": new, "new_password2": new}
    assert client.post("/account/password/", form).status_code == 302
    changes = AuditEntry.objects.filter(object_type="user").order_by("pk").values_list("changes", flat=True)
    assert list(changes) == [{"sessions": ["1 open", "ended"]}, {"password": ["old", "changed"]}]


def test_a_launch_with_its_cluster_is_recorded_once_and_a_refused_one_is_not(people: People) -> None:
    offer_clusters(people)
    client = client_of(people.owner)
    assert client.post("/launch/", ATTACHED | {"tier": "no-such", "token": "t0"}).status_code == 422
    assert client.post("/launch/", ATTACHED).status_code == 302
    assert client.post("/launch/", ATTACHED).status_code == 302
    launched = Execution.objects.get(kind="workspace")
    assert entries() == [("alice", "launched", "execution", launched.pk)]
    assert AuditEntry.objects.get().at == launched.requested_at


def test_a_stop_is_recorded_for_who_asked_first(people: People) -> None:
    execution = make_execution(people.owner, make_project(people.owner), slots_reserved_at=timezone.now())
    for person in (people.operator, people.owner):
        assert client_of(person).post(f"/executions/{execution.pk}/stop/").status_code == 302
    assert entries() == [(people.operator.username, "stopped", "execution", execution.pk)]


@pytest.fixture
def app(people: People) -> Execution:
    project = make_project(people.owner, people.teammate)
    return make_execution(people.owner, project, kind="app", slots_reserved_at=timezone.now(), spec={"port": 8888})


def test_who_opens_what_is_somebody_elses_is_recorded(people: People, app: Execution) -> None:
    AppShare.objects.create(execution=app, user=people.teammate)
    path = f"/executions/{app.pk}/opening/?opener={digest('kept')}"
    for person in (people.owner, people.stranger, people.teammate):
        client_of(person).get(path)
    assert entries() == [("bob", "opened", "execution", app.pk)]


def test_sharing_an_app_is_recorded_when_it_changes(people: People, app: Execution) -> None:
    client = client_of(people.owner)
    for members in ([people.teammate.pk], [people.teammate.pk], []):
        assert client.post(f"/executions/{app.pk}/share/", {"members": members}).status_code == 302
    changes = AuditEntry.objects.order_by("pk").values_list("changes", flat=True)
    assert list(changes) == [{"shared with": [[], ["bob"]]}, {"shared with": [["bob"], []]}]


def test_the_overview_tells_of_changes_however_many_launches_follow(people: People) -> None:
    at = timezone.now()
    fields: dict[str, Any] = {"actor_name": "ada", "object_type": "project", "object_id": "x"}
    AuditEntry.objects.create(action="changed", at=at - timedelta(days=2), **fields)
    AuditEntry.objects.create(action="archived", at=at - timedelta(days=1), **fields)
    for _ in range(9):
        AuditEntry.objects.create(action="launched", at=at, **fields)
    assert [line.what for line in admin_facts(None, (), None).changes] == ["archived project", "changed project"]
