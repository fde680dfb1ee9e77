"""What admins edit: environments, projects, settings. Every error at its field. Who may: tests/access."""

import pytest
from django.test import Client

from grid.models import AuditEntry, Environment, Project
from tests.conftest import People
from tests.dashboard.administering import CLUSTER_ENVIRONMENT

pytestmark = pytest.mark.usefixtures("two_pools")


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
    }
    assert admin.post("/environments/new/", entries).status_code == 302
    saved = Environment.objects.get()
    assert saved.command == ["jupyter", "lab", "--port={port}"]
    assert saved.variables == {"MODE": "fast", "EMPTY": ""}
    assert (saved.image_pull_secret, saved.allows_service_workers) == ("our-registry", True)
    assert "--port={port}" in admin.get("/environments/lab/").content.decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("port", ""), ("port", "80"), ("port", "70000"), ("kind", "vm"), ("image", "")),
        *(("variables", "2X=1"), ("variables", "A.B=1"), ("image_pull_secret", "Our secret")),
    ],
)
def test_a_wrong_entry_of_an_environment_is_said_at_its_field(admin: Client, field: str, value: str) -> None:
    entries = {"id": "lab", "name": "Lab", "kind": "workspace", "image": "lab:1", "port": "8888", field: value}
    assert field in admin.post("/environments/new/", entries).context["form"].errors


def test_an_environment_for_clusters_needs_its_frameworks_but_no_port_and_no_command(admin: Client) -> None:
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
        ("", "Say which frameworks a cluster of this environment can be made of."),
        ("dusk 1.0", "“dusk” is not a framework; there are dask, ray, spark."),
        ("dask", "“dask” does not name one version; write for example dask 2026.8.0."),
        ("dask 1.0 2.0", "does not name one version"),
        ("dask " + "9" * 41, "does not name one version"),
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
    entries = {
        "id": "churn",
        "name": "<script>alert(1)</script>",
        "owner": people.owner.pk,
        "members": [people.teammate.pk],
        "volume_size": "10Gi",
    }
    assert admin.post("/projects/new/", entries).status_code == 302
    assert list(Project.objects.get().members.all()) == [people.teammate]
    page = admin.get("/projects/").content.decode()
    assert "<script>alert" not in page


def test_a_setting_is_changed_and_reset_on_its_page(admin: Client) -> None:
    key = "com.cerebro.domino.computegrid.userExecutionsQuota.maximumExecutionsPerUser"
    assert admin.post("/configuration/change/", {"key": key, "value": "3"}).status_code == 302
    assert 'value="3"' in admin.get("/configuration/").content.decode()
    admin.post("/configuration/reset/", {"key": key})
    assert 'value="25"' in admin.get("/configuration/").content.decode()


@pytest.mark.parametrize(
    ("entries", "field", "sentence"),
    [
        ({"key": "no.such.key", "value": "1"}, "key", "There is no setting named no.such.key."),
        ({"key": "", "value": "1"}, "key", "This field is required."),
        (
            {"key": "com.cerebro.domino.computegrid.userExecutionsQuota.maximumExecutionsPerUser", "value": "-4"},
            "value",
            "Must be between 0 and 100000 slots.",
        ),
        (
            {"key": "com.cerebro.domino.computegrid.userExecutionsQuota.maximumExecutionsPerUser", "value": "many"},
            "value",
            "“many” is not a whole number of slots.",
        ),
    ],
)
def test_a_wrong_setting_is_said_at_its_field(
    admin: Client, entries: dict[str, str], field: str, sentence: str
) -> None:
    answer = admin.post("/configuration/change/", entries)
    assert answer.status_code == 400
    assert sentence in answer.context["form"].errors[field]
    assert sentence in answer.content.decode()
