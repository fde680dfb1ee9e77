"""How a person wants to see tables: kept by the browser, and as saved views of filters, order and columns, for one person alone."""

import re
from typing import Any

import pytest
from django.test import Client

from dashboard.shell.viewmodels.saved_views import (
    NAME_LENGTH,
    TABLES,
    checked_name,
    checked_query,
    hidden_columns,
    hidden_cookie,
    table_view,
)
from dashboard.shell.views.saved_views import MOST_VIEWS, save_view
from grid.models import SavedView
from tests.conftest import People, client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("runtime")]
ALL = [str(number) for number in range(2, 13)]


def saved(client: Client, name: str = "Mine", query: str = "?status=running&sort=-cpu", **fields: Any) -> str:
    """Save a view and return where the browser is sent."""
    answer = client.post("/views/", {"table": "executions", "name": name, "query": query, **fields})
    assert answer.status_code == 302
    return str(answer["Location"])


def text_of(client: Client, path: str) -> str:
    return str(client.get(path).content.decode())


def test_saved_view_opens_with_filters_order_and_columns(people: People) -> None:
    client = client_of(people.owner)
    client.cookies[hidden_cookie("executions")] = "4.5"
    assert saved(client) == "/executions/?status=running&sort=-cpu"
    client.cookies[hidden_cookie("executions")] = ""
    view = SavedView.objects.get()
    assert f'href="/views/{view.pk}/"' in text_of(client, "/executions/")
    answer = client.get(f"/views/{view.pk}/")
    assert answer["Location"] == "/executions/?status=running&sort=-cpu"
    page = text_of(client, answer["Location"])
    assert "hide-4 hide-5" in page
    assert re.search(r'aria-current="true"><bdi>Mine</bdi>', page)


@pytest.mark.parametrize(
    ("table", "query", "kept"),
    [
        ("executions", "?show=ended&status=succeeded&before=x&kind=job", "?kind=job"),
        ("executions", "sort=name;drop&kind=<b>&next=//evil.test", "?sort=age"),
        ("executions", "text=%00a%22%3E%3Cscript%3E", "?text=a%22%3E%3Cscript%3E"),
        ("ended", "status=succeeded&after=5", "?show=ended&status=succeeded"),
        ("ended", "", "?show=ended&sort=ended"),
        ("nodes", "?state=removable&pool=gpu&page=3&x=y", "?pool=gpu&state=removable"),
    ],
)
def test_saved_query_holds_only_what_page_understands(table: str, query: str, kept: str) -> None:
    answered = checked_query(table, query)
    assert answered == kept
    assert checked_query(table, answered) == answered


def test_query_changed_in_database_is_not_trusted(people: People) -> None:
    view = SavedView.objects.create(
        user=people.owner, table="executions", name="x", query="//evil.test/?kind=job&status=<script>", hidden="2.<b>"
    )
    client = client_of(people.owner)
    answer = client.get(f"/views/{view.pk}/")
    assert answer["Location"].startswith("/executions/?")
    assert "evil" not in answer["Location"]
    assert "<script>" not in answer["Location"]
    assert "<b>" not in text_of(client, answer["Location"])


def test_nobody_sees_or_changes_the_views_of_others(people: People) -> None:
    save_view(people.owner.pk, "executions", "Secret name", "?kind=job", hidden="", is_default=True)
    view = SavedView.objects.get()
    other = client_of(people.admin)
    assert "Secret name" not in text_of(other, "/executions/")
    assert "Secret name" not in text_of(other, "/palette/?q=secret")
    assert other.get("/executions/").status_code == 200  # and is not sent to somebody else's default
    assert other.get(f"/views/{view.pk}/").status_code == 404
    for action in ("default", "delete"):
        assert other.post(f"/views/{view.pk}/{action}/", {"default": ""}).status_code == 404
    view.refresh_from_db()
    assert view.is_default


def test_page_opens_with_default_view_and_can_be_cleared(people: People) -> None:
    client, path, cleared = client_of(people.admin), "/executions/?show=ended", "/executions/?show=ended&sort=ended"
    client.post("/views/", {"table": "ended", "name": "Mine", "query": "?show=ended&kind=job", "default": "1"})
    client.post("/views/", {"table": "ended", "name": "Other", "query": "?text=other", "default": "1"})
    mine, other = SavedView.objects.get(name="Mine"), SavedView.objects.get(name="Other")
    assert (mine.is_default, other.is_default) == (False, True)
    client.post(f"/views/{mine.pk}/default/", {"default": "1"})
    assert client.get(path)["Location"] == "/executions/?show=ended&kind=job"
    assert cleared.replace("&", "&amp;") in text_of(client, client.get(path)["Location"])
    assert client.get(cleared).status_code == 200
    client.post(f"/views/{mine.pk}/default/", {"default": ""})
    assert client.get(path).status_code == 200


def test_names_are_escaped_and_bounded(people: People) -> None:
    client = client_of(people.owner)
    saved(client, "<script>alert(1)</script>")
    page = text_of(client, "/executions/?status=running&sort=-cpu")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    for name in ("", "   ", "\u202e\u200b", "x" * (NAME_LENGTH + 1)):
        assert saved(client, name) == "/executions/?status=running&sort=-cpu"
    assert SavedView.objects.count() == 1
    assert checked_name("a\u202eb\n c") == "ab c"


def test_somebody_has_a_bounded_number_of_views(people: People) -> None:
    client = client_of(people.owner)
    for number in range(MOST_VIEWS):
        save_view(people.owner.pk, "executions", f"{number}", "?kind=job", hidden="", is_default=False)
    saved(client, "one more")
    assert SavedView.objects.count() == MOST_VIEWS
    saved(client, "7", "?kind=app")
    assert SavedView.objects.get(name="7").query == "?kind=app"
    answer = client.post(f"/views/{SavedView.objects.get(name='0').pk}/delete/", {"query": "?user=bob&x=y"})
    assert answer["Location"] == "/executions/?user=bob"
    saved(client, "one more")
    assert SavedView.objects.filter(name="one more").exists()


@pytest.mark.parametrize("query", ["?text=" + "x" * 30_000, "&".join(f"a{number}=1" for number in range(200))])
def test_a_query_without_end_is_refused(people: People, query: str) -> None:
    assert saved(client_of(people.owner), query=query) == "/executions/?sort=age"
    assert not SavedView.objects.exists()


def test_views_of_nodes_are_for_those_who_see_nodes(people: People) -> None:
    fields = {"table": "nodes", "name": "Mine", "query": "?pool=gpu"}
    assert client_of(people.owner).post("/views/", fields).status_code == 403
    assert client_of(people.operator).post("/views/", fields)["Location"] == "/infrastructure/?pool=gpu"
    assert client_of(people.operator).post("/views/", {**fields, "table": "no such"}).status_code == 403


def test_a_form_of_another_site_saves_nothing(people: People) -> None:
    client = client_of(people.owner, enforce_csrf_checks=True)
    assert client.post("/views/", {"table": "executions", "name": "x", "query": ""}).status_code == 403


def chosen(client: Client, **fields: object) -> str:
    answer = client.post("/table-view/", {"table": "executions", "next": "/executions/?status=running", **fields})
    return str(answer["Location"])


def test_columns_and_density_persist_and_return_keeps_filter(people: People) -> None:
    client = client_of(people.owner)
    assert (
        chosen(client, column=[number for number in ALL if number != "4"], density="compact")
        == "/executions/?status=running"
    )
    page = client.get("/executions/").content.decode()
    assert 'class="table table-fixed table-lines compact hide-4 table-executions"' in page
    chosen(client, column=ALL)
    assert "table-lines  table-executions" in client.get("/executions/").content.decode()


def test_the_name_is_never_hidden() -> None:
    assert hidden_columns("executions", []).split(".") == ALL
    view = table_view("executions", {hidden_cookie("executions"): "1.2"})
    assert view.css == "hide-2"


@pytest.mark.parametrize("cookie", ["", "x", "1.99.-3", "2.2", "<b>", "." * 500])
def test_invalid_cookie_hides_what_it_can(cookie: str) -> None:
    assert table_view("nodes", {hidden_cookie("nodes"): cookie}).css in ("", "hide-2")


@pytest.mark.parametrize("fields", [{"table": "nonsense"}, {"next": "//elsewhere.test/"}])
def test_nobody_is_sent_elsewhere_and_unknown_tables_are_ignored(people: People, fields: dict[str, str]) -> None:
    assert chosen(client_of(people.owner), **fields) in ("/executions/?status=running", "/")


def test_the_columns_are_those_of_the_pages(people: People) -> None:
    page = client_of(people.admin).get("/executions/").content.decode()
    head = page[page.index("<thead>") : page.index("</thead>")]
    assert [title for title in TABLES["executions"] if f">{title}</a>" in head] == list(TABLES["executions"])
