"""The launch form's cluster over HTTP: what is shown, what is launched and launched again, and what is refused."""

import re
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone
from pytest_django.fixtures import Settings

from grid.configuration import CLUSTER_SETTINGS, FRAMEWORK_SETTINGS, MAXIMUM_EXECUTIONS_PER_USER
from grid.executions.spec import parse_spec
from grid.kube.resources import NODES
from grid.models import ConfigRecord, Environment, Execution, HardwareTier, Project
from grid.runtime import Runtime
from tests.conftest import People, client_of
from tests.executions.executing import (
    ALONE,
    ATTACHED,
    CLUSTER,
    configure,
    error_at,
    make_environment,
    make_project,
    make_tier,
    offer_clusters,
    page,
    sent,
    value_of,
)
from tests.support import builders
from tests.support.cluster import FakeCluster
from tests.support.frozen import write_frozen
from tests.support.runtime import fill

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("runtime")]


@pytest.fixture
def offered(people: People) -> Project:
    return offer_clusters(people)


def test_standalone_cluster_is_launched_as_first_shown(people: People, offered: Project) -> None:
    assert "2 slots at minimum, 6 at maximum; you use 0 of 25." in page(people.owner, "?kind=cluster")
    status, _ = sent(people.owner, ALONE)
    execution = Execution.objects.get()
    assert (status, execution.kind, execution.slots) == (302, "cluster", 6)
    assert (execution.tier_id, execution.head_tier_id, execution.environment_id) == ("medium", "small", "dask-cluster")
    cluster = parse_spec(execution).cluster
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
    spec = parse_spec(cluster).cluster
    assert spec is not None
    assert (spec.local_storage, spec.scaling.on_demand) == ("20Gi", True)


def test_workspace_without_the_box_gets_no_cluster(people: People, offered: Project) -> None:
    fields = {name: value for name, value in ATTACHED.items() if name != "with_cluster"}
    status, _ = sent(people.owner, fields | {"workers_minimum": "-1", "framework": "nonsense"})
    assert status == 302
    assert [execution.kind for execution in Execution.objects.all()] == ["workspace"]


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


def test_repeated_form_launches_one_pair_and_changed_form_another(people: People, offered: Project) -> None:
    assert sent(people.owner, ATTACHED)[0] == sent(people.owner, ATTACHED)[0] == 302
    assert Execution.objects.count() == 2
    assert sent(people.owner, ATTACHED | {"workers_maximum": "4"})[0] == 302
    assert Execution.objects.count() == 4


def test_launch_again_fills_in_the_cluster_alone_or_attached(people: People, offered: Project) -> None:
    numbers = {"workers_minimum": "2", "workers_maximum": "7", "target_cpu": "65", "target_memory": ""}
    assert sent(people.owner, ATTACHED | numbers | {"on_demand": "on"})[0] == 302
    workspace, cluster = Execution.objects.get(kind="workspace"), Execution.objects.get(kind="cluster")
    for shown in (page(people.owner, f"?from={workspace.pk}"), page(people.owner, f"?from={cluster.pk}")):
        assert [value_of(shown, name) for name in numbers] == ["2", "7", "65", "0"]
        assert re.search(r'name="on_demand"[^>]* checked', shown)
        assert re.search(r'<option value="medium" selected>', shown)
    assert re.search(r'name="with_cluster"[^>]* checked', page(people.owner, f"?from={workspace.pk}"))
    assert 'value="cluster"' in page(people.owner, f"?from={cluster.pk}")


def test_launch_again_replaces_choices_no_longer_offered(people: People, offered: Project) -> None:
    sent(people.owner, ALONE)
    HardwareTier.objects.filter(pk="medium").update(is_archived=True)
    Environment.objects.filter(pk="dask-cluster").update(is_archived=True)
    shown = page(people.owner, f"?from={Execution.objects.get().pk}")
    assert re.search(r'name="framework" value="ray" checked', shown)
    assert re.search(r'<option value="small" selected>', shown)
    write_frozen(Execution.objects.get(), spec={"cluster": "nonsense"})
    assert "If you launch now" in page(people.owner, f"?from={Execution.objects.get().pk}")


def test_launch_again_of_foreign_cluster_reveals_nothing(people: People, offered: Project) -> None:
    sent(people.owner, ALONE | {"workers_minimum": "4", "title": "Secret plan"})
    make_project(people.stranger, id="own", name="Own")
    shown = page(people.stranger, f"?from={Execution.objects.get().pk}&kind=cluster")
    assert "Secret plan" not in shown
    assert value_of(shown, "workers_minimum") == "1"


# --- While it is typed ---


def test_the_estimate_follows_what_is_typed(
    people: People, offered: Project, cluster: FakeCluster, runtime: Runtime
) -> None:
    cluster.put(NODES, builders.node("node-a", cpu="8", memory="32Gi"))
    fill(runtime, cluster)
    _, shown = sent(people.owner, ATTACHED | {"workers_minimum": "3", "workers_maximum": "9"}, "/launch/estimate/")
    assert "5 slots at minimum, 11 at maximum; you use 0 of 25." in shown
    assert re.findall(r"<td>([^<]+)</td>", shown) == ["5", "11", "2", "5", "$0.67", "$1.81"]
    assert "A node of the pool default (8 cores and 32 GiB of memory after overhead) takes 2 workers" in shown
    assert "<html" not in shown
    assert not Execution.objects.exists()


def test_form_warns_of_cluster_unlike_the_notebook(people: People, offered: Project) -> None:
    for id, python in (("jupyterlab", "3.12"), ("dask-cluster", "3.9")):
        environment = Environment.objects.get(pk=id)
        environment.image = f"ghcr.io/dask/dask:2026.8.0-py{python}"
        environment.save()
    _, shown = sent(people.owner, ATTACHED, "/launch/estimate/")
    assert "has Python 3.12 and the cluster would have 3.9; Dask asks for the same software on both sides." in shown
    assert "Dask: It needs Python 3.10 or later, and the environment has Python 3.9." in shown
    assert sent(people.owner, ATTACHED)[0] == 302, "it is said, and not refused"


def test_the_estimate_shows_numbers_also_of_what_is_refused(people: People, offered: Project) -> None:
    _, shown = sent(people.owner, ALONE | {"workers_maximum": "40"}, "/launch/estimate/")
    assert "2 slots at minimum, 41 at maximum" in shown
    assert "one user may hold 25" in error_at(shown, "workers_maximum")
    _, shown = sent(people.owner, ALONE | {"workers_maximum": "0"}, "/launch/estimate/")
    assert "Fill in what is missing to see the numbers." in shown


def test_places_of_tier_are_taken_by_heads_and_workers(
    people: People, offered: Project, cluster: FakeCluster, runtime: Runtime
) -> None:
    cluster.put(NODES, builders.node("node-a", cpu="8", memory="32Gi"))
    fill(runtime, cluster)
    HardwareTier.objects.update(maximum_simultaneous=1)
    assert sent(people.owner, ALONE)[0] == 302
    Execution.objects.update(slots_reserved_at=timezone.now())
    _, shown = sent(people.owner, ALONE, "/launch/estimate/")
    assert "This takes 1 place on the tier Small, which runs at most 1 at once and 1 now" in shown
    assert "This takes 1 place on the tier Medium, which runs at most 1 at once and 1 now" in shown
    assert "The only place of this tier is taken" in page(people.owner)


def test_button_brings_numbers_without_script_or_launch(people: People, offered: Project) -> None:
    status, shown = sent(people.owner, ALONE | {"workers_maximum": "8", "check": "on"})
    assert (status, Execution.objects.count()) == (200, 0)
    assert "2 slots at minimum, 9 at maximum" in shown
    assert 'name="check"' in shown


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


@pytest.mark.parametrize("path", ["/launch/estimate/", "/launch/choices/"])
def test_fragments_need_a_form_token(people: People, offered: Project, path: str) -> None:
    assert client_of(people.owner, enforce_csrf_checks=True).post(path, ALONE).status_code == 403
    assert client_of(people.owner).get(path).status_code == 405


@pytest.mark.parametrize("path", ["/launch/estimate/", "/launch/choices/"])
@pytest.mark.parametrize(
    "fields", [{}, {"kind": "cluster"}, {"kind": "app", **CLUSTER}, {"kind": "\x00"}, {"framework": "spark"}]
)
def test_half_a_form_is_answered(people: People, offered: Project, path: str, fields: dict[str, str]) -> None:
    assert sent(people.owner, fields, path)[0] == 200


def test_disabled_autoscaling_is_not_offered_and_refused_when_forged(people: People, offered: Project) -> None:
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


def test_growth_on_demand_is_offered_only_where_served(people: People, offered: Project, settings: Settings) -> None:
    assert "Also grow for waiting tasks" in page(people.owner, "?kind=cluster")
    settings.DEMAND_IS_SERVED = False
    assert "Also grow for waiting tasks" not in page(people.owner, "?kind=cluster")
    status, shown = sent(people.owner, ALONE | {"on_demand": "on"})
    assert (status, Execution.objects.count()) == (422, 0)
    assert "not set up here" in error_at(shown, "on_demand")


def test_hidden_fields_of_a_fixed_cluster_are_not_checked(people: People, offered: Project) -> None:
    fixed = {name: value for name, value in ALONE.items() if name != "autoscale"}
    status, _ = sent(people.owner, fixed | {"workers_minimum": "3", "workers_maximum": "x", "target_cpu": "-7"})
    assert status == 302
    assert Execution.objects.get().slots == 4


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("framework", "", "Choose a framework."),
        ("framework", "fortran", "This is no longer available to you."),
        ("cluster_environment", "<script>", "This is no longer available to you."),
        ("cluster_environment", "ray-cluster", "Ray does not contain Dask, only Ray"),
        ("head_tier", "", "Choose a hardware tier for the head."),
        ("workers_minimum", "", "Enter the minimum number of workers."),
        ("workers_minimum", "1e9", "“1e9” is not a whole number"),
        ("workers_minimum", "٣", "“٣” is not a whole number"),
        ("workers_minimum", "9" * 5000, "is not a whole number"),
        ("workers_minimum", "1\x00", "is not a whole number"),
        ("workers_maximum", "0", "The maximum is less than the minimum"),
        ("target_memory", "eighty", "“eighty” is not a whole number"),
        ("local_storage", "x" * 21, "at most 20 characters"),
    ],
)
def test_wrong_value_is_explained_at_its_field_without_launch(
    people: People, offered: Project, field: str, value: str, sentence: str
) -> None:
    status, shown = sent(people.owner, ALONE | {field: value})
    assert status == 422
    assert sentence in error_at(shown, field)
    assert not Execution.objects.exists()


def test_a_refused_form_still_has_what_was_typed(people: People, offered: Project) -> None:
    _, shown = sent(people.owner, ATTACHED | {"workers_maximum": "7", "target_cpu": "x<y", "local_storage": "20Gi"})
    assert value_of(shown, "workers_maximum") == "7"
    assert value_of(shown, "target_cpu") == "x<y"
    assert value_of(shown, "local_storage") == "20Gi"
    assert re.search(r'name="with_cluster"[^>]* checked', shown)
    assert re.search(r'<option value="medium" selected>', shown)


def test_tier_that_fits_no_node_is_refused_at_field(
    people: People, offered: Project, cluster: FakeCluster, runtime: Runtime
) -> None:
    cluster.put(NODES, builders.node("node-a", cpu="2", memory="8Gi"))
    fill(runtime, cluster)
    status, shown = sent(people.owner, ALONE)
    assert status == 422
    assert "Medium asks for 3.5 cores and" in error_at(shown, "worker_tier")


def test_group_tier_is_neither_offered_nor_priced_nor_launched(people: People, offered: Project) -> None:
    special = make_tier("special", name="Special tier", cost_per_hour=Decimal("77.53"))
    special.groups.add(Group.objects.create(name="chosen few"))
    assert "Special tier" not in page(people.owner, "?kind=cluster")
    for path in ("/launch/", "/launch/estimate/", "/launch/choices/"):
        _, shown = sent(people.owner, ALONE | {"worker_tier": "special"}, path)
        assert "Special tier" not in shown
        assert "77.5" not in shown
    assert not Execution.objects.exists()


@pytest.mark.parametrize(("who", "fields"), [("stranger", ALONE), ("operator", ATTACHED), ("admin", ALONE)])
def test_nonmember_launches_no_cluster_in_the_project(
    people: People, offered: Project, who: str, fields: dict[str, str]
) -> None:
    user = getattr(people, who)
    make_project(user, id="own", name="Own")
    status, shown = sent(user, fields)
    assert status == 422
    assert "Choose one of your projects" in shown
    assert "Customer churn" not in sent(user, fields, "/launch/estimate/")[1]
    assert not Execution.objects.exists()


def test_an_app_has_no_cluster(people: People, offered: Project) -> None:
    make_environment("shiny", name="Shiny", kind="app")
    assert 'name="with_cluster"' not in page(people.owner, "?kind=app")
    status, shown = sent(people.owner, ATTACHED | {"kind": "app", "environment": "shiny"})
    assert status == 422
    assert "A cluster like this is not available to you." in shown


def test_without_an_environment_for_clusters_none_is_offered(people: People, offered: Project) -> None:
    Environment.objects.filter(kind="cluster").update(is_visible=False)
    shown = page(people.owner)
    assert 'name="with_cluster"' not in shown
    assert "?kind=cluster" not in shown
    status, shown = sent(people.owner, ATTACHED)
    assert status == 422
    assert "A cluster like this is not available to you." in shown
    assert "No environment is offered for this kind of work." in page(people.owner, "?kind=cluster")
