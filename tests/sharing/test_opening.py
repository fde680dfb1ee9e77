"""Opening reaches files and a shell, so it ends with the account and with the place in the project, whoever launched it."""

import pytest
from pytest_django.fixtures import DjangoAssertNumQueries

from grid.core.errors import Rejected
from grid.executions.stopping import request_stop
from grid.models import AppShare, Execution, Membership, User
from grid.sharing.opening import may_open, openable
from grid.sharing.sharing import share
from tests.support.frozen import write_frozen
from tests.support.shop import NOW, Shop


def may(shop: Shop, execution: Execution) -> set[str]:
    """The names of the people who may open it."""
    people = vars(shop.people)
    pairs = {(person.pk, execution.pk): name for name, person in people.items()}
    at_once = {pairs[pair] for pair in openable(pairs)}
    assert at_once == {name for name, person in people.items() if may_open(person.pk, execution)}
    return at_once


@pytest.mark.parametrize("who", ["owner", "teammate"])
def test_a_workspace_is_opened_by_its_owner_alone(shop: Shop, who: str) -> None:
    assert may(shop, shop.launch(getattr(shop.people, who))) == {who}


def test_a_cluster_is_opened_by_everybody_in_its_project(shop: Shop) -> None:
    assert may(shop, shop.launch_cluster()) == {"owner", "teammate"}


def test_former_member_opens_nothing_until_returning(shop: Shop) -> None:
    workspace, cluster = shop.launch(shop.people.teammate), shop.launch_cluster()
    write_frozen(cluster, owner=shop.people.teammate)
    shop.project.members.remove(shop.people.teammate)
    assert may(shop, workspace) == set()
    assert may(shop, cluster) == {"owner"}
    shop.project.members.add(shop.people.teammate, through_defaults={"role": "contributor"})
    assert may(shop, workspace) == {"teammate"}


def test_former_owner_opens_nothing_of_the_project(shop: Shop) -> None:
    workspace = shop.launch()
    shop.project.assign(owner=shop.people.stranger, contributors=[], viewers=[])
    assert may(shop, workspace) == set()


def test_a_closed_account_opens_nothing(shop: Shop) -> None:
    workspace = shop.launch()
    User.objects.filter(pk=shop.people.owner.pk).update(is_active=False)
    assert may(shop, workspace) == set()


def test_app_is_opened_by_owner_and_chosen_members(shop: Shop) -> None:
    app = shared_app(shop)
    assert may(shop, app) == {"owner", "teammate"}
    Membership.objects.filter(user=shop.people.teammate).update(role="viewer")
    assert may(shop, app) == {"owner", "teammate"}
    share(app.pk, [], by="alice", now=NOW)
    assert may(shop, app) == {"owner"}


def test_former_member_or_closed_account_loses_the_app(shop: Shop) -> None:
    app = shared_app(shop)
    User.objects.filter(pk=shop.people.teammate.pk).update(is_active=False)
    assert may(shop, app) == {"owner"}
    User.objects.filter(pk=shop.people.teammate.pk).update(is_active=True)
    shop.project.members.remove(shop.people.teammate)
    assert may(shop, app) == {"owner"}


def test_a_share_opens_nothing_but_an_app(shop: Shop) -> None:
    workspace = shop.launch()
    AppShare.objects.create(execution=workspace, user=shop.people.teammate)
    assert may(shop, workspace) == {"owner"}


def test_only_running_app_is_shared_with_members_only(shop: Shop) -> None:
    app = shared_app(shop)
    with pytest.raises(Rejected, match="Choose members of its project"):
        share(app.pk, [shop.people.stranger], by="alice", now=NOW)
    with pytest.raises(Rejected, match="Only an app can be shared"):
        share(shop.launch().pk, [shop.people.teammate], by="alice", now=NOW)
    request_stop(app, by="alice", now=NOW)
    with pytest.raises(Rejected, match="It has ended"):
        share(app.pk, [], by="alice", now=NOW)


def shared_app(shop: Shop) -> Execution:
    """With the teammate."""
    app = shop.launch()
    write_frozen(app, kind="app", workspace=None)
    share(app.pk, [shop.people.teammate], by="alice", now=NOW)
    app.refresh_from_db()
    return app


def test_permissions_of_many_pairs_take_constant_queries(
    shop: Shop, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    launched = [shop.launch().pk, shop.launch(shop.people.teammate).pk]
    people = (shop.people.owner, shop.people.teammate, shop.people.stranger)
    pairs = {(user.pk, id) for user in people for id in (*launched, "never-was")}
    with django_assert_num_queries(3):
        allowed = openable(pairs)
    assert allowed == {(shop.people.owner.pk, launched[0]), (shop.people.teammate.pk, launched[1])}
    app = shared_app(shop)
    with django_assert_num_queries(4):
        assert (shop.people.teammate.pk, app.pk) in openable({*pairs, (shop.people.teammate.pk, app.pk)})
