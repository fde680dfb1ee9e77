"""The Open button: the owner is handed over, everybody else learns nothing."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from grid.models import Execution, WorkspaceGrant
from grid.sharing.grants import digest, exchange_ticket
from tests.conftest import People


def main_of(answer: Any) -> str:
    """The page without its frame, whose forms carry tokens and the address itself."""
    return str(answer.content.decode().partition("<main")[2].partition("</main>")[0])


def test_owner_is_redirected_to_other_origin_with_working_ticket(
    client: Client, people: People, execution: Execution
) -> None:
    client.force_login(people.owner)
    answer = client.post(f"/executions/{execution.pk}/open/")
    assert answer.status_code == 302
    assert answer["Location"] == f"http://{execution.pk}.localhost:8001/__grid__/begin"
    answer = client.get(f"/executions/{execution.pk}/opening/?opener={digest('kept')}")
    assert answer["Referrer-Policy"] == "no-referrer"
    target = urlsplit(answer["Location"])
    assert (target.netloc, target.path) == (f"{execution.pk}.localhost:8001", "/__grid__/open")
    ticket = parse_qs(target.query)["ticket"][0]
    assert exchange_ticket(execution.pk, ticket, "kept", now=WorkspaceGrant.objects.get().created_at)


@pytest.mark.parametrize("who", ["teammate", "stranger", "operator", "admin"])
def test_others_see_the_same_as_for_missing_execution(
    client: Client, people: People, execution: Execution, who: str
) -> None:
    client.force_login(getattr(people, who))
    answer = client.post(f"/executions/{execution.pk}/open/")
    nothing = client.post("/executions/nothing/open/")
    ticket = client.get(f"/executions/{execution.pk}/opening/?opener={digest('kept')}")
    assert answer.status_code == nothing.status_code == 403
    assert main_of(answer) == main_of(nothing) == main_of(ticket) != ""
    assert not WorkspaceGrant.objects.exists()


@pytest.mark.parametrize("opener", ["", "short", "Z" * 64, "a" * 65, "a" * 64 + "\n"])
def test_a_ticket_needs_the_opener_of_a_browser(
    client: Client, people: People, execution: Execution, opener: str
) -> None:
    client.force_login(people.owner)
    assert client.get(f"/executions/{execution.pk}/opening/", {"opener": opener}).status_code == 403
    assert not WorkspaceGrant.objects.exists()


def test_opening_is_a_post(client: Client, people: People, execution: Execution) -> None:
    client.force_login(people.owner)
    assert client.get(f"/executions/{execution.pk}/open/").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(people.owner)
    assert strict.post(f"/executions/{execution.pk}/open/").status_code == 403
    assert not WorkspaceGrant.objects.exists()
