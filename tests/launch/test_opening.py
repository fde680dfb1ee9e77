"""Opening reaches files and a shell, so it ends with the account and with the place in the project, whoever launched it."""

import pytest
from pytest_django.fixtures import DjangoAssertNumQueries

from grid.launch.opening import may_open, openable
from grid.models import Execution, User
from tests.launch.conftest import Shop
from tests.support.frozen import write_frozen


def may(shop: Shop, execution: Execution) -> set[str]:
    """The names of the people who may open it."""
    people = vars(shop.people)
    pairs = {(one.pk, execution.pk): name for name, one in people.items()}
    at_once = {pairs[pair] for pair in openable(pairs)}
    assert at_once == {name for name, one in people.items() if may_open(one.pk, execution)}
    return at_once


@pytest.mark.parametrize("who", ["owner", "teammate"])
def test_a_workspace_is_opened_by_its_owner_alone(shop: Shop, who: str) -> None:
    assert may(shop, shop.launch(getattr(shop.people, who))) == {who}


def test_a_cluster_is_opened_by_everybody_in_its_project(shop: Shop) -> None:
    assert may(shop, shop.launch_cluster()) == {"owner", "teammate"}


def test_who_left_the_project_opens_nothing_of_it_until_he_is_back(shop: Shop) -> None:
    workspace, cluster = shop.launch(shop.people.teammate), shop.launch_cluster()
    write_frozen(cluster, owner=shop.people.teammate)
    shop.project.members.remove(shop.people.teammate)
    assert may(shop, workspace) == set()
    assert may(shop, cluster) == {"owner"}
    shop.project.members.add(shop.people.teammate, through_defaults={"role": "contributor"})
    assert may(shop, workspace) == {"teammate"}


def test_who_gave_the_project_away_opens_nothing_of_it(shop: Shop) -> None:
    workspace = shop.launch()
    shop.project.assign(owner=shop.people.stranger, contributors=[], viewers=[])
    assert may(shop, workspace) == set()


def test_a_closed_account_opens_nothing(shop: Shop) -> None:
    workspace = shop.launch()
    User.objects.filter(pk=shop.people.owner.pk).update(is_active=False)
    assert may(shop, workspace) == set()


def test_any_number_of_pairs_takes_three_queries(shop: Shop, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    launched = [shop.launch().pk, shop.launch(shop.people.teammate).pk]
    people = (shop.people.owner, shop.people.teammate, shop.people.stranger)
    pairs = {(user.pk, id) for user in people for id in (*launched, "never-was")}
    with django_assert_num_queries(3):
        found = openable(pairs)
    assert found == {(shop.people.owner.pk, launched[0]), (shop.people.teammate.pk, launched[1])}
