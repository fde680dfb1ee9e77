"""Workspaces in page tests: asked for, resumed, and given further executions."""

import html
import re
from datetime import timedelta
from typing import Any

from grid.models import Execution, State, User, Workspace
from tests.conftest import client_of
from tests.executions.executing import make_execution
from tests.support.builders import MOMENT


def page(user: User, path: str) -> str:
    answer = client_of(user).get(path)
    assert answer.status_code == 200, answer
    return html.unescape(re.sub(r"\s+", " ", answer.content.decode()))


def sent(user: User, path: str, **fields: str) -> tuple[int, str]:
    answer = client_of(user).post(path, fields)
    return answer.status_code, answer.get("Location") or html.unescape(answer.content.decode())


def resume(user: User, workspace: Workspace, **fields: str) -> tuple[int, str]:
    return sent(user, f"/workspaces/{workspace.pk}/resume/", **{"environment": "jupyterlab", "tier": "small", **fields})


def live(workspace: Workspace, state: State = State.RUNNING, **fields: Any) -> Execution:
    """A further execution of it."""
    later = MOMENT + timedelta(minutes=1)
    values: dict[str, Any] = {"workspace": workspace, "requested_at": later, "title": workspace.title, **fields}
    return make_execution(workspace.owner, workspace.project, state=state, **values)
