"""What admins edit of tiers: every error at its field, every change recorded and taken back, archiving, and whether it fits."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import Group
from django.test import Client, override_settings

from dashboard.tiers.tier_records import warm_hours_words
from grid.configuration import WARM_PLACES
from grid.executions.spec import pod_columns, tier_spec
from grid.models import AuditEntry, ConfigRecord, Environment, Execution, HardwareTier, Project, State
from grid.models.dataplane import LOCAL
from grid.runtime import new_runtime
from grid.tiers.warmhours import DAYS
from tests.administration.administering import TIER, version_of
from tests.conftest import People
from tests.executions.executing import make_environment, make_execution, make_project, make_tier, make_workspace
from tests.support.cluster import FakeCluster
from tests.support.frozen import on_tier
from tests.support.runtime import using_runtime

pytestmark = pytest.mark.usefixtures("two_pools")


def test_a_new_tier_is_saved_and_recorded(admin: Client) -> None:
    assert admin.post("/tiers/new/", TIER).status_code == 302
    assert HardwareTier.objects.get(id="small").memory == "4Gi"
    entry = AuditEntry.objects.get()
    assert (entry.actor_name, entry.action, entry.object_id) == ("ada-admin", "created", "small")


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("cores", "lots", "is not a quantity"),
        ("cores", "10P", "more than any machine has"),
        ("cores_limit", "500m", "below the request of 1"),
        ("shared_memory", "5Gi", "memory limit of 4Gi"),
        ("ephemeral_storage", "0", "more than zero"),
        ("node_pool", "defualt", "There is no node pool “defualt” in the cluster. It has: default, default-gpu."),
        ("id", "Small Tier", "lower-case letters"),
        ("cost_per_hour", "-1", "greater than or equal to 0"),
        ("tolerations", "a:Sometimes", "is not an effect"),
        ("extra_labels", "team=a b", "is not a valid label value"),
    ],
)
def test_wrong_tier_entry_is_reported_at_its_field_unsaved(
    admin: Client, field: str, value: str, sentence: str
) -> None:
    answer = admin.post("/tiers/new/", {**TIER, field: value})
    assert answer.status_code == 400
    assert sentence in " ".join(answer.context["form"].errors[field])
    assert not HardwareTier.objects.exists()
    assert not AuditEntry.objects.exists()


def test_odd_memory_of_a_tier_is_asked_about_once(admin: Client) -> None:
    odd = {**TIER, "memory": "400m"}
    asked = admin.post("/tiers/new/", odd)
    assert "400Mi or 400Gi may be meant" in asked.content.decode()
    assert not HardwareTier.objects.exists()
    again = dict(asked.context["question"].fields)
    assert (again["memory"], again["confirmed"]) == ("400m", "on")
    assert admin.post("/tiers/new/", again).status_code == 302
    changed = {**odd, "name": "Tiny", "version": version_of(admin, "/tiers/small/")}
    assert admin.post("/tiers/small/", changed).status_code == 302  # what was saved before is not asked about again


def test_spot_choice_that_nothing_obeys_is_hidden(admin: Client, tier: HardwareTier) -> None:
    HardwareTier.objects.update(spot_allowed=True)
    for url in ("/tiers/", "/tiers/small/", "/tiers/new/"):
        assert "spot" not in admin.get(url).content.decode().lower()
    answer = admin.post("/tiers/small/", {**TIER, "memory": "8Gi", "version": version_of(admin, "/tiers/small/")})
    assert answer.status_code == 302
    assert HardwareTier.objects.get().spot_allowed  # kept for the setting that is to come


def test_change_is_recorded_and_can_be_undone(admin: Client, tier: HardwareTier) -> None:
    group = Group.objects.create(name="vision team")
    changed = {"memory": "8Gi", "groups": [group.pk], "tolerations": "a=b:NoSchedule\nspot"}
    answer = admin.post("/tiers/small/", {**TIER, **changed, "version": version_of(admin, "/tiers/small/")})
    assert answer.status_code == 302
    entry = AuditEntry.objects.get()
    assert (entry.changes["memory"], entry.changes["groups"]) == (["4Gi", "8Gi"], [[], ["vision team"]])
    tier.refresh_from_db()
    assert tier.tolerations == [
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Exists"},
    ]
    admin.post(f"/tiers/small/take-back/{entry.pk}/")
    tier.refresh_from_db()
    assert tier.memory == "4Gi"
    assert not tier.groups.exists()
    assert AuditEntry.objects.first().changes["memory"] == ["8Gi", "4Gi"]  # type: ignore[union-attr]


def test_outdated_change_is_not_undone(admin: Client, tier: HardwareTier) -> None:
    admin.post("/tiers/small/", {**TIER, "memory": "8Gi", "version": version_of(admin, "/tiers/small/")})
    entry = AuditEntry.objects.get()
    HardwareTier.objects.filter(id="small").update(shared_memory="6Gi")
    assert "cannot be undone" in admin.post(f"/tiers/small/take-back/{entry.pk}/", follow=True).content.decode()
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


def test_new_default_tier_replaces_the_old_one(admin: Client, tier: HardwareTier) -> None:
    HardwareTier.objects.filter(id="small").update(is_default=True)
    assert admin.post("/tiers/new/", {**TIER, "id": "big", "is_default": "on"}).status_code == 302
    assert list(HardwareTier.objects.filter(is_default=True).values_list("id", flat=True)) == ["big"]
    assert AuditEntry.objects.filter(object_id="small", changes={"is_default": [True, False]}).exists()


def test_saving_without_a_change_records_nothing(admin: Client, tier: HardwareTier) -> None:
    HardwareTier.objects.filter(id="small").update(cost_per_hour="0.3800")
    page = admin.get("/tiers/small/")
    form = page.context["form"]
    entries = {name: form[name].value() for name in TIER if name in form.fields}
    assert entries["cost_per_hour"] == "0.38"
    answer = admin.post("/tiers/small/", {**entries, "is_visible": "on", "version": page.context["version"]})
    assert answer.status_code == 302
    assert not AuditEntry.objects.exists()


def test_fitting_tier_returns_to_list_and_others_to_page(admin: Client) -> None:
    fits = admin.post("/tiers/new/", TIER)
    too_large = admin.post("/tiers/new/", {**TIER, "id": "whale", "memory": "1Ti"})
    assert (fits["Location"], too_large["Location"]) == ("/tiers/", "/tiers/whale/")
    page = admin.get("/tiers/whale/").content.decode()
    assert "it asks for 1 TiB of memory, but the largest node has 16 GiB" in page
    assert "too large for its nodes" in admin.get("/tiers/").content.decode()


def test_unknown_cluster_makes_the_fit_unknown(admin: Client, tier: HardwareTier) -> None:
    with using_runtime(new_runtime({LOCAL: FakeCluster()})):
        assert "nodes are not known now" in admin.get("/tiers/small/").content.decode()
        assert "How they fit their nodes" not in admin.get("/tiers/").content.decode()
        assert admin.post("/tiers/new/", {**TIER, "id": "later", "node_pool": "any"}).status_code == 302


def test_the_check_follows_the_typing_and_saves_nothing(admin: Client, tier: HardwareTier) -> None:
    fits = admin.post("/tiers/small/check/", {**TIER, "cores": "2"}).content.decode()
    assert "2 places on its only node of the pool default when it is empty." in fits
    assert "8 GiB of 16 GiB" in fits
    unclear = admin.post("/tiers/new/check/", {**TIER, "cores": "lots"}).content.decode()
    assert "Correct the fields of the machine" in unclear
    assert HardwareTier.objects.get().cores == "1"
    assert admin.post("/tiers/none/check/", TIER).status_code == 404


@pytest.mark.parametrize(
    ("kinds", "is_counted"), [([], True), (["workspace", "job"], True), (["job"], True), (["cluster"], False)]
)
def test_nginx_is_counted_on_tiers_for_page_programs(
    admin: Client, tier: HardwareTier, kinds: list[str], is_counted: bool
) -> None:
    posted = {**TIER, "cores": "2", "kinds": kinds}
    assert "for nginx" not in admin.post("/tiers/small/check/", posted).content.decode()
    with override_settings(FRONT_IMAGE="nginx:1"):
        check = admin.post("/tiers/small/check/", posted).content.decode()
    sentence = "0.01 cores and 32 MiB of memory more, for nginx in front of a web page, which adds 0.8 % to the price."
    assert (sentence in check) == is_counted


def test_the_list_checks_all_tiers_at_once(admin: Client, tier: HardwareTier) -> None:
    make_tier("twin", cores="1", memory="4Gi", cost_per_hour="0.5")
    make_tier("whale", cores="64")
    make_tier("old", cores="64", is_archived=True)
    checks = {tier.pk: check for tier, check in admin.get("/tiers/").context["checks"]}
    assert checks.keys() == {"small", "twin", "whale"}
    assert (checks["whale"].fits, checks["whale"].places) == ("too large for its nodes", "")
    assert (checks["small"].fits, checks["small"].places) == ("fits", "4")
    assert checks["twin"].overlap == "Small gives at least as much, for free."


def launched(tier: HardwareTier, *, head: HardwareTier | None = None, **then: Any) -> dict[str, Any]:
    """What the launch of an execution on the tier has frozen, with other values that the tier had then."""
    columns = pod_columns(msgspec.structs.replace(tier_spec(tier), **then))
    if head is None:
        return {"tier": tier, **columns}
    of_head = pod_columns(msgspec.structs.replace(tier_spec(head), **then))
    return {
        "tier": tier, "head_tier": head, "kind": "cluster", "framework": "dask", "workers_minimum": 1, "workers_maximum": 1,
        **columns, **{f"head_{name}": value for name, value in of_head.items()},
    }  # fmt: skip


def test_list_names_running_executions_that_no_longer_fit(
    admin: Client, tier: HardwareTier, people: People, django_assert_max_num_queries: Any
) -> None:
    project, gone, changed = make_project(people.owner), make_tier("gone", node_pool="gone"), make_tier("changed")
    make_execution(people.owner, project, title="Fits", **launched(tier))
    large = make_execution(people.owner, project, title="", **launched(tier, memory="64Gi"))
    old = make_tier("old", is_archived=True)
    make_execution(people.owner, project, title="Fits still", **launched(old))
    make_execution(people.owner, project, title="Archived", **launched(old, gpus=2))
    make_execution(people.owner, project, title="Elsewhere", **launched(tier, node_pool="removed"))
    for state in (State.QUEUED, State.SUCCEEDED):
        make_execution(people.owner, project, title=f"Is {state}", state=state, **launched(tier, memory="64Gi"))
    make_execution(people.owner, project, title="Heads", **launched(tier, head=changed, cores="32"))
    make_execution(people.owner, project, title="Pool gone", **launched(gone, node_pool="default"))
    with django_assert_max_num_queries(16):  # one for each of the four
        answer = admin.get("/tiers/")
    assert {tier.tier_id: set(tier.named.values()) for tier in answer.context["outgrown"]} == {
        "small": {large.object_name, "Elsewhere", "Heads"},
        "changed": {"Heads"},
        "gone": {"Pool gone"},
        "old": {"Archived"},
    }
    page = " ".join(answer.text.split())
    assert "3 running executions would no longer fit" in page
    assert "Old (archived): " in page
    assert f'<a dir="auto" href="/executions/{large.pk}/">{large.object_name}</a>' in page


def test_first_unfitting_executions_are_named_and_rest_linked(
    admin: Client, tier: HardwareTier, people: People
) -> None:
    project = make_project(people.owner)
    for number in range(7):
        make_execution(people.owner, project, title=f"Run <{number}>", **launched(tier, cores="64"))
    page = admin.get("/tiers/").text
    assert page.count("Run &lt;") == page.count("&gt;</a>") == 5
    assert '<a href="/executions/?tier=small&amp;status=running">and 2 more</a>' in page
    with using_runtime(new_runtime({LOCAL: FakeCluster()})):
        assert "would no longer fit" not in admin.get("/tiers/").text, "the nodes are not known"


def test_editor_sees_how_many_use_tier_and_environment(admin: Client, people: People, tier: HardwareTier) -> None:
    project = Project.objects.start(id="churn", name="Churn", owner=people.owner)
    lab = Environment.objects.create(id="lab", name="Lab", image="lab:1", port=8888)
    for state in ("succeeded", "running", "queued"):
        Execution.objects.create(owner=people.owner, project=project, environment=lab, state=state, **on_tier(tier))
    for path in ("/tiers/small/", "/environments/lab/"):
        in_use = admin.get(path).context["in_use"]
        assert in_use.startswith("2 active executions use it. They keep the values that they were launched with")
    assert admin.get("/projects/churn/settings/").context["in_use"] == ""


WARM = {"warm_places": "2", "warm_days": ["mon", "fri"], "warm_from": "08:00", "warm_until": "18:00"}


def test_warm_up_hours_are_typed_bounded_and_shown(admin: Client, tier: HardwareTier) -> None:
    def saved(**typed: Any) -> str:
        form = admin.get("/tiers/small/").context["form"]
        values = {name: form[name].value() for name in form.fields}
        kept = {name: value for name, value in values.items() if value is not None and value is not False}
        version = admin.get("/tiers/small/").context["version"]
        return " ".join(admin.post("/tiers/small/", {**kept, "version": version, **typed}, follow=True).text.split())

    assert "The central configuration allows none: “Most warm places”." in saved(**WARM)
    ConfigRecord.objects.create(key=WARM_PLACES.key, value="2")
    assert "The central configuration allows at most 2 of all tiers together" in saved(**WARM | {"warm_places": "3"})
    page = saved(warm_places="2", warm_from="8", warm_zone="Mars/Base")
    assert "Write hours and minutes, such as 08:00." in page
    assert "There is no time zone “Mars/Base”." in page
    assert "Choose the days of its warm-up hours." in page
    assert "Small is saved." in saved(**WARM)
    tier.refresh_from_db()
    assert [warm_hours_words(tier, datetime(2026, 11, day, 17, tzinfo=UTC)) for day in (26, 27)] == [
        "2 warm places Mon, Fri 08:00 to 18:00 (UTC)",
        "2 warm places until 18:00 (UTC)",
    ]
    assert "until 00:00 (UTC)" in saved(warm_days=list(DAYS), warm_from="00:00", warm_until="00:00")
    ConfigRecord.objects.update(value="0")
    assert "2 warm places, turned off by the central configuration" in admin.get("/tiers/").text
    saved(description="Changed while they are off")
    tier.refresh_from_db()
    assert tier.description == "Changed while they are off", "what was allowed once stays"


def test_the_question_before_archiving_says_who_uses_it(admin: Client, people: People) -> None:
    tier = make_tier("busy", is_default=True)
    project = make_project(people.owner, people.teammate)
    for user in (people.owner, people.owner, people.teammate):
        make_execution(user, project, tier=tier)
    make_workspace(people.owner, project, tier=tier)
    question = admin.get("/tiers/busy/archive/").content.decode()
    assert "3 executions of 2 people use it and continue" in question
    assert "1 workspace was launched with it: resuming needs another hardware tier." in question
    assert "It is the default tier" in question
    assert "Its 2 members can no longer launch in it." in admin.get("/projects/churn/archive/").content.decode()
    assert (
        "1 workspace of the project cannot be resumed until it is restored."
        in admin.get("/projects/churn/archive/").text
    )
    unused = make_environment("unused", name="Unused <b>")
    assert "No active execution uses it." in admin.get(f"/environments/{unused.pk}/archive/").text
    assert not HardwareTier.objects.filter(is_archived=True).exists()
