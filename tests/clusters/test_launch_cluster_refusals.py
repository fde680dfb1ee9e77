"""What the launch form refuses of a cluster: each problem at its field, what is not offered, and everything to strangers."""

import re
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group
from pytest_django.fixtures import Settings

from grid.configuration import FRAMEWORK_SETTINGS
from grid.kube.resources import NODES
from grid.models import Environment, Execution, Project
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import (
    ALONE,
    ATTACHED,
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
from tests.support.runtime import fill

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("runtime")]


@pytest.fixture
def offered(people: People) -> Project:
    return offer_clusters(people)


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
