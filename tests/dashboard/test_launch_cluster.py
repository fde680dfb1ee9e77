"""The launch form's cluster over HTTP: alone and attached, each refusal at its field, the estimate, and nothing for strangers."""

import html
import re
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from grid.centralconfig import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS, MAXIMUM_EXECUTIONS_PER_USER, NAMESPACE
from grid.kube.resources import NODES
from grid.launch.spec import thaw
from grid.models import ConfigRecord, Environment, Execution, HardwareTier, Project
from grid.runtime import Runtime
from tests.conftest import People
from tests.dashboard.browsing import client_of
from tests.dashboard.executing import make_environment, make_project, make_tier
from tests.support import builders
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("runtime")]
CLUSTER = {
    "framework": "dask",
    "cluster_environment": "dask-cluster",
    "head_tier": "small",
    "worker_tier": "medium",
    "workers_minimum": "1",
    "workers_maximum": "5",
    "autoscale": "on",
    "target_cpu": "80",
    "target_memory": "80",
    "local_storage": "",
}
ALONE = {"kind": "cluster", "project": "churn", "token": "t1", **CLUSTER}
ATTACHED = {
    "kind": "workspace",
    "project": "churn",
    "environment": "jupyterlab",
    "tier": "small",
    "token": "t1",
    "with_cluster": "on",
    **CLUSTER,
}


@pytest.fixture
def offered(people: People) -> Project:
    """A project of the owner's, a notebook with Dask, clusters of Dask and of Ray, and two tiers."""
    make_environment(frameworks={"dask": "2026.8.0"})
    make_environment("dask-cluster", name="Dask", kind="cluster", port=None, frameworks={"dask": "2026.8.0"})
    make_environment("ray-cluster", name="Ray", kind="cluster", port=None, frameworks={"ray": "2.60.0"})
    make_tier("small", is_default=True, cost_per_hour=Decimal("0.05"))
    make_tier("medium", cores="3500m", memory="14Gi", cost_per_hour=Decimal("0.19"))
    return make_project(people.owner, people.teammate)


def page(user: User, query: str = "") -> str:
    answer = client_of(user).get(f"/launch/{query}")
    assert answer.status_code == 200
    return str(answer.content.decode())


def sent(user: User, fields: dict[str, str], path: str = "/launch/") -> tuple[int, str]:
    answer = client_of(user).post(path, fields)
    return answer.status_code, html.unescape(answer.content.decode())


def configure(key: str, value: int) -> None:
    ConfigRecord.objects.create(namespace=NAMESPACE, key=key, value=str(value))


def error_at(shown: str, field: str) -> str:
    found = re.search(rf'id="id_{field}_error"[^>]*>(.*?)</div>', shown, re.DOTALL)
    return re.sub(r"<[^>]+>", " ", found[1]).strip() if found else ""


def value_of(shown: str, field: str) -> str:
    found = re.search(rf'<input[^>]*name="{field}"[^>]*>', shown)
    value = re.search(r'value="([^"]*)"', found[0]) if found else None
    return value[1] if value else ""


def test_a_cluster_alone_is_launched_as_it_is_first_shown_but_for_its_kind(people: People, offered: Project) -> None:
    shown = page(people.owner, "?kind=cluster")
    assert "2 slots at minimum, 6 at maximum; you use 0 of 25." in shown
    status, _ = sent(people.owner, ALONE)
    execution = Execution.objects.get()
    assert (status, execution.kind, execution.slots) == (302, "cluster", 6)
    assert (execution.tier_id, execution.head_tier_id, execution.environment_id) == ("medium", "small", "dask-cluster")
    cluster = thaw(execution.spec).cluster
    assert cluster is not None
    assert (cluster.framework, cluster.version, cluster.workers_minimum, cluster.workers_maximum) == (
        *("dask", "2026.8.0"),
        *(1, 5),
    )


def test_a_workspace_and_its_cluster_are_launched_together(people: People, offered: Project) -> None:
    answer = client_of(people.owner).post("/launch/", ATTACHED | {"on_demand": "on", "local_storage": "20Gi"})
    workspace, cluster = Execution.objects.get(kind="workspace"), Execution.objects.get(kind="cluster")
    assert answer["Location"] == f"/executions/{workspace.pk}/"
    assert cluster.attached_to == workspace
    spec = thaw(cluster.spec).cluster
    assert spec is not None
    assert (spec.local_storage, spec.scaling.on_demand) == ("20Gi", True)


def test_without_its_box_a_workspace_gets_no_cluster_whatever_else_was_typed(people: People, offered: Project) -> None:
    fields = {name: value for name, value in ATTACHED.items() if name != "with_cluster"}
    status, _ = sent(people.owner, fields | {"workers_minimum": "-1", "framework": "nonsense"})
    assert status == 302
    assert [one.kind for one in Execution.objects.all()] == ["workspace"]


def test_two_clicks_from_the_first_page_make_one_to_five_workers(people: People, offered: Project) -> None:
    shown = page(people.owner)
    names = ("workers_minimum", "workers_maximum", "target_cpu", "target_memory")
    assert [value_of(shown, name) for name in names] == ["1", "5", "80", "80"]
    assert re.search(r'name="framework" value="dask" checked', shown)
    assert not re.search(r'name="with_cluster"[^>]* checked', shown)
    assert "Workers beside this workspace" in shown


def test_the_first_framework_is_one_of_the_environment(people: People, offered: Project) -> None:
    Environment.objects.filter(pk="jupyterlab").update(frameworks={"ray": "2.60.0"})
    shown = page(people.owner)
    assert re.search(r'name="framework" value="ray" checked', shown)
    assert "<span>Ray 2.60.0</span>" in shown
    Environment.objects.filter(pk="jupyterlab").update(frameworks={"spark": "4.3.0"})  # no cluster can be made of it
    assert re.search(r'name="framework" value="dask" checked', page(people.owner))


def test_the_first_maximum_is_what_ones_slots_allow(people: People, offered: Project) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER.key, 4)
    assert value_of(page(people.owner), "workers_maximum") == "2"
    assert value_of(page(people.owner, "?kind=cluster"), "workers_maximum") == "3"
    ConfigRecord.objects.update(value="0")
    assert value_of(page(people.owner), "workers_maximum") == "1"


def test_the_admins_defaults_and_bounds_are_in_the_form(people: People, offered: Project) -> None:
    configure(CLUSTER_SETTINGS["target_cpu"].key, 70)
    configure(CLUSTER_SETTINGS["minimum_target"].key, 30)
    configure(CLUSTER_SETTINGS["maximum_workers"].key, 3)
    shown = page(people.owner, "?kind=cluster")
    assert (value_of(shown, "target_cpu"), value_of(shown, "workers_maximum")) == ("70", "3")
    assert "30 to 100" in shown
    assert "Your admin allows 3." in shown


def test_where_autoscaling_is_off_it_is_not_offered_and_a_forged_wish_is_refused(
    people: People, offered: Project
) -> None:
    configure(FRAMEWORK_SETTINGS["dask"]["autoscaling"].key, 0)
    shown = page(people.owner, "?kind=cluster")
    assert 'name="autoscale"' not in shown
    assert "your admin has switched autoscaling off for Dask" in shown
    assert "2 slots; you use 0 of 25." in shown
    status, shown = sent(people.owner, ALONE)
    assert status == 422
    assert "switched off by your admin" in error_at(shown, "autoscale")
    assert sent(people.owner, {name: value for name, value in ALONE.items() if name != "autoscale"})[0] == 302
    assert Execution.objects.get().slots == 2


def test_growing_for_what_waits_is_offered_only_where_it_is_served(
    people: People, offered: Project, settings: Settings
) -> None:
    assert "Also grow for waiting tasks" in page(people.owner, "?kind=cluster")
    settings.DEMAND_IS_SERVED = False
    assert "Also grow for waiting tasks" not in page(people.owner, "?kind=cluster")
    status, shown = sent(people.owner, ALONE | {"on_demand": "on"})
    assert (status, Execution.objects.count()) == (422, 0)
    assert "not set up here" in error_at(shown, "on_demand")


def test_with_a_fixed_number_nothing_of_the_hidden_fields_is_refused(people: People, offered: Project) -> None:
    fixed = {name: value for name, value in ALONE.items() if name != "autoscale"}
    status, _ = sent(people.owner, fixed | {"workers_minimum": "3", "workers_maximum": "x", "target_cpu": "-7"})
    assert status == 302
    assert Execution.objects.get().slots == 4


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("framework", "", "Choose a framework."),
        ("framework", "fortran", "This is not offered to you any more."),
        ("framework", "spark", "This is not offered to you any more."),  # no environment has it
        ("cluster_environment", "", "Choose an environment for the cluster."),
        ("cluster_environment", "<script>", "This is not offered to you any more."),
        ("cluster_environment", "jupyterlab", "This is not offered to you any more."),
        ("cluster_environment", "ray-cluster", "Ray does not contain Dask, only Ray"),
        ("head_tier", "", "Choose a hardware tier for the head."),
        ("head_tier", "none-such", "This is not offered to you any more."),
        ("worker_tier", "", "Choose a hardware tier for the workers."),
        ("workers_minimum", "", "Say how many workers it has at least."),
        ("workers_minimum", "0", "A cluster has at least one worker."),
        ("workers_minimum", "-1", "A cluster has at least one worker."),
        ("workers_minimum", "1e9", "“1e9” is not a whole number"),
        ("workers_minimum", "٣", "“٣” is not a whole number"),
        ("workers_minimum", "1_0", "“1_0” is not a whole number"),
        ("workers_minimum", "2.5", "“2.5” is not a whole number"),
        ("workers_minimum", "9" * 5000, "is not a whole number"),
        ("workers_minimum", "1\x00", "is not a whole number"),
        ("workers_maximum", "", "Say how many workers it may grow to."),
        ("workers_maximum", "0", "The most is less than the least"),
        ("workers_maximum", "25", "Choose at most 24 workers"),
        ("workers_maximum", "999999999", "Your admin allows at most 100 workers"),
        ("target_cpu", "101", "1 to 100 percent"),
        ("target_cpu", "-1", "1 to 100 percent"),
        ("target_memory", "19", "Your admin allows targets of 20 to 100 percent."),
        ("target_memory", "eighty", "“eighty” is not a whole number"),
        ("local_storage", "lots", "“lots” is not a quantity"),
        ("local_storage", "-1Gi", "more than zero"),
        ("local_storage", "20", "write the unit as well"),
        ("local_storage", "x" * 21, "at most 20 characters"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_launched(
    people: People, offered: Project, field: str, value: str, sentence: str
) -> None:
    status, shown = sent(people.owner, ALONE | {field: value})
    assert status == 422
    assert sentence in error_at(shown, field)
    assert not Execution.objects.exists()
    # The same while typing, for a workspace as well.
    if field != "framework":
        status, shown = sent(people.owner, ALONE | {field: value}, "/launch/estimate/")
        assert (status, sentence in error_at(shown, field)) == (200, True)
        assert sent(people.owner, ATTACHED | {field: value})[0] == 422


def test_a_refused_form_still_has_what_was_typed(people: People, offered: Project) -> None:
    _, shown = sent(people.owner, ATTACHED | {"workers_maximum": "7", "target_cpu": "x<y", "local_storage": "20Gi"})
    assert value_of(shown, "workers_maximum") == "7"
    assert value_of(shown, "target_cpu") == "x<y"
    assert value_of(shown, "local_storage") == "20Gi"
    assert re.search(r'name="with_cluster"[^>]* checked', shown)
    assert re.search(r'<option value="medium" selected>', shown)


def test_the_estimate_follows_what_is_typed(
    people: People, offered: Project, cluster: FakeCluster, runtime: Runtime
) -> None:
    cluster.put(NODES, builders.node("node-a", cpu="8", memory="32Gi"))
    fill(runtime, cluster)
    _, shown = sent(people.owner, ATTACHED | {"workers_minimum": "3", "workers_maximum": "9"}, "/launch/estimate/")
    assert "5 slots at minimum, 11 at maximum; you use 0 of 25." in shown
    assert re.findall(r"<td>([^<]+)</td>", shown) == ["5", "11", "2", "5", "$0.67", "$1.81"]
    assert "A node of the pool default (8 cores and 32 GiB of memory) takes 2 workers" in shown
    assert "<html" not in shown
    assert not Execution.objects.exists()


def test_the_estimate_shows_numbers_also_of_what_is_refused(people: People, offered: Project) -> None:
    _, shown = sent(people.owner, ALONE | {"workers_maximum": "40"}, "/launch/estimate/")
    assert "2 slots at minimum, 41 at maximum" in shown
    assert "one user may hold 25" in error_at(shown, "workers_maximum")
    _, shown = sent(people.owner, ALONE | {"workers_maximum": "0"}, "/launch/estimate/")
    assert "The numbers come when what is missing is filled in." in shown


def test_places_of_a_tier_are_taken_by_heads_and_workers(people: People, offered: Project) -> None:
    HardwareTier.objects.filter(pk="medium").update(maximum_simultaneous=2)
    assert sent(people.owner, ALONE | {"head_tier": "medium"})[0] == 302
    Execution.objects.update(slots_reserved_at=timezone.now())
    _, shown = sent(people.owner, ALONE, "/launch/estimate/")
    assert "This takes 1 place on the tier Medium, which runs at most 2 at once and 2 now" in shown
    assert "All 2 places of this tier are taken" in page(people.owner)


def test_a_tier_that_fits_no_node_is_refused_at_its_field(
    people: People, offered: Project, cluster: FakeCluster, runtime: Runtime
) -> None:
    cluster.put(NODES, builders.node("node-a", cpu="2", memory="8Gi"))
    fill(runtime, cluster)
    status, shown = sent(people.owner, ALONE)
    assert status == 422
    assert "it asks for 3.5 cores, but the largest node has 2" in error_at(shown, "worker_tier")


def test_versions_that_differ_are_said_and_not_refused(people: People, offered: Project) -> None:
    Environment.objects.filter(pk="jupyterlab").update(frameworks={"dask": "2025.1.0"})
    assert "JupyterLab has Dask 2025.1.0 and the cluster would have 2026.8.0" in page(people.owner)
    assert "would have" not in page(people.owner, "?kind=cluster")
    assert sent(people.owner, ATTACHED)[0] == 302


def test_choosing_another_framework_offers_what_is_for_it(people: People, offered: Project) -> None:
    configure(FRAMEWORK_SETTINGS["ray"]["target_cpu"].key, 60)
    make_tier("rays", name="Rays", kinds=["ray"])
    HardwareTier.objects.filter(pk="medium").update(kinds=["dask", "workspace"])
    typed = ALONE | {"framework": "ray", "workers_maximum": "9", "target_cpu": "80", "on_demand": "on"}
    _, shown = sent(people.owner, typed, "/launch/choices/")
    assert re.findall(r'<option value="([^"]+)"', shown) == ["ray-cluster", *["rays", "small"] * 2]
    assert (value_of(shown, "workers_maximum"), value_of(shown, "target_cpu")) == ("9", "60")
    assert re.search(r'name="on_demand"[^>]* checked', shown)
    status, shown = sent(people.owner, typed)
    assert status == 422
    assert "Medium is not for Ray clusters" in error_at(shown, "worker_tier")
    assert "Dask does not contain Ray" in error_at(shown, "cluster_environment")
    assert 'value="ray-cluster"' in shown


def test_a_tier_kept_for_a_group_is_neither_offered_nor_priced_nor_launched(people: People, offered: Project) -> None:
    special = make_tier("special", name="Special tier", cost_per_hour=Decimal("77"))
    special.groups.add(Group.objects.create(name="chosen few"))
    assert "Special tier" not in page(people.owner, "?kind=cluster")
    for path in ("/launch/", "/launch/estimate/", "/launch/choices/"):
        _, shown = sent(people.owner, ALONE | {"worker_tier": "special"}, path)
        assert "Special tier" not in shown
        assert "77" not in shown
    assert not Execution.objects.exists()


@pytest.mark.parametrize("who", ["stranger", "operator", "admin"])
@pytest.mark.parametrize("fields", [ALONE, ATTACHED])
def test_who_is_not_in_the_project_launches_no_cluster_in_it(
    people: People, offered: Project, who: str, fields: dict[str, str]
) -> None:
    user = getattr(people, who)
    make_project(user, id="own", name="Own")
    status, shown = sent(user, fields)
    assert status == 422
    assert "Choose one of your projects" in shown
    assert "Customer churn" not in sent(user, fields, "/launch/estimate/")[1]
    assert not Execution.objects.exists()


@pytest.mark.parametrize("path", ["/launch/estimate/", "/launch/choices/"])
def test_the_fragments_are_for_people_who_are_logged_in_and_forms_of_this_site(
    people: People, offered: Project, path: str
) -> None:
    assert Client().post(path, ALONE)["Location"].startswith("/login/")
    assert client_of(people.owner, enforce_csrf_checks=True).post(path, ALONE).status_code == 403
    assert client_of(people.owner).get(path).status_code == 405


@pytest.mark.parametrize("path", ["/launch/estimate/", "/launch/choices/"])
@pytest.mark.parametrize(
    "fields", [{}, {"kind": "cluster"}, {"kind": "app", **CLUSTER}, {"kind": "\x00"}, {"framework": "spark"}]
)
def test_half_a_form_is_answered(people: People, offered: Project, path: str, fields: dict[str, str]) -> None:
    assert sent(people.owner, fields, path)[0] == 200


def test_an_app_has_no_cluster(people: People, offered: Project) -> None:
    make_environment("shiny", name="Shiny", kind="app")
    assert 'name="with_cluster"' not in page(people.owner, "?kind=app")
    status, shown = sent(people.owner, ATTACHED | {"kind": "app", "environment": "shiny"})
    assert status == 422
    assert "No cluster like this is offered to you." in shown


def test_without_an_environment_for_clusters_none_is_offered(people: People, offered: Project) -> None:
    Environment.objects.filter(kind="cluster").update(is_visible=False)
    shown = page(people.owner)
    assert 'name="with_cluster"' not in shown
    assert "?kind=cluster" not in shown
    assert "htmx" not in re.sub(r"<meta[^>]*>", "", shown)
    status, shown = sent(people.owner, ATTACHED)
    assert status == 422
    assert "No cluster like this is offered to you." in shown
    assert "No environment is offered for this kind of work." in page(people.owner, "?kind=cluster")


def test_sending_the_same_twice_launches_one_pair_and_another_number_of_workers_another(
    people: People, offered: Project
) -> None:
    assert sent(people.owner, ATTACHED)[0] == sent(people.owner, ATTACHED)[0] == 302
    assert Execution.objects.count() == 2
    assert sent(people.owner, ATTACHED | {"workers_maximum": "4"})[0] == 302
    assert Execution.objects.count() == 4


def test_without_a_script_the_numbers_come_by_a_button_that_launches_nothing(people: People, offered: Project) -> None:
    status, shown = sent(people.owner, ALONE | {"workers_maximum": "8", "check": "on"})
    assert (status, Execution.objects.count()) == (200, 0)
    assert "2 slots at minimum, 9 at maximum" in shown
    assert 'name="check"' in shown


def test_launch_again_fills_in_the_cluster_alone_or_attached(people: People, offered: Project) -> None:
    fields = {
        "workers_minimum": "2",
        "workers_maximum": "7",
        "target_cpu": "65",
        "target_memory": "",
        "on_demand": "on",
    }
    assert sent(people.owner, ATTACHED | fields)[0] == 302
    workspace, cluster = Execution.objects.get(kind="workspace"), Execution.objects.get(kind="cluster")
    for shown in (page(people.owner, f"?from={workspace.pk}"), page(people.owner, f"?from={cluster.pk}")):
        names = ("workers_minimum", "workers_maximum", "target_cpu", "target_memory")
        assert [value_of(shown, name) for name in names] == ["2", "7", "65", "0"]
        assert re.search(r'name="on_demand"[^>]* checked', shown)
        assert re.search(r'<option value="medium" selected>', shown)
    assert re.search(r'name="with_cluster"[^>]* checked', page(people.owner, f"?from={workspace.pk}"))
    assert 'value="cluster"' in page(people.owner, f"?from={cluster.pk}")


def test_launch_again_without_autoscaling_keeps_the_number(people: People, offered: Project) -> None:
    fixed = {name: value for name, value in ALONE.items() if name != "autoscale"}
    sent(people.owner, fixed | {"workers_minimum": "3"})
    shown = page(people.owner, f"?from={Execution.objects.get().pk}")
    assert not re.search(r'name="autoscale"[^>]* checked', shown)
    assert "4 slots; you use 0 of 25." in shown


def test_launch_again_of_what_is_not_offered_any_more_takes_what_is(people: People, offered: Project) -> None:
    sent(people.owner, ALONE)
    HardwareTier.objects.filter(pk="medium").update(is_archived=True)
    Environment.objects.filter(pk="dask-cluster").update(is_archived=True)
    shown = page(people.owner, f"?from={Execution.objects.get().pk}")
    assert re.search(r'name="framework" value="ray" checked', shown)
    assert re.search(r'<option value="small" selected>', shown)
    Execution.objects.update(spec={"cluster": "nonsense"})
    assert "What it takes" in page(people.owner, f"?from={Execution.objects.get().pk}")


def test_launch_again_of_a_strangers_cluster_shows_nothing_of_it(people: People, offered: Project) -> None:
    sent(people.owner, ALONE | {"workers_minimum": "4", "title": "Secret plan"})
    make_project(people.stranger, id="own", name="Own")
    shown = page(people.stranger, f"?from={Execution.objects.get().pk}&kind=cluster")
    assert "Secret plan" not in shown
    assert value_of(shown, "workers_minimum") == "1"
