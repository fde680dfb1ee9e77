"""What admins are asked before they archive a tier, a project or an environment: who uses it."""

import pytest
from django.test import Client

from grid.models import HardwareTier
from tests.conftest import People
from tests.executions.executing import make_environment, make_execution, make_project, make_tier, make_workspace

pytestmark = pytest.mark.usefixtures("two_pools")


def test_the_question_before_archiving_says_who_uses_it(admin: Client, people: People) -> None:
    tier = make_tier("busy", is_default=True)
    project = make_project(people.owner, people.teammate)
    for user in (people.owner, people.owner, people.teammate):
        make_execution(user, project, tier=tier)
    make_workspace(people.owner, project, tier=tier)
    question = admin.get("/tiers/busy/archive/").content.decode()
    assert "3 executions of 2 people use it and continue" in question
    assert "1 workspace was launched with it: resuming needs another hardware tier." in question
    assert "It is the default tier" in question
    assert "Its 2 members can no longer launch in it." in admin.get("/projects/churn/archive/").content.decode()
    assert (
        "1 workspace of the project cannot be resumed until it is restored."
        in admin.get("/projects/churn/archive/").text
    )
    unused = make_environment("unused", name="Unused <b>")
    assert "No active execution uses it." in admin.get(f"/environments/{unused.pk}/archive/").text
    assert not HardwareTier.objects.filter(is_archived=True).exists()
