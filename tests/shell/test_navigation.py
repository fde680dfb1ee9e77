"""The navigation: few links for each role, none that leads nowhere, and pages of one question lead to each other."""

from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.template import Context
from django.test import RequestFactory
from django.urls import reverse

from dashboard.shell.tags.frame import LINKS, NavigationLink, beside_this_page, navigation
from grid.models import User
from grid.runtime import Runtime
from tests.conftest import People, client_of


def context(user: User, path: str = "/") -> Context:
    request: Any = RequestFactory().get(path)
    request.user = user
    return Context({"request": request})


def shown(user: User, path: str = "/") -> list[NavigationLink]:
    return [link for section, links in navigation(context(user, path)) if section != "Try out" for link in links]


@pytest.mark.parametrize(("who", "most"), [("owner", 8), ("operator", 12), ("admin", 14)])
def test_navigation_is_short(people: People, who: str, most: int) -> None:
    links = shown(getattr(people, who))
    assert 1 < len(links) <= most
    assert len({link.title for link in links}) == len(links)


@pytest.mark.parametrize("who", ["owner", "auditor", "operator", "admin"])
def test_each_page_that_a_person_may_open_is_in_the_navigation_or_beside_a_page_that_is(
    people: People, runtime: Runtime, who: str
) -> None:
    user = people.stranger if who == "auditor" else getattr(people, who)
    if who == "auditor":
        user.groups.add(Group.objects.create(name="auditors"))
    client = client_of(user)
    links = shown(user)
    neighbours = [link for each in links for link in beside_this_page(context(user, each.url))]
    reached = {link.name for link in (*links, *neighbours)}
    allowed = {name for name in LINKS if client.get(reverse(name)).status_code == 200}
    assert reached == allowed


def test_pages_of_a_group_lead_to_each_other_and_mark_the_groups_link(people: People) -> None:
    neighbours = beside_this_page(context(people.operator, "/alerts/"))
    assert [(link.title, link.is_current) for link in neighbours] == [
        ("Platform health", False),
        ("Service levels", False),
        ("Alerts", True),
        ("Start-up times", False),
        ("Knowledge base", False),
    ]
    assert [link.title for link in shown(people.operator, "/alerts/") if link.is_current] == ["Health"]
    assert beside_this_page(context(people.owner, "/executions/"))[1].title == "Queue"
    assert beside_this_page(context(people.owner, "/jobs/")) == []
    assert beside_this_page(context(people.operator, "/alerts/steps/disk/")) == [], "a page below has its own way back"
