"""What admins edit: environments, projects, settings. Every error at its field. Who may: tests/access."""

from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from dashboard.administration.viewmodel import FieldChange, history_line
from dashboard.administration.views import _save, _version
from dashboard.projects.forms import ProjectForm
from dashboard.tiers.viewmodels.tiers import pool_words, tier_words
from dashboard.usage.viewmodels.usage import price_words
from grid.diagnosis.nodeshapes import PoolShapes, ShapeTally
from grid.kube.objects import Metadata, Node, NodeStatus
from grid.models import AuditEntry, Environment, HardwareTier, Project, User
from grid.secrets import storedsecrets
from tests.administration.administering import CLUSTER_ENVIRONMENT
from tests.conftest import People
from tests.executions.executing import make_project

pytestmark = pytest.mark.usefixtures("two_pools")


def make_new(admin: Client, owner: User, **fields: Any) -> Any:
    """Post the form of a new project."""
    entries = {"id": "churn", "name": "Churn", "owner": owner.pk, "volume_size": "10Gi"}
    return admin.post("/projects/new/", entries | fields)


def edit(admin: Client, project: Project, owner: User, **fields: Any) -> None:
    """Post the form of a project's page that was opened a moment ago; roles that are not named are empty."""
    version = admin.get("/projects/churn/settings/").context["version"]
    entries = {"name": project.name, "owner": owner.pk, "volume_size": "10Gi", "version": version}
    assert admin.post("/projects/churn/settings/", entries | fields).status_code == 302


def take_back(admin: Client, entry: AuditEntry) -> str:
    return admin.post(f"/projects/churn/take-back/{entry.pk}/", follow=True).content.decode()


def test_an_environment_keeps_its_command_line_by_line(admin: Client) -> None:
    entries = {
        "id": "lab",
        "name": "Lab",
        "kind": "workspace",
        "image": "lab:1",
        "port": "8888",
        "command": "jupyter\nlab\n--port={port}",
        "variables": "MODE=fast\nEMPTY=",
        "image_pull_secret": "our-registry",
        "allows_service_workers": "on",
        "start_path": "/lab?reset",
        "readiness_path": "/api",
    }
    assert admin.post("/environments/new/", entries).status_code == 302
    saved = Environment.objects.get()
    assert saved.command == ["jupyter", "lab", "--port={port}"]
    assert saved.variables == {"MODE": "fast", "EMPTY": ""}
    assert (saved.image_pull_secret, saved.allows_service_workers) == ("our-registry", True)
    assert (saved.start_path, saved.readiness_path) == ("/lab?reset", "/api")
    assert "--port={port}" in admin.get("/environments/lab/").content.decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("port", ""), ("port", "80"), ("port", "70000"), ("kind", "vm"), ("image", "")),
        *(("variables", "2X=1"), ("variables", "A.B=1"), ("image_pull_secret", "Our secret")),
        *(("start_path", "lab"), ("start_path", "https://evil.test/"), ("readiness_path", "//evil.test/")),
        *(("start_path", "/\\evil.test"), ("start_path", "/a b"), ("start_path", "/é"), ("start_path", "/../w/other/")),
        *(("readiness_path", "/a/.."), ("readiness_path", "/" + 200 * "x")),
    ],
)
def test_wrong_environment_entry_is_reported_at_its_field(admin: Client, field: str, value: str) -> None:
    entries = {"id": "lab", "name": "Lab", "kind": "workspace", "image": "lab:1", "port": "8888", field: value}
    assert field in admin.post("/environments/new/", entries).context["form"].errors


def test_environment_without_browser_access_has_no_paths(admin: Client) -> None:
    entries = {"id": "x", "name": "X", "kind": "job", "image": "x:1", "start_path": "/lab", "readiness_path": "/api"}
    errors = admin.post("/environments/new/", entries).context["form"].errors
    assert {"start_path", "readiness_path"} <= errors.keys()


def test_cluster_environment_needs_frameworks_but_no_port_or_command(admin: Client) -> None:
    entries = {**CLUSTER_ENVIRONMENT, "frameworks": "Dask 2026.8.0\n ray==2.60.0 \n"}
    assert admin.post("/environments/new/", entries).status_code == 302
    assert Environment.objects.get().frameworks == {"dask": "2026.8.0", "ray": "2.60.0"}
    shown = admin.get("/environments/").content.decode()
    assert "Dask 2026.8.0" in shown
    assert "Ray 2.60.0" in shown
    shown = admin.get("/environments/dask/").content.decode()
    assert "dask 2026.8.0\nray 2.60.0</textarea>" in shown


def test_an_environment_is_saved_unchanged_with_its_frameworks(admin: Client) -> None:
    Environment.objects.create(**CLUSTER_ENVIRONMENT, frameworks={"spark": "4.3.0"})
    page = admin.get("/environments/dask/")
    form = page.context["form"]
    entries = {name: form[name].value() or "" for name in form.fields}
    assert admin.post("/environments/dask/", {**entries, "version": page.context["version"]}).status_code == 302
    assert not AuditEntry.objects.exists()
    admin.post("/environments/dask/", {**entries, "frameworks": "spark 4.4.0", "version": page.context["version"]})
    assert AuditEntry.objects.get().changes == {"frameworks": [{"spark": "4.3.0"}, {"spark": "4.4.0"}]}


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("", "Say which frameworks a cluster of this environment can have."),
        ("dusk 1.0", "“dusk” is not a framework; there are dask, ray, spark."),
        ("dask", "“dask” does not name one version; write for example dask 2026.8.0."),
        ("dask <b>", "does not name one version"),
        ("dask 1.0\ndask 2.0", "“dask” is given twice."),
    ],
)
def test_wrong_frameworks_are_said_at_their_field(admin: Client, typed: str, sentence: str) -> None:
    answer = admin.post("/environments/new/", {**CLUSTER_ENVIRONMENT, "frameworks": typed})
    assert answer.status_code == 400
    assert sentence in " ".join(answer.context["form"].errors["frameworks"])
    assert not Environment.objects.exists()


def test_a_project_has_members(admin: Client, people: People) -> None:
    answer = make_new(admin, people.owner, name="<script>alert(1)</script>", contributors=[people.teammate.pk])
    assert answer.status_code == 302
    assert Project.objects.get().people() == {"owner": "alice", "contributors": ["bob"], "viewers": []}
    page = admin.get("/projects/").content.decode()
    assert "<script>alert" not in page


def test_projects_with_more_members_than_query_parameters_are_listed(admin: Client, people: People) -> None:
    members = User.objects.bulk_create(User(username=f"user-{number}") for number in range(1001))
    make_project(people.owner, *members)
    assert "user-1000" in admin.get("/projects/").content.decode()


def test_change_of_roles_is_recorded_and_undone(admin: Client, people: People) -> None:
    project = make_project(people.owner, people.teammate)
    edit(admin, project, people.teammate, contributors=[people.stranger.pk], viewers=[people.owner.pk])
    assert project.people() == {"owner": "bob", "contributors": ["charlie"], "viewers": ["alice"]}
    entry = AuditEntry.objects.get()
    assert entry.changes == {
        "owner": ["alice", "bob"],
        "contributors": [["bob"], ["charlie"]],
        "viewers": [[], ["alice"]],
    }
    assert "is undone" in take_back(admin, entry)
    assert project.people() == {"owner": "alice", "contributors": ["bob"], "viewers": []}


def test_secret_change_is_shown_and_cannot_be_undone(admin: Client, people: People) -> None:
    given: dict[str, Any] = {"owner": None, "project": make_project(people.owner), "is_file": False, "value": "s3cret"}
    storedsecrets.put(by=people.owner, name="DB_PASSWORD", now=timezone.now(), **given)
    entry = AuditEntry.objects.get()
    page = admin.get("/projects/churn/settings/").content.decode()
    assert "DB_PASSWORD" in page and f"/projects/churn/take-back/{entry.pk}/" not in page
    assert "This cannot be undone: the history does not keep what was there." in take_back(admin, entry)
    assert AuditEntry.objects.count() == 1


def test_undoing_role_changes_keeps_roles_given_since(admin: Client, people: People) -> None:
    project = make_project(people.owner)
    for contributors in ([people.teammate.pk], [people.teammate.pk, people.stranger.pk]):
        edit(admin, project, people.owner, contributors=contributors)
    assert "is undone" in take_back(admin, AuditEntry.objects.order_by("pk")[0])
    assert project.people()["contributors"] == ["charlie"]


@pytest.mark.parametrize(("removed_from", "now"), [("contributors", "viewers"), ("viewers", "contributors")])
def test_undoing_a_removal_keeps_a_role_given_since(admin: Client, people: People, removed_from: str, now: str) -> None:
    project = make_project(people.owner)
    for chosen in ({removed_from: [people.teammate.pk]}, {}, {now: [people.teammate.pk]}):
        edit(admin, project, people.owner, **chosen)
    removal = AuditEntry.objects.order_by("pk")[1]
    assert "the people of the project have changed since" in take_back(admin, removal)
    assert project.people()[now] == ["bob"]


def test_undoing_gives_no_role_to_a_namesake_account(admin: Client, people: People) -> None:
    project = make_project(people.owner, people.teammate)
    edit(admin, project, people.owner)
    User.objects.filter(pk=people.teammate.pk).update(username="robert")
    User.objects.create(username="bob")
    assert "the account bob no longer exists" in take_back(admin, AuditEntry.objects.get())
    assert project.people()["contributors"] == []


def test_second_project_of_the_same_id_overwrites_nothing(people: People) -> None:
    entries = {"id": "churn", "name": "Second", "owner": people.stranger.pk, "volume_size": "10Gi"}
    second = ProjectForm(entries)
    assert second.is_valid()
    first = make_project(people.owner)
    assert _save(second, people.admin, version="") is None
    with (
        pytest.raises(IntegrityError),
        transaction.atomic(),
    ):  # where the lock finds nothing, because nothing is stored yet
        second.save()
    first.refresh_from_db()
    assert (first.name, first.people()["owner"]) == ("Customer churn", "alice")


def test_closed_accounts_keep_roles_when_project_is_edited(admin: Client, people: People) -> None:
    project = make_project(people.owner, people.teammate)
    project.members.add(people.stranger, through_defaults={"role": "viewer"})
    User.objects.filter(pk__in=[people.owner.pk, people.teammate.pk, people.stranger.pk]).update(is_active=False)
    page = admin.get("/projects/churn/settings/")
    assert "bob (account closed)" in page.content.decode()
    form = page.context["form"]
    entries = {
        "name": "Renamed",
        "volume_size": "10Gi",
        "version": page.context["version"],
        "owner": form["owner"].value(),
    }
    entries |= {name: form[name].value() for name in ("contributors", "viewers")}
    assert admin.post("/projects/churn/settings/", entries).status_code == 302
    assert project.people() == {"owner": "alice", "contributors": ["bob"], "viewers": ["charlie"]}


def test_owner_who_gives_a_project_away_stays_a_contributor(admin: Client, people: People) -> None:
    project = make_project(people.owner)
    edit(admin, project, people.teammate)
    assert project.people() == {"owner": "bob", "contributors": ["alice"], "viewers": []}
    assert "alice was the owner and is a contributor now" in admin.get("/projects/").content.decode()


@pytest.mark.parametrize(
    ("contributor", "viewer", "sentence"),
    [
        (None, "owner", "alice is the owner, and cannot be a viewer as well."),
        ("teammate", "teammate", "Choose one role for bob: contributor or viewer."),
    ],
)
def test_nobody_has_two_roles_in_a_project(
    admin: Client, people: People, contributor: str | None, viewer: str, sentence: str
) -> None:
    contributors = [getattr(people, contributor).pk] if contributor else []
    answer = make_new(admin, people.owner, contributors=contributors, viewers=[getattr(people, viewer).pk])
    assert answer.status_code == 400
    assert answer.context["form"].errors["viewers"] == [sentence]
    assert not Project.objects.exists()


def test_save_between_check_and_write_is_not_overwritten(people: People) -> None:
    """Two admins press Save at the same time; the second finds that his page is of before the first's."""
    project = make_project(people.owner)
    shown = _version(project)
    entries = {"name": "Mine", "owner": people.owner.pk, "volume_size": "10Gi"}
    mine = ProjectForm(entries, instance=Project.objects.get())
    assert mine.is_valid()
    Project.objects.update(name="Theirs")
    assert _save(mine, people.admin, version=shown) is None
    assert Project.objects.get().name == "Theirs"
    assert not AuditEntry.objects.exists()


def tier(**columns: Any) -> HardwareTier:
    return HardwareTier(**({"cores": "3500m", "memory": "14Gi", "cost_per_hour": Decimal("0.1900")} | columns))


def test_tier_words_have_units_and_memory_per_core() -> None:
    words = tier_words(tier(gpus=2, shared_memory="2Gi"))
    assert (words.cores, words.memory, words.per_core) == ("3.5 cores", "14 GiB", "4 GiB")
    assert (words.gpus, words.shared_memory, words.price) == ("2 GPUs", "2 GiB", "$0.19 an hour")
    assert words.kinds == ""
    assert tier_words(tier(kinds=["job", "cluster", "dask"])).kinds == "jobs, clusters, Dask clusters"


@pytest.mark.parametrize(
    ("cost", "words"),
    [("0", "free"), ("0.0000", "free"), ("0.4000", "$0.40 an hour"), ("3", "$3.00 an hour"), ("0.0125", "$0.0125 an hour"),
     ("1200", "$1,200.00 an hour")],
)  # fmt: skip
def test_a_price_names_no_currency(cost: str, words: str) -> None:
    assert price_words(Decimal(cost)) == words


@pytest.mark.parametrize(
    ("nodes", "maximum", "words"),
    [
        ([], 2, "no node now, at most 2"),
        ([{"cpu": "8", "memory": "32Gi"}] * 2, 5, "2 nodes, each 8 cores, 32 GiB"),
        ([{"cpu": "8", "memory": "32Gi"}, {"cpu": "4", "memory": "64Gi"}], 5, "2 nodes, the largest 8 cores, 32 GiB"),
        ([{"cpu": "8", "memory": "61Gi", "amd.com/gpu": "2"}], 2, "1 node, 8 cores, 61 GiB, 2 GPUs amd.com/gpu"),
    ],
)
def test_a_pool_is_told_by_its_largest_node(nodes: list[dict[str, str]], maximum: int, words: str) -> None:
    tally = ShapeTally()
    for allocatable in nodes:
        tally.count(Node(metadata=Metadata(name="n"), status=NodeStatus(allocatable=allocatable)), {})
    [pool] = pool_words([PoolShapes("p", tally.shapes(), maximum)])
    assert pool.size == words


@pytest.mark.parametrize(
    ("name", "values", "change"),
    [
        ("memory", ["4Gi", "8Gi"], FieldChange("Memory", "4Gi", "8Gi")),
        ("cost_per_hour", ["0.3800", "0.40"], FieldChange("cost_per_hour", "0.38", "0.40")),
        ("is_visible", [True, False], FieldChange("is_visible", "yes", "no")),
        ("cores_limit", ["", "2"], FieldChange("cores_limit", "empty", "2")),
        ("command", [["a", "b"], ["a", "c"]], FieldChange("command", removed=("b",), added=("c",))),
        ("command", [["a", "b"], ["b", "a"]], FieldChange("command", "a, b", "b, a")),
        ("variables", [{"A": "1"}, {"A": "2"}], FieldChange("variables", removed=("A=1",), added=("A=2",))),
        ("tolerations", [[], [{"key": "spot", "operator": "Exists"}]], FieldChange("tolerations", added=("spot Exists",))),
    ],
)  # fmt: skip
def test_a_change_is_told_as_its_reader_would(name: str, values: list[Any], change: FieldChange) -> None:
    line = history_line(AuditEntry(action="changed", changes={name: values}), {"memory": "Memory"}, is_reversible=True)
    assert line.changes == (change,)
    assert line.can_be_taken_back
