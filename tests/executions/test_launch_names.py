"""The names that the launch form suggests: of what is launched, and never in place of what was typed."""

import pytest

from grid.executions.names import free_name, names_in_use, unnumbered
from grid.models import Execution, Project, State, Workspace
from tests.conftest import People, client_of
from tests.executions.executing import FORM, make_environment, make_execution, make_project, make_tier, page
from tests.support.builders import MOMENT


@pytest.mark.parametrize(
    ("taken", "name"),
    [
        ([], "JupyterLab"),
        (["VS Code"], "JupyterLab"),
        (["jupyterlab"], "JupyterLab 2"),
        (["JupyterLab", "JupyterLab 2", "JupyterLab 4"], "JupyterLab 3"),
    ],
)
def test_first_free_number_is_suggested(taken: list[str], name: str) -> None:
    assert free_name("JupyterLab", taken) == name


def test_nothing_is_suggested_for_what_has_no_name() -> None:
    assert free_name("", []) == ""


def test_number_is_taken_off_a_name() -> None:
    names = ("JupyterLab 2", "JupyterLab", "2", "Run 2 of it")
    assert [unnumbered(name) for name in names] == ["JupyterLab", "JupyterLab", "2", "Run 2 of it"]


@pytest.fixture
def project(people: People) -> Project:
    make_environment()
    make_tier("small", is_default=True)
    return make_project(people.owner, people.teammate)


def launched(people: People, **typed: str) -> str:
    """Launch with the form, and return the title that was stored."""
    before = set(Execution.objects.values_list("pk", flat=True))
    assert client_of(people.owner).post("/launch/", FORM | {"token": f"t{len(before)}"} | typed).status_code == 302
    return Execution.objects.exclude(pk__in=before).get().title


@pytest.mark.django_db
@pytest.mark.usefixtures("runtime")
class TestForm:
    def test_untitled_launches_get_the_environment_and_a_number(self, people: People, project: Project) -> None:
        assert "Empty: “JupyterLab”." in page(people.owner)
        assert [launched(people), launched(people)] == ["JupyterLab", "JupyterLab 2"]
        assert "Empty: “JupyterLab 3”." in page(people.owner)
        assert "Empty: “JupyterLab”." in page(people.teammate)

    def test_typed_title_is_kept(self, people: People, project: Project) -> None:
        assert [launched(people, title="Mine"), launched(people, title="Mine")] == ["Mine", "Mine"]

    def test_form_sent_twice_launches_once_though_another_name_is_free(self, people: People, project: Project) -> None:
        answers = [client_of(people.owner).post("/launch/", FORM | {"title": ""}) for _ in range(2)]
        assert answers[0]["Location"] == answers[1]["Location"]
        assert Execution.objects.get().title == Workspace.objects.get().title == "JupyterLab"

    def test_suggestion_follows_the_form(self, people: People, project: Project) -> None:
        launched(people)
        answer = client_of(people.owner).post("/launch/estimate/", FORM | {"title": ""}).content.decode()
        assert "Empty: “JupyterLab 2”." in answer

    def test_only_what_runs_or_is_kept_has_its_name(self, people: People, project: Project) -> None:
        make_execution(
            people.owner, project, title="JupyterLab", state=State.STOPPED, ended_at=MOMENT, settled_at=MOMENT
        )
        assert names_in_use(people.owner, "JupyterLab") == set()
        kept = {"owner": people.owner, "project": project, "environment_id": "jupyterlab", "tier_id": "small"}
        dates = {"created_at": MOMENT, "launched_at": MOMENT}
        Workspace.objects.create(id="kept", title="JupyterLab", **kept, **dates)
        Workspace.objects.create(id="gone", title="JupyterLab 2", deleted_at=MOMENT, **kept, **dates)
        assert names_in_use(people.owner, "JupyterLab") == {"JupyterLab"}
