"""The demonstration's page: there only where it may be, and each button asks the embedded cluster for what it says."""

from html import unescape

import pytest
from django.template.loader import render_to_string
from django.test import Client
from pytest_django.fixtures import Settings

from dashboard.viewmodels.demonstration import FAILURES, Failure, demonstration_view
from grid.errors import ClusterUnavailable
from grid.runtime import Runtime
from tests.conftest import People
from tests.dashboard.browsing import client_of
from tests.support.cluster import POPULATION, FakeCluster
from tests.support.golden import assert_golden


@pytest.fixture
def embedded(cluster: FakeCluster, runtime: Runtime, settings: Settings) -> FakeCluster:
    settings.DEMO = True
    cluster.sandbox = POPULATION
    return cluster


def test_the_page_shows_how_it_is_and_all_that_can_go_wrong(embedded: FakeCluster, admin: Client) -> None:
    page = unescape(admin.get("/demonstration/").content.decode())
    assert "Now 50 nodes and 1,500 pods; 12,345 changes since the start." in page
    assert "Out of stock: cpu." in page
    assert all(failure.title in page and failure.seen in page for failure in FAILURES)
    assert '<option value="gpu">' in page


def test_the_sliders_ask_for_another_size_and_rate(embedded: FakeCluster, admin: Client) -> None:
    page = admin.post("/demonstration/size/", {"pods": "3000", "churn": "40"}, follow=True).content.decode()
    assert embedded.asked_of_sandbox[0] == ("PATCH", "population", {"pods": 3000, "churn": 40})
    assert "On the way to 3,000 pods with 40 changes a second." in page


@pytest.mark.parametrize(
    "wrong",
    [{"pods": "many", "churn": "1"}, {"pods": "1"}, {"pods": "150001", "churn": "1"}, {"pods": "²", "churn": "1"}],
)
def test_a_size_that_makes_no_sense_is_not_asked_for(
    embedded: FakeCluster, admin: Client, wrong: dict[str, str]
) -> None:
    page = admin.post("/demonstration/size/", wrong, follow=True).content.decode()
    assert "Choose between 0 and 150,000 pods" in page
    assert [asked for asked in embedded.asked_of_sandbox if asked[0] != "GET"] == []


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_each_button_asks_for_its_failure_and_says_where_it_is_seen(
    embedded: FakeCluster, admin: Client, failure: Failure
) -> None:
    form = {"failure": failure.name, "pool": "cpu", "seconds": "15"}
    page = unescape(admin.post("/demonstration/failure/", form, follow=True).content.decode())
    body: dict[str, object] = {"pool": "cpu"} if failure.choice == "pool" else {}
    body |= {"seconds": 15} if failure.choice == "seconds" else {}
    assert embedded.asked_of_sandbox[0] == ("POST", f"failures/{form['failure']}", body)
    assert f"{failure.title}. {failure.seen}" in page


def test_what_the_page_does_not_offer_does_not_exist(embedded: FakeCluster, admin: Client) -> None:
    assert admin.post("/demonstration/failure/", {"failure": "earthquake"}).status_code == 404


@pytest.mark.parametrize("path", ["", "size/", "failure/"])
def test_there_is_no_such_page_without_the_demonstration_or_on_another_cluster(
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


def test_only_admins_of_a_demonstration_find_it_in_the_navigation(
    embedded: FakeCluster, admin: Client, people: People, settings: Settings
) -> None:
    assert "/demonstration/" in admin.get("/account/").content.decode()
    assert "/demonstration/" not in client_of(people.operator).get("/account/").content.decode()
    settings.DEMO = False
    assert "/demonstration/" not in admin.get("/account/").content.decode()


def test_a_cluster_that_does_not_answer_is_said_in_words(
    embedded: FakeCluster, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*args: object) -> object:
        raise ClusterUnavailable("The cluster does not answer.")

    monkeypatch.setattr(embedded, "ask_sandbox", silent)
    answer = admin.get("/demonstration/")
    assert answer.status_code == 503
    assert "The embedded cluster does not answer just now" in answer.content.decode()
    page = admin.post("/demonstration/failure/", {"failure": "taint"}, follow=True).content.decode()
    assert "did not take it" in page


@pytest.mark.parametrize("part", ["population", "failures"])
def test_each_part_looks_as_it_did(part: str) -> None:
    html = render_to_string(
        f"dashboard/fragments/{part}.html", {"x": demonstration_view(POPULATION), "seconds": (5, 15, 60)}
    )
    assert_golden(f"demonstration-{part}", html)
