"""Sharing an app over HTTP. Who gets which answer is told by `tests/access/answers.txt`."""

import pytest

from grid.models import AppShare, Execution
from tests.conftest import People
from tests.executions.executing import make_execution, make_project
from tests.shell.browsing import execution_page
from tests.workspaces.workspaces import page, sent

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
