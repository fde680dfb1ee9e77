"""What the launch form says while a cluster is typed: the estimate, and the choices that another framework brings."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.executions.launch_facts import running_by_tier
from grid.configuration import FRAMEWORK_SETTINGS
from grid.kube.resources import NODES
from grid.models import Environment, Execution, HardwareTier, Project
from grid.models.dataplane import LOCAL
from grid.queue.quota import admit
from grid.queue.snapshot import take
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import make_tier
from tests.executions.launching import (
    ALONE,
    ATTACHED,
    CLUSTER,
    configure,
    error_at,
    offer_clusters,
    page,
    sent,
    value_of,
)
from tests.shell.browsing import client_of
from tests.support import builders
from tests.support.cluster import FakeCluster
from tests.support.runtime import fill

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("runtime")]


@pytest.fixture
def offered(people: People) -> Project:
    return offer_clusters(people)


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


def test_form_and_queue_agree_about_places(people: People, offered: Project) -> None:
    HardwareTier.objects.filter(pk="medium").update(maximum_simultaneous=1)
    on_one_tier = ALONE | {"head_tier": "medium"}
    assert "on the tier Medium" not in sent(people.owner, on_one_tier, "/launch/estimate/")[1]
    assert sent(people.owner, on_one_tier)[0] == 302
    queue = take(LOCAL, now=timezone.now())
    assert admit(queue.snapshot).admitted == tuple(queue.units)
    Execution.objects.update(slots_reserved_at=timezone.now())
    assert running_by_tier() == {"medium": 1}


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
def test_fragments_need_a_login_and_a_form_token(people: People, offered: Project, path: str) -> None:
    assert Client().post(path, ALONE)["Location"].startswith("/login/")
    assert client_of(people.owner, enforce_csrf_checks=True).post(path, ALONE).status_code == 403
    assert client_of(people.owner).get(path).status_code == 405


@pytest.mark.parametrize("path", ["/launch/estimate/", "/launch/choices/"])
@pytest.mark.parametrize(
    "fields", [{}, {"kind": "cluster"}, {"kind": "app", **CLUSTER}, {"kind": "\x00"}, {"framework": "spark"}]
)
def test_half_a_form_is_answered(people: People, offered: Project, path: str, fields: dict[str, str]) -> None:
    assert sent(people.owner, fields, path)[0] == 200
