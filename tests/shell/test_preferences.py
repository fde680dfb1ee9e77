"""How a person wants to see tables, kept by the browser."""

import pytest
from django.test import Client

from dashboard.shell.viewmodels.saved_views import TABLES, hidden_columns, hidden_cookie, table_view
from tests.conftest import People
from tests.shell.browsing import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("runtime")]
ALL = [str(number) for number in range(2, 13)]


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
