"""What people do leaves one entry each in the audit log, and what is refused or done already leaves none."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.audit.viewmodel import audit_rows
from grid.executions.launchrequest import LaunchRequest
from grid.executions.request import submit
from grid.models import AppShare, AuditEntry, Execution, Job, Session, User
from grid.queue.launches import why_not_launch
from grid.sharing.grants import digest
from tests.conftest import People, client_of
from tests.executions.executing import (
    ATTACHED,
    make_environment,
    make_execution,
    make_project,
    make_tier,
    offer_clusters,
)

ADDRESS = "203.0.113.9"
pytestmark = pytest.mark.usefixtures("runtime")


def entries(**about: Any) -> list[tuple[str, str, str, str]]:
    rows = AuditEntry.objects.filter(**about).order_by("pk")
    return list(rows.values_list("actor_name", "action", "object_type", "object_id"))


def attempt(name: str, password: str) -> int:
    client = Client(REMOTE_ADDR=ADDRESS)
    status: int = client.post("/login/", {"username": name, "password": password}).status_code
    return status


def test_logins_are_audited_without_unknown_names(people: People) -> None:
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
    assert ",not logged in,Login failed," in audit_rows(AuditEntry.objects.filter(action="login failed"), {})


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


def test_launch_with_cluster_is_audited_once_and_refusal_not(people: People) -> None:
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


def test_opening_app_of_somebody_else_is_audited(people: People, app: Execution) -> None:
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


def changes_of(**about: Any) -> list[dict[str, Any]]:
    return list(AuditEntry.objects.filter(**about).order_by("pk").values_list("changes", flat=True))


def test_a_logout_is_recorded_on_both_sites(people: People, admin: Client) -> None:
    client_of(people.owner).post("/logout/")
    admin.post("/admin/logout/")
    Client().post("/logout/")
    assert [(name, action) for name, action, _, _ in entries()] == [
        ("alice", "logged out"),
        ("ada-admin", "logged out"),
    ]


def submitted_job(people: People) -> Job:
    project, environment = make_project(people.owner), make_environment("script", name="Script", kind="job", port=None)
    tier = make_tier("small")
    launch = LaunchRequest(owner=people.owner, project=project, environment=environment, tier=tier, kind="job")
    submit(launch, gate=why_not_launch, now=timezone.now())
    return Job.objects.get()


def test_job_setting_changes_are_audited_without_variable_values(people: People) -> None:
    job, client = submitted_job(people), client_of(people.owner)
    fields = {
        "environment": "script",
        "tier": "small",
        "title": "Train",
        "variables": "TOKEN=hush",
        "retry_wait": "30s",
    }
    for command in ("first", "first", "second"):
        assert client.post(f"/jobs/{job.pk}/edit/", fields | {"command": command}).status_code == 302
    first, second = changes_of(object_type="job")
    assert first["command"] == ["", "first"] and first["title"] == ["", "Train"]
    assert first["variables by name"] == [[], ["TOKEN"]]
    assert second == {"command": ["first", "second"]}
    assert "hush" not in str(changes_of())
    typed = {"cron": "30 6 * * 1-5", "time_zone": "Europe/Berlin", "overlap": "queue", "missed": "none"}
    AuditEntry.objects.all().delete()
    client.post(f"/jobs/{job.pk}/schedules/new/", typed)
    schedule = job.schedules.get()
    own = f"/jobs/{job.pk}/schedules/{schedule.pk}"
    for path, sent in (
        ("", typed),
        ("", typed | {"cron": "0 7 * * *"}),
        ("pause/", {}),
        ("pause/", {}),
        ("delete/", {}),
    ):
        assert client.post(f"{own}/{path}", sent).status_code == 302
    old, new = (f"{cron} Europe/Berlin (overlap: queue, missed: none)" for cron in ("30 6 * * 1-5", "0 7 * * *"))
    schedules = [change["schedule"] for change in changes_of(object_type="job")]
    assert schedules == [["", old], [old, new], [new, f"{new}, paused"], [new, ""]]


def test_runs_of_jobs_and_their_stops_are_recorded(people: People) -> None:
    job, client = submitted_job(people), client_of(people.owner)
    machine = {"environment": "script", "tier": "small"}
    own = f"/jobs/{job.pk}"
    for path, fields in (
        (f"{own}/run/", {**machine, "command": "second"}),
        (f"{own}/again/1/", {}),
        (f"{own}/sweep/", {"table": "SEED\n1\n2"}),
        (f"{own}/stop/?number=5", {}),
        ("/executions/stop/", {"id": Execution.objects.filter(run__number=2).values_list("pk", flat=True)}),
        ("/queue/cancel/", {"id": Execution.objects.filter(run__number=1).values_list("pk", flat=True)}),
        ("/jobs/stop/", {"id": [job.pk]}),
    ):
        assert client.post(path, fields).status_code == 302, path
    assert [(action, kind) for _, action, kind, _ in entries()] == [
        *[("launched", "job")] * 3,
        ("stopped", "job"),
        *[("stopped", "execution")] * 2,
        ("stopped", "job"),
    ]


def test_changes_in_django_admin_are_audited_without_passwords(people: People, admin: Client) -> None:
    password = "a new and long password"
    new = {"username": "eve", "usable_password": "true", "password1": password, "password2": password}
    assert admin.post("/admin/grid/user/add/", new).status_code == 302
    eve = User.objects.get(username="eve")
    own = f"/admin/grid/user/{eve.pk}"
    assert admin.post(f"{own}/password/", new).status_code == 302
    joined = {"date_joined_0": "2026-03-04", "date_joined_1": "09:00:00"}
    assert (
        admin.post(f"{own}/change/", {"username": "eve", "is_active": "on", "is_staff": "on", **joined}).status_code
        == 302
    )
    assert admin.post("/admin/auth/group/add/", {"name": "readers"}).status_code == 302
    assert admin.post(f"{own}/delete/", {"post": "yes"}).status_code == 302
    written = [(action, kind) for _, action, kind, _ in entries()]
    assert written == [
        ("created", "user"),
        ("changed", "user"),
        ("changed", "user"),
        ("created", "group"),
        ("deleted", "user"),
    ]
    created, changed, staff, *_ = changes_of()
    assert changed == {"password": ["old", "changed"]} and staff["is_staff"] == [False, True]
    assert created["username"] == ["", "eve"] or created["username"][1] == "eve"
    assert password not in str(changes_of())
