"""The launch form's cluster over HTTP: what is shown first, what is launched, alone and attached, and launching it again."""

import re

import pytest

from grid.configuration import CLUSTER_SETTINGS, MAXIMUM_EXECUTIONS_PER_USER
from grid.executions.spec import parse_spec
from grid.models import ConfigRecord, Environment, Execution, HardwareTier, Project
from tests.conftest import People
from tests.executions.executing import make_project
from tests.executions.launching import ALONE, ATTACHED, configure, offer_clusters, page, sent, value_of
from tests.shell.browsing import client_of
from tests.support.frozen import write_frozen

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("runtime")]


@pytest.fixture
def offered(people: People) -> Project:
    return offer_clusters(people)


def test_standalone_cluster_is_launched_as_first_shown(people: People, offered: Project) -> None:
    shown = page(people.owner, "?kind=cluster")
    assert "2 slots at minimum, 6 at maximum; you use 0 of 25." in shown
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


def test_two_clicks_make_one_to_five_workers(people: People, offered: Project) -> None:
    shown = page(people.owner)
    names = ("workers_minimum", "workers_maximum", "target_cpu", "target_memory")
    assert [value_of(shown, name) for name in names] == ["1", "5", "80", "80"]
    assert re.search(r'name="framework" value="dask" checked', shown)
    assert not re.search(r'name="with_cluster"[^>]* checked', shown)
    assert "Workers for this workspace" in shown


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


def test_hint_of_a_maximum_is_what_can_be_launched(people: People, offered: Project) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER.key, 25)
    assert "Your quota allows up to 24 workers." in page(people.owner, "?kind=cluster")
    assert "Your quota allows up to 23 workers." in page(people.owner)
    assert sent(people.owner, ATTACHED | {"workers_maximum": "23"})[0] == 302
    assert sent(people.owner, ATTACHED | {"workers_maximum": "24"})[0] == 422


def test_versions_that_differ_are_said_and_not_refused(people: People, offered: Project) -> None:
    Environment.objects.filter(pk="jupyterlab").update(frameworks={"dask": "2025.1.0"})
    assert "JupyterLab has Dask 2025.1.0 and the cluster would have 2026.8.0" in page(people.owner, "?with_cluster=on")
    assert "would have" not in page(people.owner, "?kind=cluster")
    assert sent(people.owner, ATTACHED)[0] == 302


def test_repeated_form_launches_one_pair_and_changed_form_another(people: People, offered: Project) -> None:
    assert sent(people.owner, ATTACHED)[0] == sent(people.owner, ATTACHED)[0] == 302
    assert Execution.objects.count() == 2
    assert sent(people.owner, ATTACHED | {"workers_maximum": "4"})[0] == 302
    assert Execution.objects.count() == 4


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
