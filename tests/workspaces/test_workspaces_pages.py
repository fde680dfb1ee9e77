"""Workspaces over HTTP: home and the list show each once with its button, resuming asks what it needs, and what cannot be is said in words.

Who gets which answer is told by `tests/access/answers.txt`.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.urls import Resolver404, resolve

from dashboard.workspaces.viewmodels.workspaces import fitting_button
from dashboard.workspaces.workspace_records import EXECUTIONS_PER_PAGE, PER_PAGE
from grid.models import Environment, Execution, HardwareTier, Project, State, User, Workspace
from grid.runtime import Runtime
from tests.conftest import People, client_of, execution_page
from tests.executions.executing import make_execution, make_project, make_tier, make_workspace, read_executions
from tests.shell.live import connected
from tests.support.builders import MOMENT
from tests.workspaces.workspaces import live, page, resume, sent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
HOSTILE = "<script>alert(1)</script>"


def test_home_shows_workspace_once_with_the_fitting_button(
    people: People, stopped: Workspace, runtime: Runtime
) -> None:
    resume_link, explore = f'formaction="/workspaces/{stopped.pk}/resume/"', re.compile("<strong>Explore</strong>")
    read_executions(runtime)
    shown = page(people.owner, "/")
    assert len(explore.findall(shown)) == 1
    assert "Stopped" in shown
    assert resume_link in shown
    execution = live(stopped)
    read_executions(runtime)
    shown = page(people.owner, "/")
    assert len(explore.findall(shown)) == 1
    assert f'form="open-form" formaction="/executions/{execution.pk}/open/"' in shown
    assert resume_link not in shown


def test_home_is_of_ones_own(people: People, stopped: Workspace, runtime: Runtime) -> None:
    make_execution(people.owner, stopped.project, title="Busy")
    read_executions(runtime)
    shown = page(people.teammate, "/")
    assert "Explore" not in shown
    assert "Busy" not in shown


async def test_home_follows_a_workspace_that_stops(
    people: People, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.home.page.READ_SECONDS", 1e9)  # so that only the execution's change makes it look

    def running() -> Execution:
        execution = live(make_workspace(people.owner, make_project(people.owner)))
        read_executions(runtime)
        return execution

    def stop(execution: Execution) -> None:
        Execution.objects.filter(pk=execution.pk).update(state=State.STOPPED, ended_at=MOMENT, settled_at=MOMENT)
        read_executions(runtime)

    execution = await sync_to_async(running)()
    async with connected("/live/home/", people.owner) as socket:
        assert f"/executions/{execution.pk}/open/" in await socket.message()
        await sync_to_async(stop)(execution)
        assert f"/workspaces/{execution.workspace_id}/resume/" in await socket.message_about("Resume")


@pytest.mark.parametrize(
    ("state", "contributes", "button"),
    [("preparing", True, "stop"), ("running", True, "open"), ("running", False, "stop"), ("stopping", True, "")],
)
def test_the_button_fits_the_state(state: str, contributes: bool, button: str) -> None:
    assert fitting_button(state, contributes=contributes) == button


def test_ones_workspaces_are_paged_the_latest_launched_first(people: People, project: Project) -> None:
    for number in range(PER_PAGE + 2):
        at = MOMENT + timedelta(minutes=number)
        make_workspace(people.owner, project, title=f"No {number}.", requested_at=at)
    assert 'href="/workspaces/"' in page(people.owner, "/")
    shown = page(people.owner, "/workspaces/")
    assert shown.index(f"No {PER_PAGE + 1}.") < shown.index(f"No {PER_PAGE}.") < shown.index("No 2.")
    assert "No 1." not in shown
    older = re.search(r'href="(\?before=\w+)"', shown)
    assert older
    rest = page(people.owner, f"/workspaces/{older[1]}")
    assert rest.index("No 1.") < rest.index("No 0.")
    assert "No 2." not in rest


def test_workspace_page_lists_executions_newest_first_in_pages(people: People, stopped: Workspace) -> None:
    ids = [stopped.pk]
    for number in range(1, EXECUTIONS_PER_PAGE + 1):
        at = MOMENT + timedelta(minutes=number)
        ids.append(live(stopped, State.STOPPED, requested_at=at, ended_at=at, settled_at=at).pk)
    path = f"/workspaces/{stopped.pk}/"
    assert re.findall(r'href="/executions/(\w+)/"', page(people.teammate, path)) == ids[:0:-1]
    assert re.findall(r'href="/executions/(\w+)/"', page(people.teammate, f"{path}?before={ids[1]}")) == ids[:1]


@pytest.mark.parametrize("strange", ["%00a", "%F0%9F%92%A5", "A", "x" * 17])
def test_invalid_id_is_neither_page_nor_cursor(people: People, stopped: Workspace, strange: str) -> None:
    client = client_of(people.owner)
    for path in ("workspaces/{}/", "workspaces/{}/resume/", "executions/{}/", "executions/{}/stop/"):
        with pytest.raises(Resolver404):
            resolve("/" + unquote(path.format(strange)))
        assert client.get("/" + path.format(strange)).status_code == 404
    for path in ("/workspaces/?before={}", f"/workspaces/{stopped.pk}/?before={{}}", "/launch/?from={}"):
        assert client.get(path.format(strange)).status_code == 200


def test_resume_leads_to_new_execution_and_repeat_is_harmless(people: People, stopped: Workspace) -> None:
    shown = page(people.owner, f"/workspaces/{stopped.pk}/resume/")
    assert re.search(r'value="small" required checked', shown)
    first, second = resume(people.owner, stopped), resume(people.owner, stopped)
    execution = Execution.objects.unsettled().get(workspace=stopped)
    assert first == second == (302, f"/executions/{execution.pk}/")
    assert (execution.state, execution.title) == (State.QUEUED, "Explore")
    answer = client_of(people.owner).get(f"/workspaces/{stopped.pk}/resume/", follow=True)
    assert answer.redirect_chain == [(f"/executions/{execution.pk}/", 302)]
    assert "This workspace has not ended: here it is." in answer.content.decode()


def test_ended_execution_offers_resume_or_launching_a_copy(people: People, stopped: Workspace) -> None:
    execution = Execution.objects.get()
    mine, theirs = execution_page(people.owner, execution), execution_page(people.teammate, execution)
    assert f'href="/workspaces/{stopped.pk}/resume/"' in mine
    assert "Launch again" not in mine
    assert f'href="/launch/?from={execution.pk}"' in theirs
    for shown in (mine, theirs):
        assert f'href="/workspaces/{stopped.pk}/"' in shown


def test_an_archived_tier_is_told_and_another_is_chosen(people: People, stopped: Workspace) -> None:
    make_tier("other", is_default=True)
    HardwareTier.objects.filter(pk="small").update(is_archived=True)
    shown = page(people.owner, f"/workspaces/{stopped.pk}/resume/")
    assert "This hardware tier is no longer available; choose another." in shown
    assert re.search(r'value="other" required checked', shown)
    status, refusal = resume(people.owner, stopped)
    assert status == 422
    assert "This hardware tier is not available to you; choose another." in refusal
    assert resume(people.owner, stopped, tier="other")[0] == 302
    assert Execution.objects.unsettled().get().tier_id == "other"


def test_workspace_on_lost_node_explains_and_offers_relaunch(
    people: People, project: Project, runtime: Runtime
) -> None:
    lost: dict[str, Any] = {"state": State.ERROR, "settled_at": None, "slots_reserved_at": MOMENT}
    workspace = make_workspace(people.owner, project, **lost)
    read_executions(runtime)
    own, again = f"/workspaces/{workspace.pk}/", f'href="/launch/?from={workspace.pk}"'
    for path in ("/", "/workspaces/", own, f"/executions/{workspace.pk}/", f"{own}resume/"):
        shown = page(people.owner, path)
        assert "It cannot be resumed yet: its last pod is not confirmed gone." in shown, path
        assert again in shown, path
        assert ">Resume<" not in shown, path
    assert "in a moment" not in resume(people.owner, workspace)[1]
    assert sent(people.owner, f"{own}rename/", title="Lost") == (302, own)
    Execution.objects.update(settled_at=MOMENT, slots_reserved_at=None)
    read_executions(runtime)
    for path in ("/", "/workspaces/", own, f"/executions/{workspace.pk}/"):
        shown = page(people.owner, path)
        assert f'href="{own}resume/"' in shown, path
        assert "until its last pod" not in shown, path
    assert resume(people.owner, workspace)[0] == 302


def test_a_hostile_title_is_shown_as_text_everywhere(people: People, project: Project, runtime: Runtime) -> None:
    workspace = make_workspace(people.owner, project, title=HOSTILE)
    read_executions(runtime)
    own = f"/workspaces/{workspace.pk}/"
    execution = f"/executions/{workspace.pk}/"
    for path in ("/", "/workspaces/", own, f"{own}resume/", f"{own}delete/", execution):
        shown = client_of(people.owner).get(path).content.decode()
        assert "&lt;script&gt;" in shown, path
        assert HOSTILE not in shown, path


def test_stopped_workspace_is_renamed_on_its_page(people: People, stopped: Workspace) -> None:
    path = f"/workspaces/{stopped.pk}/rename/"
    assert sent(people.owner, path, title=" Second try ") == (302, f"/workspaces/{stopped.pk}/")
    renamed = client_of(people.owner).post(path, {"title": "Second try"}, follow=True)
    assert "Renamed to Second try." in renamed.content.decode()
    status, refusal = sent(people.owner, path, title="x" * 121)
    assert status == 422
    assert "Use at most 120 characters; these are 121." in refusal
    live(stopped)
    shown = page(people.owner, f"/workspaces/{stopped.pk}/")
    assert "rename" not in shown
    assert "This workspace is running." in shown
    status, refusal = sent(people.owner, path, title="Third")
    assert (status, "It has not ended yet. Stop it first." in refusal) == (422, True)
    stopped.refresh_from_db()
    assert stopped.title == "Second try"


def test_deleting_asks_first_and_says_what_stays(people: People, stopped: Workspace) -> None:
    path = f"/workspaces/{stopped.pk}/delete/"
    shown = page(people.owner, path)
    assert "Its executions stay in the history." in shown
    assert "No file is deleted" in shown
    execution = live(stopped)
    status, refusal = sent(people.owner, path)
    assert (status, "It has not ended yet. Stop it first." in refusal) == (422, True)
    Execution.objects.filter(pk=execution.pk).update(state=State.STOPPED, ended_at=MOMENT, settled_at=MOMENT)
    assert sent(people.owner, path) == sent(people.owner, path) == (302, "/workspaces/")
    assert sent(people.teammate, path)[0] == 404
    assert Execution.objects.count() == 2
    assert client_of(people.owner).get(f"/workspaces/{stopped.pk}/").status_code == 404


def test_a_foreign_site_can_do_nothing(people: People, stopped: Workspace) -> None:
    client = client_of(people.owner, enforce_csrf_checks=True)
    for action in ("resume", "rename", "delete"):
        assert client.post(f"/workspaces/{stopped.pk}/{action}/").status_code == 403


# --- Restarting and cloning ---


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


# --- Resuming with one click ---


def resume_at_once(user: User, workspace: Workspace) -> tuple[int, str]:
    return sent(user, f"/workspaces/{workspace.pk}/resume/", as_launched="on")


def test_one_click_resumes_on_the_same_tier(people: People, stopped: Workspace) -> None:
    make_tier("other", is_default=True)
    for path in ("/", "/workspaces/", f"/workspaces/{stopped.pk}/"):
        shown = page(people.owner, path)
        assert 'name="as_launched"' in shown, path
        assert f'form="resume-form" formaction="/workspaces/{stopped.pk}/resume/"' in shown, path
        assert f'href="/workspaces/{stopped.pk}/resume/">Other choices' in shown, path
    first, second = resume_at_once(people.owner, stopped), resume_at_once(people.owner, stopped)
    execution = Execution.objects.unsettled().get(workspace=stopped)
    assert first == second == (302, f"/executions/{execution.pk}/")
    assert (execution.tier_id, execution.environment_id) == ("small", "jupyterlab")


def test_only_the_owner_resumes_with_one_click(people: People, stopped: Workspace) -> None:
    assert resume_at_once(people.teammate, stopped)[0] == 403
    assert resume_at_once(people.stranger, stopped)[0] == 404
    assert not Execution.objects.unsettled().exists()
    assert "Other choices" not in page(people.teammate, f"/workspaces/{stopped.pk}/")


def archive_tier() -> str:
    HardwareTier.objects.filter(pk="small").update(is_archived=True)
    return "This hardware tier is no longer available; choose another."


def limit_tier() -> str:
    HardwareTier.objects.get(pk="small").groups.add(Group.objects.create(name="gpu-team"))
    return "Small is limited to certain groups; choose another, or ask your admin."


def archive_environment() -> str:
    Environment.objects.update(is_archived=True)
    return "This environment is no longer available; choose another."


@pytest.mark.parametrize("take_away", [archive_tier, limit_tier, archive_environment])
def test_resume_says_why_same_launch_is_impossible_and_leads_to_other_choices(
    people: People, stopped: Workspace, take_away: Callable[[], str]
) -> None:
    make_tier("other", is_default=True)
    reason = take_away()
    for path in ("/", "/workspaces/", f"/workspaces/{stopped.pk}/"):
        shown = page(people.owner, path)
        assert reason in shown, path
        assert f'href="/workspaces/{stopped.pk}/resume/">Other choices' in shown, path
        assert 'form="resume-form"' not in shown, path
    status, refusal = resume_at_once(people.owner, stopped)
    assert status == 422
    assert "Choose" in refusal or "choose" in refusal
    assert not Execution.objects.unsettled().exists()
