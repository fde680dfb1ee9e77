"""A ticket works once, for seconds, for one execution; a grant ends with its session, the execution and the ownership; the Open button."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.test import Client
from pytest_django.fixtures import DjangoAssertNumQueries

from grid.accounts.sessions import SessionStore, stored_key
from grid.core.errors import Rejected
from grid.executions.stopping import request_stop
from grid.models import AppShare, Execution, Membership, State, User, WorkspaceGrant
from grid.sharing.grants import Passage, digest, exchange_ticket, issue_ticket, passages, touch
from grid.sharing.opening import may_open, openable
from grid.sharing.sharing import share
from tests.conftest import People
from tests.support.frozen import write_frozen
from tests.support.shop import NOW, Shop

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
OPENER = "kept by the browser"


def log_in(user: User) -> SessionStore:
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "grid.accounts.AccountBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return session


def passage(execution_id: str, secret: str) -> Passage | None:
    key = (execution_id, secret)
    return passages([key]).get(key)


def test_job_page_does_not_know_its_shared_path(execution: Execution, people: People, session: SessionStore) -> None:
    write_frozen(execution, kind="job", spec={"port": 6006, "front": {"port": 19080}})
    secret = exchange_ticket(execution.id, ticket_for(execution, people.owner, session), OPENER, now=NOON)
    assert secret is not None
    opened = passage(execution.id, secret)
    assert opened is not None
    assert (opened.port, opened.front_port, opened.strips_prefix) == (6006, 19080, True)


def ticket_for(execution: Execution, user: User, session: SessionStore) -> str:
    key = session.session_key or ""
    return issue_ticket(execution, user=user, session_key=key, opener_digest=digest(OPENER), now=NOON)


@pytest.fixture
def session(people: People) -> SessionStore:
    return log_in(people.owner)


@pytest.fixture
def secret(execution: Execution, people: People, session: SessionStore) -> str:
    ticket = ticket_for(execution, people.owner, session)
    secret = exchange_ticket(execution.id, ticket, OPENER, now=NOON)
    assert secret is not None
    return secret


def test_owners_secret_opens_the_execution_and_no_other(execution: Execution, secret: str) -> None:
    opened = passage(execution.id, secret)
    assert opened is not None
    assert (opened.port, opened.state) == (8888, "running")
    assert passage("another", secret) is None


def test_ticket_works_once_in_thirty_seconds_for_one_execution(
    execution: Execution, people: People, session: SessionStore
) -> None:
    ticket = ticket_for(execution, people.owner, session)
    assert exchange_ticket(execution.id, ticket, OPENER, now=NOON + timedelta(seconds=30)) is None
    assert exchange_ticket("another", ticket, OPENER, now=NOON) is None
    assert passage(execution.id, ticket) is None, "it is no secret"
    assert exchange_ticket(execution.id, ticket, OPENER, now=NOON)
    assert exchange_ticket(execution.id, ticket, OPENER, now=NOON) is None


def test_ticket_is_bound_to_the_requesting_browser(execution: Execution, people: People, session: SessionStore) -> None:
    """Otherwise somebody could lead another person into his own workspace, whose code then reaches that person's."""
    ticket = ticket_for(execution, people.owner, session)
    for foreign in ("", "another browser's", digest(OPENER)):
        assert exchange_ticket(execution.id, ticket, foreign, now=NOON) is None
    assert exchange_ticket(execution.id, ticket, OPENER, now=NOON)


def log_out(execution: Execution, people: People, session: SessionStore) -> None:
    session.flush()


def change_the_password(execution: Execution, people: People, session: SessionStore) -> None:
    people.owner.set_password("another-password")
    people.owner.save()


def deactivate_the_account(execution: Execution, people: People, session: SessionStore) -> None:
    people.owner.is_active = False
    people.owner.save()


def give_to_a_new_owner(execution: Execution, people: People, session: SessionStore) -> None:
    write_frozen(execution, owner=people.teammate)


def log_in_as_another(execution: Execution, people: People, session: SessionStore) -> None:
    session[SESSION_KEY] = str(people.stranger.pk)
    session[HASH_SESSION_KEY] = people.stranger.get_session_auth_hash()
    session.save()


@pytest.mark.parametrize(
    "loss",
    [log_out, change_the_password, deactivate_the_account, give_to_a_new_owner, log_in_as_another],
    ids=lambda loss: loss.__name__,
)
def test_grant_ends_with_login_account_and_ownership(
    execution: Execution, people: People, session: SessionStore, secret: str, loss: Callable[..., None]
) -> None:
    loss(execution, people, session)
    assert passage(execution.id, secret) is None


def test_execution_end_ends_the_grant_and_informs_holders(execution: Execution, secret: str) -> None:
    execution.state = State.STOPPED
    execution.save(update_fields=["state"])
    assert passage(execution.id, secret) == Passage(execution.id, "stopped", "", 0, has_ended=True)
    assert passage(execution.id, "another") is None


def test_many_grants_take_few_queries_and_stay_separate(
    execution: Execution, people: People, session: SessionStore, django_assert_max_num_queries: Any
) -> None:
    tickets = [ticket_for(execution, people.owner, session) for _ in range(20)]
    keys = [(execution.id, exchange_ticket(execution.id, ticket, OPENER, now=NOON) or "") for ticket in tickets]
    with django_assert_max_num_queries(8):
        opened = passages([*keys, *(("another", secret) for _, secret in keys)])
    assert set(opened) == set(keys)


def test_program_knows_its_address_and_service_worker_permission(execution: Execution, secret: str) -> None:
    environment = {"allows_service_workers": True, "start_path": "/lab"}
    spec = {"port": 1, "address": "https://x.test/w/x/", "environment": environment}
    write_frozen(execution, spec=spec)
    opened = passage(execution.id, secret)
    assert opened is not None
    assert (opened.base_url, opened.allows_service_workers, opened.start_path) == ("/w/x/", True, "/lab")


def test_only_hashes_are_stored(secret: str, session: SessionStore) -> None:
    grant = WorkspaceGrant.objects.get()
    assert secret not in (grant.secret_hash, grant.ticket_hash)
    assert grant.session_key == stored_key(session.session_key or "")


@pytest.fixture
def cluster(execution: Execution, people: People) -> Execution:
    cluster = {"kind": "cluster", "head_tier": execution.tier, "workers_minimum": 1, "workers_maximum": 2}
    write_frozen(execution, **cluster, framework="ray")
    return execution


def opened_by(user: User, execution: Execution) -> Passage | None:
    secret = exchange_ticket(execution.id, ticket_for(execution, user, log_in(user)), OPENER, now=NOON)
    return passage(execution.id, secret) if secret else None


def test_project_member_opens_the_cluster_page(cluster: Execution, people: People) -> None:
    owners, guests = opened_by(people.owner, cluster), opened_by(people.teammate, cluster)
    assert owners is not None
    assert guests is not None
    expected = Passage(cluster.pk, "running", "", 8265, component="head", strips_prefix=True)
    assert replace(owners, session_key="") == replace(guests, session_key="") == expected


def test_former_member_no_longer_opens_project_clusters(cluster: Execution, people: People) -> None:
    session = log_in(people.teammate)
    secret = exchange_ticket(cluster.id, ticket_for(cluster, people.teammate, session), OPENER, now=NOON) or ""
    assert passage(cluster.id, secret)
    cluster.project.members.remove(people.teammate)
    assert passage(cluster.id, secret) is None


def test_use_is_recorded_at_session_and_grant(
    execution: Execution, people: People, session: SessionStore, secret: str
) -> None:
    unused = ticket_for(execution, people.owner, session)
    key, later = stored_key(session.session_key or ""), NOON + timedelta(hours=1)
    touch([(execution.pk, key), ("no-such", key)], later)
    noted = {bool(grant.secret_hash): grant.used_at for grant in WorkspaceGrant.objects.all()}
    assert unused
    assert noted == {True: later, False: None}, "a ticket alone opens nothing"
    touch([], later)


def main_of(answer: Any) -> str:
    """The page without its frame, whose forms carry tokens and the address itself."""
    return str(answer.content.decode().partition("<main")[2].partition("</main>")[0])


def test_owner_is_redirected_to_other_origin_with_working_ticket(
    client: Client, people: People, execution: Execution
) -> None:
    client.force_login(people.owner)
    answer = client.post(f"/executions/{execution.pk}/open/")
    assert answer.status_code == 302
    assert answer["Location"] == f"http://{execution.pk}.localhost:8001/__grid__/begin"
    answer = client.get(f"/executions/{execution.pk}/opening/?opener={digest('kept')}")
    assert answer["Referrer-Policy"] == "no-referrer"
    target = urlsplit(answer["Location"])
    assert (target.netloc, target.path) == (f"{execution.pk}.localhost:8001", "/__grid__/open")
    ticket = parse_qs(target.query)["ticket"][0]
    assert exchange_ticket(execution.pk, ticket, "kept", now=WorkspaceGrant.objects.get().created_at)


@pytest.mark.parametrize("who", ["teammate", "stranger", "operator", "admin"])
def test_others_see_the_same_as_for_missing_execution(
    client: Client, people: People, execution: Execution, who: str
) -> None:
    client.force_login(getattr(people, who))
    answer = client.post(f"/executions/{execution.pk}/open/")
    nothing = client.post("/executions/nothing/open/")
    ticket = client.get(f"/executions/{execution.pk}/opening/?opener={digest('kept')}")
    assert answer.status_code == nothing.status_code == 403
    assert main_of(answer) == main_of(nothing) == main_of(ticket) != ""
    assert not WorkspaceGrant.objects.exists()


@pytest.mark.parametrize("opener", ["", "short", "Z" * 64, "a" * 65, "a" * 64 + "\n"])
def test_a_ticket_needs_the_opener_of_a_browser(
    client: Client, people: People, execution: Execution, opener: str
) -> None:
    client.force_login(people.owner)
    assert client.get(f"/executions/{execution.pk}/opening/", {"opener": opener}).status_code == 403
    assert not WorkspaceGrant.objects.exists()


def test_opening_is_a_post(client: Client, people: People, execution: Execution) -> None:
    client.force_login(people.owner)
    assert client.get(f"/executions/{execution.pk}/open/").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(people.owner)
    assert strict.post(f"/executions/{execution.pk}/open/").status_code == 403
    assert not WorkspaceGrant.objects.exists()


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
