"""The demonstration's page: there only where it may be, and each button asks the embedded cluster for what it says."""

import asyncio
from html import unescape
from typing import Any
from unittest.mock import AsyncMock

import pytest
from django.template.loader import render_to_string
from django.test import Client
from pytest_django.fixtures import Settings

from dashboard.demonstration.views import FAILURES, MOST_CHURN, MOST_PODS, FailureButton, demonstration_view
from grid.core.errors import ClusterUnavailable, Conflict
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime, look_for_sandbox, new_runtime
from grid.sandbox.population import plan
from tests.conftest import People, client_of
from tests.support.cluster import POPULATION, FakeCluster
from tests.support.golden import assert_golden


@pytest.fixture
def embedded(cluster: FakeCluster, runtime: Runtime, settings: Settings) -> FakeCluster:
    settings.DEMO = True
    cluster.sandbox, runtime.has_sandbox = POPULATION, True
    return cluster


def test_page_shows_the_population_and_all_failures(embedded: FakeCluster, admin: Client) -> None:
    page = unescape(admin.get("/demonstration/").content.decode())
    assert "Now 50 nodes and 1,500 pods; 12,345 changes since the start." in page
    assert "Out of stock: cpu." in page
    assert all(failure.title in page and failure.seen in page for failure in FAILURES)
    assert '<option value="gpu">' in page


def test_the_sliders_ask_for_another_size_and_rate(embedded: FakeCluster, admin: Client) -> None:
    page = admin.post("/demonstration/size/", {"pods": "3000", "churn": "40"}, follow=True).content.decode()
    assert embedded.asked_of_sandbox[0] == ("PATCH", "population", {"pods": 3000, "churn": 40})
    assert "Changing to 3,000 pods and 40 changes a second." in page


@pytest.mark.parametrize(
    "wrong",
    [{"pods": "many", "churn": "1"}, {"pods": "1"}, {"pods": "150001", "churn": "1"}, {"pods": "²", "churn": "1"}],
)
def test_invalid_size_is_not_requested(embedded: FakeCluster, admin: Client, wrong: dict[str, str]) -> None:
    page = admin.post("/demonstration/size/", wrong, follow=True).content.decode()
    assert "Choose between 0 and 150,000 pods" in page
    assert [asked for asked in embedded.asked_of_sandbox if asked[0] != "GET"] == []


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_failure_button_requests_failure_and_says_where_to_look(
    embedded: FakeCluster, admin: Client, failure: FailureButton
) -> None:
    form = {"failure": failure.name, "pool": "cpu", "seconds": "15"}
    page = unescape(admin.post("/demonstration/failure/", form, follow=True).content.decode())
    body: dict[str, object] = {"pool": "cpu"} if failure.choice == "pool" else {}
    body |= {"seconds": 15} if failure.choice == "seconds" else {}
    assert embedded.asked_of_sandbox[0] == ("POST", f"failures/{form['failure']}", body)
    assert f"{failure.title}. {failure.seen}" in page


def test_unknown_failure_is_not_found(embedded: FakeCluster, admin: Client) -> None:
    assert admin.post("/demonstration/failure/", {"failure": "earthquake"}).status_code == 404


@pytest.mark.parametrize("path", ["", "size/", "failure/"])
def test_page_exists_only_in_demonstration_on_embedded_cluster(
    embedded: FakeCluster, admin: Client, settings: Settings, path: str
) -> None:
    def status() -> int:
        if not path:
            return admin.get("/demonstration/").status_code
        form = {"pods": "1", "churn": "1", "failure": "taint"}
        return int(admin.post(f"/demonstration/{path}", form).status_code)

    assert status() in (200, 302)
    embedded.sandbox = None
    assert status() == 404
    embedded.sandbox, settings.DEMO = POPULATION, False
    assert status() == 404


def test_navigation_shows_demonstration_only_to_its_admins(
    embedded: FakeCluster, admin: Client, people: People, settings: Settings, runtime: Runtime
) -> None:
    assert "/demonstration/" in admin.get("/account/").content.decode()
    assert "/demonstration/" not in client_of(people.operator).get("/account/").content.decode()
    runtime.has_sandbox = False
    assert "/demonstration/" not in admin.get("/account/").content.decode()
    runtime.has_sandbox, settings.DEMO = True, False
    assert "/demonstration/" not in admin.get("/account/").content.decode()


@pytest.mark.parametrize("sandbox", [POPULATION, None])
async def test_embedded_cluster_is_probed_until_it_answers(
    sandbox: dict[str, object] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, waited = FakeCluster(), asyncio.Event()
    cluster.sandbox = sandbox
    runtime = new_runtime({LOCAL: cluster})
    answering = cluster.ask_sandbox
    monkeypatch.setattr(cluster, "ask_sandbox", AsyncMock(side_effect=ClusterUnavailable("Not yet.")))

    async def wait(_: float) -> None:
        monkeypatch.setattr(cluster, "ask_sandbox", answering)
        waited.set()

    looking = asyncio.create_task(look_for_sandbox(runtime, sleep=wait))
    await waited.wait()
    await asyncio.sleep(0.01)
    assert runtime.has_sandbox is (sandbox is not None)
    assert not looking.done()
    looking.cancel()


def test_empty_population_offers_no_failure_and_says_so(embedded: FakeCluster, admin: Client) -> None:
    embedded.sandbox = {**POPULATION, "nodes": 0, "pods": 0, "pools": []}
    page = admin.get("/demonstration/").content.decode()
    assert "Nothing can fail yet: add some pods first." in page
    assert page.count('<button type="submit" disabled>') == 6
    assert "<option>No pool yet</option>" in page


def test_failure_without_target_is_reported_in_words_of_cluster(
    embedded: FakeCluster, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering = embedded.ask_sandbox

    async def refuse(method: Any, path: str, body: Any = None) -> dict[str, Any]:
        if method == "POST":
            raise Conflict("Nothing can fail yet: add some pods first.")
        return await answering(method, path, body)

    monkeypatch.setattr(embedded, "ask_sandbox", refuse)
    page = admin.post("/demonstration/failure/", {"failure": "taint"}, follow=True).content.decode()
    assert "Nothing can fail yet: add some pods first." in page
    assert "did not take it" not in page


def test_a_slider_never_shows_less_than_there_is() -> None:
    wanted = {"nodes": 50, "pods": 1550, "churn": 500.4}
    pods, churn = demonstration_view({**POPULATION, "wanted": wanted})["sliders"]
    assert (pods.value, pods.value % pods.step) == (1550, 0)
    assert churn.most >= churn.value == 501


def test_page_limits_equal_those_of_embedded_cluster() -> None:
    assert (MOST_PODS, MOST_CHURN) == (plan.MOST_PODS, plan.MOST_CHURN)


def test_unresponsive_cluster_is_reported_in_words(
    embedded: FakeCluster, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*args: object) -> object:
        raise ClusterUnavailable("The cluster does not answer.")

    monkeypatch.setattr(embedded, "ask_sandbox", silent)
    answer = admin.get("/demonstration/")
    assert answer.status_code == 503
    assert "The embedded cluster does not answer now" in answer.content.decode()
    page = admin.post("/demonstration/failure/", {"failure": "taint"}, follow=True).content.decode()
    assert "did not take it" in page


@pytest.mark.parametrize("part", ["population", "failures"])
def test_each_part_looks_as_it_did(part: str) -> None:
    html = render_to_string(
        f"demonstration/fragments/{part}.html", {"x": demonstration_view(POPULATION), "seconds": (5, 15, 60)}
    )
    assert_golden(f"demonstration-{part}", html)
