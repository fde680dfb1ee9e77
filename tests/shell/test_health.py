"""Probes, and what every answer has in common: never under the workspaces' host name, parts of files as they are, its policy."""

import html
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path
from pytest_django import DjangoAssertNumQueries, Settings

from grid.kube.resources import EVENTS
from grid.metrics.sources import MetricsApi
from grid.models.dataplane import LOCAL
from grid.runtime import Runtime, lives_of, new_runtime, started
from tests.access.policy import STRICT, nonce_of, policy_of
from tests.conftest import People, client_of
from tests.support.cluster import FakeCluster
from tests.support.runtime import using_runtime
from tests.support.virtual import cancelled, until, virtual_time


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    runtime = new_runtime({LOCAL: FakeCluster()})
    with using_runtime(runtime):
        yield runtime


def synced(runtime: Runtime) -> None:
    stores: tuple[Any, ...] = (runtime.pods, runtime.nodes, runtime.events, runtime.config_maps, runtime.autoscalers)
    for store in stores:
        store.mark_synced(runtime.monotonic())


def test_readiness_does_not_need_the_cluster(db: None, client: Client, runtime: Runtime) -> None:
    assert client.get("/readyz").json() == {"status": "ok", "problems": []}


def test_without_its_tables_it_is_not_ready(db: None, client: Client, runtime: Runtime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE grid_execution RENAME TO elsewhere")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "has it been migrated?" in answer.json()["problems"][0]


def test_where_nothing_can_be_written_it_is_not_ready(
    db: None, client: Client, runtime: Runtime, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    (problem,) = answer.json()["problems"]
    assert problem.startswith("Nothing can be written to the temporary folder")
    assert problem in caplog.text


def test_freshness_fails_before_first_lists_and_names_caches(client: Client, runtime: Runtime) -> None:
    answer = client.get("/freshz")
    assert answer.status_code == 503
    assert "The cache pods has not been filled yet." in answer.json()["problems"]


def test_freshness_holds_when_all_caches_follow(client: Client, runtime: Runtime) -> None:
    synced(runtime)
    assert client.get("/freshz").json() == {"status": "ok", "problems": []}


def test_freshness_fails_with_broken_watch_and_hides_cluster_words(client: Client, runtime: Runtime) -> None:
    synced(runtime)
    runtime.pods.mark_failed("The API server at 10.0.0.1 cannot be reached.")
    answer = client.get("/freshz")
    assert answer.status_code == 503
    assert answer.json()["problems"] == ["The cache pods is 0 s behind the cluster."]


def test_missing_right_keeps_readiness_and_is_shown_on_pages(admin_client: Client) -> None:
    """As where `deploy/access.yaml` was applied in part: every replica is refused the same list."""
    refusal = 'events is forbidden: User "web" cannot list resource "events" in API group "" at the cluster scope'
    sentence = "The right to list events in the whole cluster is missing: an admin of the cluster has to apply deploy/access.yaml."

    @virtual_time
    async def follow(runtime: Runtime) -> None:
        lives = lives_of(runtime, MetricsApi)
        del lives["executions"]  # the database is the test's
        tasks = started(lives)
        await until(lambda: runtime.pods.freshness(0).synced and sentence in runtime.events.freshness(0).error)
        for task in tasks:
            await cancelled(task)

    cluster = FakeCluster()
    cluster.forbidden[EVENTS] = refusal
    with using_runtime(new_runtime({LOCAL: cluster}, monotonic=lambda: 0.0)) as runtime:
        follow(runtime)
        assert admin_client.get("/readyz").status_code == 200
        assert admin_client.get("/freshz").json()["problems"] == ["The cache events has not been filled yet."]
        page = admin_client.get("/infrastructure/")
    assert page.status_code == 200
    assert html.escape(sentence) in page.text


@pytest.mark.parametrize(("host", "status"), [("localhost:8000", 302), ("127.0.0.1:8000", 200)])
def test_workspaces_host_leads_elsewhere(db: None, client: Client, settings: Settings, host: str, status: int) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
    settings.DASHBOARD_ORIGIN, settings.WORKSPACE_ORIGIN = "http://127.0.0.1:8000", "http://localhost:8001"
    answer = client.get("/login/?next=/tiers/", headers={"host": host})
    assert answer.status_code == status
    if status == 302:
        assert answer["Location"] == "http://127.0.0.1:8000/login/?next=/tiers/"


def test_partial_file_is_not_compressed(db: None, client: Client) -> None:
    answer = client.get("/static/dashboard.css", headers={"accept-encoding": "gzip", "range": "bytes=0-99"})
    assert (answer.status_code, answer.get("Content-Encoding")) == (206, None)
    assert b"".join(answer.streaming_content) == Path("static/dashboard.css").read_bytes()[:100]  # type: ignore[attr-defined]


def test_probe_reads_no_session(
    people: People, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client.force_login(people.owner)
    with django_assert_num_queries(0):
        answer = client.get("/healthz")
    assert "Cookie" not in answer.get("Vary", "")


UNSTORED = "no-store, private"


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("broken")


def shared(request: HttpRequest) -> HttpResponse:
    return HttpResponse("all of it", headers={"Cache-Control": "public, max-age=60"})


urlpatterns = [path("broken/", broken), path("shared/", shared), path("", include("grid.urls"))]


@pytest.mark.urls("tests.shell.test_health")
def test_failed_and_careless_pages_are_not_stored(people: People) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(people.owner)
    answers = {page: client.get(f"/{page}/") for page in ("broken", "shared", "no-such")}
    assert {page: (answer.status_code, answer["Cache-Control"]) for page, answer in answers.items()} == {
        "broken": (500, UNSTORED),
        "shared": (200, UNSTORED),
        "no-such": (404, UNSTORED),
    }


def test_redirects_and_foreign_hosts_are_not_stored(db: None, client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    redirect = Client().get("/account/")
    settings.SECURE_SSL_REDIRECT = False
    refusal = client.get("/account/", headers={"host": "evil.example"})
    assert [(answer.status_code, answer["Cache-Control"]) for answer in (redirect, refusal)] == [
        (301, UNSTORED),
        (400, UNSTORED),
    ]


def test_a_nonce_is_of_one_answer(people: People) -> None:
    client = Client()
    nonces = {nonce_of(client.get("/login/")) for _ in range(5)}
    assert len(nonces) == 5
    assert "" not in nonces


def test_admin_may_run_only_files_of_this_host(people: People) -> None:
    admin = client_of(people.admin)
    for address in (
        "/admin/",
        "/admin/grid/user/add/",
        "/admin/auth/group/",
        f"/admin/grid/user/{people.owner.pk}/change/",
    ):
        answer = admin.get(address)
        assert answer.status_code == 200
        assert policy_of(answer) == {**STRICT, "script-src": "'self'"}


def test_no_template_needs_what_the_policy_forbids() -> None:
    inline = re.compile(
        r"<style|\sstyle=|<script(?![^>]*\ssrc=)|<script(?![^>]*\snonce=)|\son[a-z]+=|javascript:", re.I
    )
    offending = [
        str(path) for path in Path("templates").rglob("*.html") if inline.search(path.read_text(encoding="utf-8"))
    ]
    assert offending == []
