"""What admins edit: tiers, environments, projects. Every error at its field, every change recorded, nobody else allowed."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client

from grid.kube.objects import Node
from grid.labels import NODE_POOL
from grid.models import AuditEntry, Environment, Execution, HardwareTier, Project
from grid.runtime import Runtime, new_runtime, using_runtime
from tests.conftest import People
from tests.support.builders import decode, node
from tests.support.cluster import FakeCluster

TIER: dict[str, Any] = {
    "id": "small",
    "name": "Small",
    "node_pool": "default",
    "cores": "1",
    "memory": "4Gi",
    "gpus": "0",
    "gpu_resource": "nvidia.com/gpu",
    "cost_per_hour": "0.1",
    "is_visible": "on",
}
LISTS = ("/tiers/", "/environments/", "/projects/", "/configuration/")


@pytest.fixture(autouse=True)
def runtime() -> Iterator[Runtime]:
    """Two pools, known from the nodes."""
    runtime = new_runtime(FakeCluster())
    nodes = [decode(node(f"n-{pool}", pool=pool), Node) for pool in ("default", "default-gpu")]
    runtime.nodes.replace(nodes)
    runtime.nodes.mark_synced(runtime.monotonic())
    assert all(one.metadata.labels[NODE_POOL] for one in nodes)
    with using_runtime(runtime):
        yield runtime


@pytest.fixture
def admin(client: Client, people: People) -> Client:
    client.force_login(people.admin)
    return client


@pytest.fixture
def tier(people: People) -> HardwareTier:
    return HardwareTier.objects.create(id="small", name="Small", node_pool="default", cores="1", memory="4Gi")


def version_of(client: Client, path: str) -> str:
    return str(client.get(path).context["version"])


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("who", ["owner", "teammate", "stranger", "operator"])
def test_nobody_but_an_admin_sees_these_pages(client: Client, people: People, path: str, who: str) -> None:
    client.force_login(getattr(people, who))
    assert client.get(path).status_code == 403


@pytest.mark.parametrize("path", LISTS)
def test_without_a_login_one_is_sent_to_it(client: Client, db: None, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/")


@pytest.mark.parametrize(
    "path", ["/tiers/new/", "/tiers/small/archive/", "/tiers/small/take-back/1/", "/configuration/change/"]
)
def test_nobody_but_an_admin_changes_anything(client: Client, people: People, tier: HardwareTier, path: str) -> None:
    client.force_login(people.operator)
    assert client.post(path, TIER).status_code == 403
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("path", LISTS)
def test_an_admin_sees_each_page(admin: Client, tier: HardwareTier, path: str) -> None:
    assert admin.get(path).status_code == 200


def test_a_new_tier_is_saved_and_recorded(admin: Client) -> None:
    assert admin.post("/tiers/new/", TIER).status_code == 302
    assert HardwareTier.objects.get(id="small").memory == "4Gi"
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.action, entry.object_id) == ("ada-admin", "created", "small")


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("cores", "lots", "is not a quantity"),
        ("cores", "0", "more than zero"),
        ("memory", "4GB", "is not a quantity"),
        ("cores_limit", "500m", "below the request of 1"),
        ("memory_limit", "1Gi", "below the request of 4Gi"),
        ("shared_memory", "5Gi", "memory limit of 4Gi"),
        ("node_pool", "defualt", "There is no node pool “defualt” in the cluster. It has: default, default-gpu."),
        ("id", "Small Tier", "lower-case letters"),
        ("gpus", "-1", "greater than or equal to 0"),
        ("cost_per_hour", "-1", "greater than or equal to 0"),
        ("maximum_simultaneous", "0", "greater than or equal to 1"),
        ("tolerations", "a b:NoSchedule", "is not a toleration"),
        ("tolerations", "a:Sometimes", "is not an effect"),
        ("extra_labels", "team", "has no “=”"),
        ("extra_labels", "team=a b", "is not a valid label value"),
        ("kinds", "fortran", "not one of the available choices"),
    ],
)
def test_a_wrong_entry_is_said_at_its_field_and_nothing_is_saved(
    admin: Client, field: str, value: str, sentence: str
) -> None:
    answer = admin.post("/tiers/new/", {**TIER, field: value})
    assert answer.status_code == 400
    assert sentence in " ".join(answer.context["form"].errors[field])
    assert not HardwareTier.objects.exists()
    assert not AuditEntry.objects.exists()


def test_while_the_cluster_is_unknown_any_pool_is_accepted(admin: Client) -> None:
    with using_runtime(new_runtime(FakeCluster())):
        assert admin.post("/tiers/new/", {**TIER, "node_pool": "later"}).status_code == 302


def test_a_change_records_what_was_and_what_is(admin: Client, tier: HardwareTier) -> None:
    group = Group.objects.create(name="vision team")
    answer = admin.post(
        "/tiers/small/",
        {
            **TIER,
            "memory": "8Gi",
            "groups": [group.pk],
            "tolerations": "a=b:NoSchedule\nspot",
            "version": version_of(admin, "/tiers/small/"),
        },
    )
    assert answer.status_code == 302
    changes = AuditEntry.objects.get().changes
    assert changes["memory"] == ["4Gi", "8Gi"]
    assert changes["groups"] == [[], ["vision team"]]
    tier.refresh_from_db()
    assert tier.tolerations == [
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Exists"},
    ]


def test_a_recorded_change_can_be_taken_back(admin: Client, tier: HardwareTier) -> None:
    group = Group.objects.create(name="vision team")
    changed = {**TIER, "memory": "8Gi", "groups": [group.pk], "version": version_of(admin, "/tiers/small/")}
    admin.post("/tiers/small/", changed)
    entry = AuditEntry.objects.get()
    admin.post(f"/tiers/small/take-back/{entry.pk}/")
    tier.refresh_from_db()
    assert tier.memory == "4Gi"
    assert not tier.groups.exists()
    assert AuditEntry.objects.first().changes["memory"] == ["8Gi", "4Gi"]  # type: ignore[union-attr]


def test_a_change_that_no_longer_fits_is_not_taken_back(admin: Client, tier: HardwareTier) -> None:
    admin.post("/tiers/small/", {**TIER, "memory": "8Gi", "version": version_of(admin, "/tiers/small/")})
    entry = AuditEntry.objects.get()
    HardwareTier.objects.filter(id="small").update(shared_memory="6Gi")
    answer = admin.post(f"/tiers/small/take-back/{entry.pk}/", follow=True)
    assert "cannot be taken back" in answer.content.decode()
    tier.refresh_from_db()
    assert tier.memory == "8Gi"


def test_two_admins_who_edit_at_once_notice(admin: Client, tier: HardwareTier) -> None:
    opened = version_of(admin, "/tiers/small/")
    HardwareTier.objects.filter(id="small").update(cores="2")
    answer = admin.post("/tiers/small/", {**TIER, "memory": "8Gi", "version": opened})
    assert answer.status_code == 400
    assert "Somebody changed this" in answer.content.decode()
    tier.refresh_from_db()
    assert (tier.cores, tier.memory) == ("2", "4Gi")


def test_a_new_default_takes_the_mark_off_the_old_one(admin: Client, tier: HardwareTier) -> None:
    HardwareTier.objects.filter(id="small").update(is_default=True)
    assert admin.post("/tiers/new/", {**TIER, "id": "big", "is_default": "on"}).status_code == 302
    assert list(HardwareTier.objects.filter(is_default=True).values_list("id", flat=True)) == ["big"]
    assert AuditEntry.objects.filter(object_id="small", changes={"is_default": [True, False]}).exists()


def test_archiving_keeps_the_tier_and_restoring_brings_it_back(admin: Client, tier: HardwareTier) -> None:
    admin.post("/tiers/small/archive/")
    assert HardwareTier.objects.filter(id="small", is_archived=True).exists()
    admin.post("/tiers/small/archive/")
    assert HardwareTier.objects.filter(id="small", is_archived=False).exists()
    assert [entry.action for entry in AuditEntry.objects.all()] == ["restored", "archived"]


def test_a_get_changes_nothing(admin: Client, tier: HardwareTier) -> None:
    assert admin.get("/tiers/small/archive/").status_code == 405
    assert admin.get("/configuration/change/").status_code == 405


def test_a_tier_that_does_not_exist_is_not_found(admin: Client) -> None:
    assert admin.get("/tiers/nothing/").status_code == 404


def test_the_id_of_a_tier_never_changes(admin: Client, tier: HardwareTier) -> None:
    version = version_of(admin, "/tiers/small/")
    admin.post("/tiers/small/", {**TIER, "id": "other", "version": version})
    assert list(HardwareTier.objects.values_list("id", flat=True)) == ["small"]


def test_saving_without_a_change_records_nothing(admin: Client, tier: HardwareTier) -> None:
    HardwareTier.objects.filter(id="small").update(cost_per_hour="0.3800")
    page = admin.get("/tiers/small/")
    form = page.context["form"]
    entries = {name: form[name].value() for name in TIER if name in form.fields}
    assert entries["cost_per_hour"] == "0.38"
    answer = admin.post("/tiers/small/", {**entries, "is_visible": "on", "version": page.context["version"]})
    assert answer.status_code == 302
    assert not AuditEntry.objects.exists()


def test_a_tier_that_fits_is_saved_to_the_list_and_one_that_does_not_to_its_page(admin: Client) -> None:
    fits = admin.post("/tiers/new/", TIER)
    too_large = admin.post("/tiers/new/", {**TIER, "id": "whale", "memory": "1Ti"})
    assert (fits["Location"], too_large["Location"]) == ("/tiers/", "/tiers/whale/")
    page = admin.get("/tiers/whale/").content.decode()
    assert "it asks for 1 TiB of memory, but the largest node has 16 GiB" in page
    assert "too large for its nodes" in admin.get("/tiers/").content.decode()


def test_the_fit_is_told_for_what_is_being_typed(admin: Client) -> None:
    answer = admin.post("/tiers/new/", {**TIER, "cores": "64", "name": ""})
    assert answer.status_code == 400
    assert "it asks for 64 cores, but the largest node has 4" in answer.content.decode()
    assert admin.get("/tiers/new/").context["fit"] is None


def test_nothing_is_said_of_the_fit_while_the_cluster_is_unknown(admin: Client, tier: HardwareTier) -> None:
    with using_runtime(new_runtime(FakeCluster())):
        assert admin.get("/tiers/small/").context["fit"] is None
        assert admin.get("/tiers/").status_code == 200


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        (["succeeded", "error"], ""),
        (["running", "stopped"], "1 active execution uses it. It keeps the values that it was launched with"),
        (["running", "queued"], "2 active executions use it. They keep the values that they were launched with"),
    ],
)
def test_who_edits_a_tier_is_told_how_many_use_it(
    admin: Client, people: People, tier: HardwareTier, states: list[str], sentence: str
) -> None:
    project = Project.objects.create(id="churn", name="Churn", owner=people.owner)
    lab = Environment.objects.create(id="lab", name="Lab", image="lab:1", port=8888)
    for state in states:
        Execution.objects.create(owner=people.owner, project=project, environment=lab, tier=tier, state=state)
    for path in ("/tiers/small/", "/environments/lab/"):
        assert admin.get(path).context["in_use"].startswith(sentence)
        assert bool(admin.get(path).context["in_use"]) == bool(sentence)
    assert admin.get("/projects/churn/").context["in_use"] == ""


def test_the_number_of_queries_of_a_list_does_not_grow_with_it(
    admin: Client, tier: HardwareTier, django_assert_max_num_queries: Any
) -> None:
    for number in range(20):
        HardwareTier.objects.create(id=f"t{number}", name=f"T{number}", node_pool="default", cores="1", memory="4Gi")
    with django_assert_max_num_queries(10):
        admin.get("/tiers/")


def test_an_environment_keeps_its_command_line_by_line(admin: Client) -> None:
    entries = {
        "id": "lab",
        "name": "Lab",
        "kind": "workspace",
        "image": "lab:1",
        "port": "8888",
        "command": "jupyter\nlab\n--port={port}",
        "variables": "MODE=fast\nEMPTY=",
    }
    assert admin.post("/environments/new/", entries).status_code == 302
    saved = Environment.objects.get()
    assert saved.command == ["jupyter", "lab", "--port={port}"]
    assert saved.variables == {"MODE": "fast", "EMPTY": ""}
    assert "--port={port}" in admin.get("/environments/lab/").content.decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [("port", ""), ("port", "80"), ("port", "70000"), ("variables", "2X=1"), ("kind", "vm"), ("image", "")],
)
def test_a_wrong_entry_of_an_environment_is_said_at_its_field(admin: Client, field: str, value: str) -> None:
    entries = {"id": "lab", "name": "Lab", "kind": "workspace", "image": "lab:1", "port": "8888", field: value}
    assert field in admin.post("/environments/new/", entries).context["form"].errors


CLUSTER_ENVIRONMENT = {"id": "dask", "name": "Dask", "kind": "cluster", "image": "dask:1"}


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


def test_a_tier_can_be_kept_for_clusters_of_one_framework(admin: Client) -> None:
    assert admin.post("/tiers/new/", {**TIER, "kinds": ["cluster", "spark"]}).status_code == 302
    assert HardwareTier.objects.get().kinds == ["cluster", "spark"]
    shown = admin.get("/tiers/small/").content.decode()
    for words in ("Dask clusters", "Ray clusters", "Spark clusters"):
        assert words in shown
    assert "only clusters, Spark clusters" in admin.get("/tiers/").content.decode()


def test_who_edits_a_tier_is_told_of_the_heads_on_it(admin: Client, people: People, tier: HardwareTier) -> None:
    project = Project.objects.create(id="churn", name="Churn", owner=people.owner)
    dask = Environment.objects.create(**CLUSTER_ENVIRONMENT, frameworks={"dask": "2026.8.0"})
    other = HardwareTier.objects.create(id="other", name="Other", node_pool="default", cores="1", memory="4Gi")
    for head, workers in ((tier, other), (tier, tier)):
        Execution.objects.create(
            owner=people.owner, project=project, environment=dask, kind="cluster", tier=workers, head_tier=head,
            state="running",
        )  # fmt: skip
    assert admin.get("/tiers/small/").context["in_use"].startswith("2 active executions use it.")
    assert admin.get("/tiers/other/").context["in_use"].startswith("1 active execution uses it.")


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
