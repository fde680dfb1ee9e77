"""Sharing an app over HTTP. Who gets which answer is told by `tests/access/answers.txt`."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from grid.models import AppShare, Execution, PortShare, State, Workspace
from tests.conftest import People, execution_page
from tests.executions.executing import make_execution, make_project, make_workspace
from tests.workspaces.workspaces import live, page, sent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]


@pytest.fixture
def app(people: People) -> Execution:
    return make_execution(
        people.owner, make_project(people.owner, people.teammate), kind="app", title="Churn dashboard"
    )


def test_owner_chooses_by_name_who_opens_an_app(people: People, app: Execution) -> None:
    path, teammate = f"/executions/{app.pk}/share/", people.teammate
    assert f'href="{path}"' in execution_page(people.owner, app)
    assert f'href="{path}"' not in execution_page(teammate, app)
    assert "/open/" not in execution_page(teammate, app)
    shown = page(people.owner, path)
    assert teammate.get_username() in shown and "replaces the header Authorization" in shown
    assert people.stranger.get_username() not in shown
    assert sent(people.owner, path, members=str(teammate.pk)) == (302, f"/executions/{app.pk}/")
    opened = execution_page(teammate, app)
    assert f"/executions/{app.pk}/open/" in opened
    assert f'<dt>Shared with</dt><dd class="break">{teammate.get_username()}</dd>' in opened
    assert "shared it with" in execution_page(people.owner, app)
    assert sent(people.owner, path) == (302, f"/executions/{app.pk}/")
    assert "/open/" not in execution_page(teammate, app)


def test_returning_member_regains_no_earlier_share(people: People, app: Execution) -> None:
    AppShare.objects.create(execution=app, user=people.teammate)
    app.project.assign(owner=people.owner, contributors=[people.teammate], viewers=[])
    assert AppShare.objects.exists()
    app.project.assign(owner=people.owner, contributors=[], viewers=[])
    app.project.assign(owner=people.owner, contributors=[people.teammate], viewers=[])
    assert not AppShare.objects.exists()
    assert "/open/" not in execution_page(people.teammate, app)


@pytest.fixture
def workspace(people: People) -> Workspace:
    return make_workspace(people.owner, make_project(people.owner, people.teammate))


@pytest.fixture
def running(workspace: Workspace) -> Execution:
    return live(workspace)


def test_owner_shares_an_app_by_name_and_revokes_it(people: People, workspace: Workspace, running: Execution) -> None:
    path, mate = f"/workspaces/{workspace.pk}/share/", people.teammate
    assert path in page(people.owner, f"/workspaces/{workspace.pk}/")
    asked = page(people.owner, path)
    assert mate.get_username() in asked and "replaces the header Authorization" in asked
    assert people.stranger.get_username() not in asked
    fields = {"port": "8501", "name": "Sales <b>", "members": str(mate.pk), "hours": "8"}
    assert sent(people.owner, path, **fields) == (302, path)
    share = PortShare.objects.get()
    assert "Sales <b>, port 8501, with" in page(people.owner, path).replace("<bdi>", "").replace("</bdi>", "")
    open_path = f"/executions/{share.pk}/open/"
    assert open_path in page(mate, "/")
    assert open_path not in page(people.stranger, "/")
    status, address = sent(mate, open_path)
    assert (status, f"//{share.pk}." in address) == (302, True)
    assert sent(mate, f"/executions/{running.pk}/open/")[0] == 403
    assert sent(people.owner, f"/workspaces/{workspace.pk}/unshare/", share=share.pk)[0] == 302
    assert open_path not in page(mate, "/")
    assert sent(mate, open_path)[0] == 403


def test_another_workspaces_share_is_not_taken_back(people: People, workspace: Workspace, running: Execution) -> None:
    share = PortShare.objects.create(execution=running, port=8501, name="Sales")
    other = make_workspace(people.teammate, running.project)
    sent(people.teammate, f"/workspaces/{other.pk}/unshare/", share=share.pk)
    assert PortShare.objects.exists()


@pytest.mark.parametrize("asked", ["", "\x00", "port\x00", "é", "' OR 1=1 --"])
def test_invalid_share_id_is_not_queried(people: People, workspace: Workspace, asked: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert sent(people.owner, f"/workspaces/{workspace.pk}/unshare/", share=asked)[0] == 302
    assert not [query for query in queries if "portshare" in query["sql"]], "PostgreSQL would refuse NUL"


def test_refused_share_is_explained_at_its_field(people: People, workspace: Workspace, running: Execution) -> None:
    path, mate = f"/workspaces/{workspace.pk}/share/", str(people.teammate.pk)
    good = {"port": "8501", "name": "Sales", "members": mate, "hours": "0"}
    for wrong in ({"port": "80"}, {"port": "x"}, {"members": str(people.stranger.pk)}, {"hours": "9999"}):
        status, answer = sent(people.owner, path, **{**good, **wrong})
        assert (status, "field-error" in answer) == (422, True), wrong
    Execution.objects.filter(pk=running.pk).update(state=State.STOPPING)
    assert "does not run" in page(people.owner, path)
    status, answer = sent(people.owner, path, **good)
    assert (status, "does not run" in answer) == (422, True)
    assert not PortShare.objects.exists()
