"""Roles in a project: one owner, contributors who work in it, viewers who look."""

import pytest
from django.db import IntegrityError, transaction

from grid.executions.launchrequest import projects_for
from grid.models import Membership, Project
from tests.support.shop import Shop

Role = Membership.Role


@pytest.mark.parametrize(("role", "may"), [(Role.CONTRIBUTOR, True), (Role.VIEWER, False)])
def test_contributors_launch_and_viewers_do_not(shop: Shop, role: str, may: bool) -> None:
    shop.project.members.add(shop.people.stranger, through_defaults={"role": role})
    assert projects_for(shop.people.stranger).contains(shop.project) is may
    assert projects_for(shop.people.owner).contains(shop.project)


def test_project_has_one_owner(shop: Shop) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Membership.objects.create(project=shop.project, user=shop.people.stranger, role=Role.OWNER)


def test_project_is_not_stored_without_its_owner(shop: Shop) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Project.objects.start(id="churn", name="Another of that id", owner=shop.people.stranger)
    assert shop.project.people()["owner"] == "alice"


def test_roles_are_assigned_all_at_once(shop: Shop) -> None:
    people = shop.people
    shop.project.assign(owner=people.stranger, contributors=[people.owner, people.stranger], viewers=[people.owner])
    assert shop.project.people() == {"owner": "charlie", "contributors": ["alice"], "viewers": []}
    shop.project.assign(owner=people.owner, contributors=[], viewers=[people.stranger])
    assert shop.project.people() == {"owner": "alice", "contributors": [], "viewers": ["charlie"]}
