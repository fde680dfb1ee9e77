"""People in front of the dashboard: their clients, and the text of the pages that they get."""

from typing import Any

from django.test import Client

from grid.models import Execution, User


def client_of(user: User, **options: Any) -> Client:
    """Logged in."""
    client = Client(**options)
    client.force_login(user)
    return client


def execution_page(user: User, execution: Execution, rest: str = "") -> str:
    answer = client_of(user).get(f"/executions/{execution.pk}/{rest}")
    assert answer.status_code == 200
    return str(answer.content.decode())
