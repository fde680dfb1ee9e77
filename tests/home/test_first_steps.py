"""The card of first steps: its rule, and when it goes away."""

from dataclasses import replace
from typing import Any

import pytest
from django.template.loader import render_to_string

from dashboard.home.viewmodels.first_steps import SetupFacts, WorkFacts, setup_steps, work_steps
from grid.models import Environment, Execution, HardwareTier, Project, State, User, WorkspaceGrant
from tests.conftest import People
from tests.executions.executing import make_environment, make_execution, make_project, make_tier
from tests.shell.browsing import client_of
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden

NEW = WorkFacts("", has_launched=False, has_opened=False, has_ended=False)
EMPTY = SetupFacts(has_tier=False, has_environment=False, has_project=False, has_people=False)


def ticked(facts: WorkFacts) -> str:
    """One letter for each step: d(one), n(ext), or a dash."""
    return "".join("d" if step.is_done else "n" if step.is_next else "-" for step in work_steps(facts).steps)


def test_steps_are_ticked_one_after_the_other() -> None:
    facts = NEW
    assert ticked(facts) == "n---"
    facts = replace(facts, project="Churn")
    assert ticked(facts) == "dn--"
    facts = replace(facts, has_launched=True)
    assert ticked(facts) == "ddn-"
    facts = replace(facts, has_opened=True)
    assert ticked(facts) == "dddn"
    assert not work_steps(facts).is_done
    assert work_steps(replace(facts, has_ended=True)).is_done


def test_setup_is_done_when_nothing_is_missing() -> None:
    steps = setup_steps(replace(EMPTY, has_tier=True)).steps
    assert [step.is_next for step in steps] == [False, True, False, False]
    full = SetupFacts(has_tier=True, has_environment=True, has_project=True, has_people=True)
    assert setup_steps(full).is_done
    assert not setup_steps(replace(full, has_people=False)).is_done


def test_first_steps_look_as_stored() -> None:
    facts = WorkFacts("Churn <b>", has_launched=True, has_opened=False, has_ended=False)
    assert_golden("first-steps-launched", render_to_string("home/fragments/first_steps.html", {"x": work_steps(facts)}))


def shown(client: Any) -> str:
    """The title of the card on Home, "" without one."""
    page: str = client.get("/").content.decode()
    return page.partition('<h2 id="first-steps-')[2].partition(">")[2].partition("<")[0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("runtime")
class TestHome:
    def test_card_stays_until_first_stop_and_never_returns(self, people: People) -> None:
        client = client_of(people.stranger)
        assert shown(client) == "First steps"
        project = make_project(people.stranger, name="Maps")
        assert "You can launch in Maps." in client.get("/").content.decode()
        execution = make_execution(people.stranger, project)
        assert shown(client) == "First steps"
        WorkspaceGrant.objects.create(
            execution=execution, user=people.stranger, session_key="s", ticket_hash="t", secret_hash="h"
        )
        assert client.get("/").content.decode().count("(done)") == 3
        Execution.objects.filter(pk=execution.pk).update(state=State.STOPPED, ended_at=MOMENT, settled_at=MOMENT)
        assert shown(client) == ""
        execution.lifecycle.all().delete()
        WorkspaceGrant.objects.all().delete()
        execution.delete()
        assert shown(client) == ""

    def test_hidden_card_stays_hidden_and_another_browser_shows_it(self, people: People) -> None:
        client = client_of(people.stranger)
        answer = client.post("/first-steps/hide/", {"card": "work", "next": "/"})
        assert answer["Location"] == "/"
        assert shown(client) == ""
        assert shown(client_of(people.stranger)) == "First steps"

    @pytest.mark.parametrize("card", ["", "nonsense", "setup"])
    def test_only_the_named_card_is_hidden(self, people: People, card: str) -> None:
        client = client_of(people.stranger)
        client.post("/first-steps/hide/", {"card": card, "next": "//elsewhere.test/"})
        assert shown(client) == "First steps"

    def test_admin_of_empty_installation_sees_setup_first(self, people: People) -> None:
        client = client_of(people.admin)
        assert shown(client) == "Set the grid up"
        make_tier()
        make_environment()
        assert shown(client) == "Set the grid up"
        make_project(people.owner)
        assert shown(client) == "First steps"
        for model in (Project, Environment, HardwareTier):
            model.objects.all().delete()
        assert shown(client) == "First steps"  # its setup was done once

    def test_setup_is_hidden_from_others_and_auditors_skip_launching(self, people: People) -> None:
        assert shown(client_of(people.operator)) == "First steps"
        assert shown(client_of(people.owner)) == "First steps"
        auditor = User.objects.create_user(username="otto-auditor")
        auditor.groups.create(name="auditors")
        assert shown(client_of(auditor)) == ""
