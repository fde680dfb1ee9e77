"""Questions before a secret, a role or a membership is taken: what they say is lost. Who may ask: tests/access."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from dashboard.accounts.viewmodel import PERMISSION_WORDS, ProjectWork, member_sentences, role_sentences
from dashboard.secrets.views import SecretUses, deletion_sentences
from dashboard.shell.access import PERMISSIONS, Role
from grid.models import (
    Environment,
    HardwareTier,
    Job,
    JobRun,
    Membership,
    Project,
    RunSettings,
    Schedule,
    State,
    StoredSecret,
    User,
)
from tests.conftest import People, client_of
from tests.executions.executing import make_environment, make_execution, make_project, make_tier
from tests.support.golden import assert_golden

GRACE = timedelta(minutes=10)


@pytest.fixture
def project(people: People) -> Project:
    return make_project(people.owner, people.teammate)


def asked(client: Client, address: str, **query: str) -> str:
    answer = client.get(address, query)
    assert answer.status_code == 200
    return answer.content.decode().split("<main")[1].split("</main>")[0]


def test_deleting_a_secret_names_what_uses_it(people: People, project: Project) -> None:
    secret = StoredSecret.objects.create(name="TEAM_KEY", project=project, ciphertext="x")
    spec = {"secrets": [{"id": secret.pk, "name": "TEAM_KEY"}]}
    make_execution(people.owner, project, title="Notebook", state=State.RUNNING, spec=spec)
    make_execution(people.teammate, project, title="Training", state=State.QUEUED, spec=spec)
    make_execution(people.teammate, project, title="Other", state=State.RUNNING)
    page = asked(client_of(people.owner), reverse("project-secret-delete", args=["churn", secret.pk]))
    assert "cannot be recovered" in page
    assert "1 active execution has it and keeps it until it ends: Notebook." in page
    assert "1 queued execution needs it and fails when it starts: Training." in page
    assert "Other" not in page
    assert StoredSecret.objects.exists(), "a question deletes nothing"


def test_pending_secret_recipients_are_named(people: People, project: Project) -> None:
    secret = StoredSecret.objects.create(name="TEAM_KEY", project=project, ciphertext="x")
    spec = {"secrets": [{"id": secret.pk, "name": "TEAM_KEY"}]}
    make_execution(people.owner, project, title="Admitted", state=State.DEPLOYING, spec=spec)
    make_execution(people.owner, project, title="Created", state=State.DEPLOYING, reason="created", spec=spec)
    waiting_sweep(people.teammate, project)
    waiting_sweep(people.stranger, Project.objects.start(id="other", name="Other", owner=people.stranger))
    page = asked(client_of(people.owner), reverse("project-secret-delete", args=["churn", secret.pk]))
    assert "1 active execution has it and keeps it until it ends: Created." in page
    assert "1 queued execution needs it and fails when it starts: Admitted." in page
    assert "2 waiting runs of jobs start without it." in page


def waiting_sweep(owner: User, project: Project) -> Job:
    """Return a job with four runs: one has an execution, one has ended, and two wait, one of them for its next attempt."""
    environment = Environment.objects.filter(pk="jupyterlab").first() or make_environment()
    tier = HardwareTier.objects.filter(pk="small").first() or make_tier()
    job = Job.objects.create(
        id=f"job-{owner.pk}", owner=owner, project=project, environment=environment, tier=tier, at_once=1
    )
    settings = RunSettings.objects.create(job=job, record={})
    first, _, third, last = (JobRun.objects.create(job=job, number=number, settings=settings) for number in range(1, 5))
    JobRun.objects.filter(pk=last.pk).update(outcome="stopped", ended_at=timezone.now())
    make_execution(owner, project, state=State.RUNNING, kind="job", run=first, attempt=1)
    make_execution(owner, project, state=State.FAILED, kind="job", run=third, attempt=1, settled_at=timezone.now())
    return job


def test_deletion_of_an_unused_secret_says_so() -> None:
    assert "No active or queued execution uses it." in deletion_sentences(SecretUses())
    many = deletion_sentences(SecretUses(running=("a", "b", "c", "d", "e"), schedules=2))
    assert "5 active executions have it and keep it until they end: a, b, c and 2 more." in many
    assert "2 active schedules start their runs without it." in many


def test_removing_a_member_says_what_stops(people: People, project: Project) -> None:
    make_execution(people.teammate, project, state=State.RUNNING)
    make_execution(people.teammate, project, state=State.QUEUED)
    make_execution(people.owner, project, state=State.RUNNING)
    client = client_of(people.owner)
    page = asked(client, reverse("project-member", args=["churn"]), username="bob", role="remove")
    assert "bob no longer sees the project" in page
    assert "1 active execution of theirs is stopped after" in page
    assert "1 execution in the queue is cancelled now." in page
    assert Membership.objects.filter(user=people.teammate).exists()
    client.post(reverse("project-member", args=["churn"]), {"username": "bob", "role": "remove", "confirmed": "on"})
    assert not Membership.objects.filter(user=people.teammate).exists()


def test_removing_a_member_counts_waiting_runs_and_schedules(people: People, project: Project) -> None:
    job = waiting_sweep(people.teammate, project)
    Schedule.objects.create(job=job, cron="0 1 * * *", time_zone="UTC", next_at=timezone.now())
    query = {"username": "bob", "role": "viewer"}
    page = asked(client_of(people.owner), reverse("project-member", args=["churn"]), **query)
    assert "1 active execution of theirs is stopped after" in page
    assert "2 waiting runs of their jobs are not launched." in page
    assert "1 schedule of their jobs is paused now." in page
    assert ProjectWork(waiting=1), "it is a loss to be asked about"


def test_admin_who_takes_contributors_out_is_asked_first(people: People, project: Project) -> None:
    make_execution(people.teammate, project, state=State.RUNNING)
    admin = client_of(people.admin)
    entries = {
        "name": project.name,
        "owner": people.owner.pk,
        "volume_size": "10Gi",
        "version": admin.get("/projects/churn/settings/").context["version"],
    }
    page = admin.post("/projects/churn/settings/", entries)
    assert "bob: 1 active execution of theirs is stopped after" in page.content.decode()
    assert project.people()["contributors"] == ["bob"]
    assert admin.post("/projects/churn/settings/", dict(page.context["question"].fields)).status_code == 302
    assert project.people()["contributors"] == []


def test_role_change_confirmation_says_what_is_lost(people: People) -> None:
    path = reverse("person-role", args=[people.operator.pk])
    page = asked(client_of(people.admin), path, role="auditor")
    assert "They can no longer stop and change everybody&#x27;s executions" in page
    assert "Keep operator" in page
    assert client_of(people.admin).get(path, {"role": "king"}).status_code == 400
    assert User.objects.get(pk=people.operator.pk).groups.filter(name="operators").exists()


CHANGES = ["contributor to nobody", "contributor to viewer", "viewer to nobody", "viewer to contributor"]


@pytest.mark.parametrize("sees_all", [True, False])
def test_sentences_of_a_membership(sees_all: bool) -> None:
    blocks = []
    for change in (*CHANGES, "nobody to viewer", "owner to viewer"):
        before, after = change.replace("nobody", "").split(" to ")
        work = ProjectWork()
        sentences = member_sentences("bob", before=before, after=after, work=work, grace=GRACE, sees_all=sees_all)
        blocks += [f"> {change}", *sentences]
    assert_golden(f"words-of-members-{'all' if sees_all else 'own'}", "\n".join(blocks), ending="txt")


def test_each_permission_has_words() -> None:
    assert {str(permission) for permission in PERMISSIONS[Role.ADMIN]} == set(PERMISSION_WORDS)
    up = role_sentences(PERMISSIONS[Role.PRACTITIONER], PERMISSIONS[Role.ADMIN])
    assert up[0].startswith("They can see the infrastructure") and "no longer" not in " ".join(up)
    assert role_sentences(PERMISSIONS[Role.AUDITOR], PERMISSIONS[Role.AUDITOR])[0] == "They have this role already."
