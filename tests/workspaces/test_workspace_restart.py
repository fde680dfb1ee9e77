"""Restarting and cloning a workspace over HTTP. Who gets which answer is told by `tests/access/answers.txt`."""

import re

import pytest

from grid.models import Execution, State, Workspace
from grid.runtime import Runtime
from tests.conftest import People
from tests.executions.executing import read_executions
from tests.shell.browsing import execution_page
from tests.support.builders import MOMENT
from tests.workspaces.workspaces import live, page, sent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]


def test_the_owner_restarts_a_running_workspace_after_a_question(people: People, stopped: Workspace) -> None:
    execution = live(stopped)
    restart = f"/workspaces/{stopped.pk}/restart/"
    assert restart in execution_page(people.owner, execution)
    assert restart not in execution_page(people.teammate, execution)
    assert "What is only in the program’s memory is lost" in page(people.owner, restart)
    assert sent(people.owner, restart) == (302, f"/executions/{execution.pk}/")
    assert sent(people.owner, restart) == (302, f"/executions/{execution.pk}/")
    stopped.refresh_from_db()
    execution.refresh_from_db()
    assert None not in (stopped.restart_requested_at, execution.stop_requested_at)


def test_pages_show_restarting_without_conflicting_actions(
    people: People, stopped: Workspace, runtime: Runtime
) -> None:
    execution = live(stopped)
    sent(people.owner, f"/workspaces/{stopped.pk}/restart/")
    for shown in (execution_page(people.owner, execution), page(people.owner, f"/workspaces/{stopped.pk}/")):
        assert "Restarting" in shown
        assert '/restart/"' not in shown
    Execution.objects.filter(pk=execution.pk).update(state=State.STOPPED, ended_at=MOMENT, settled_at=MOMENT)
    read_executions(runtime)
    ended = execution_page(people.owner, execution)
    assert "launched again as soon as its pod is gone" in ended
    assert f"/workspaces/{stopped.pk}/resume/" not in ended + page(people.owner, "/")


def test_the_old_executions_page_leads_to_the_new_one(people: People, stopped: Workspace) -> None:
    execution = live(stopped)
    first = Execution.objects.exclude(pk=execution.pk).get()
    shown = execution_page(people.owner, first)
    assert f'<a class="button button-main" href="/executions/{execution.pk}/">Show its new execution</a>' in shown
    assert "Resume" not in shown


def test_a_restart_is_taken_back_while_it_still_stops(people: People, stopped: Workspace) -> None:
    live(stopped)
    sent(people.owner, f"/workspaces/{stopped.pk}/restart/")
    cancel = f"/workspaces/{stopped.pk}/restart/cancel/"
    assert cancel in page(people.owner, f"/workspaces/{stopped.pk}/")
    assert cancel not in page(people.teammate, f"/workspaces/{stopped.pk}/")
    assert sent(people.owner, cancel) == (302, f"/workspaces/{stopped.pk}/")
    assert cancel not in page(people.owner, f"/workspaces/{stopped.pk}/")


def test_stopped_workspace_says_why_restart_failed(people: People, stopped: Workspace) -> None:
    status, where = sent(people.owner, f"/workspaces/{stopped.pk}/restart/")
    assert (status, where) == (302, f"/workspaces/{stopped.pk}/")
    Workspace.objects.update(restart_problem="The tier Small is no longer available; choose another.")
    shown = page(people.owner, f"/workspaces/{stopped.pk}/")
    assert "It was not started again: The tier Small is no longer available" in shown


@pytest.mark.parametrize("has_history", [True, False])
def test_clone_is_a_filled_form_with_another_title(people: People, stopped: Workspace, has_history: bool) -> None:
    Workspace.objects.update(title="Explore & more")
    Execution.objects.update(title="Explore & more")
    if not has_history:
        Execution.objects.all().delete()
    shown = page(people.owner, f"/workspaces/{stopped.pk}/")
    (href,) = {
        part.split('"')[0] for part in shown.split('href="') if part.startswith("/launch/?") and "copy" in part[:120]
    }
    form = page(people.owner, href)
    assert 'value="Explore & more copy"' in form
    assert re.search(rf'value="{stopped.environment_id}"[^>]*checked', form)
    assert Workspace.objects.count() == 1, "nothing is launched yet"
