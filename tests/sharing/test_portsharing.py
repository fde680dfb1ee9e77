"""A port of a workspace, shared with members: who reaches it, for how long, and that it opens nothing else."""

import asyncio
import random
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone

from grid.core.errors import Rejected
from grid.executions.policykeeper import PORTS_SECONDS, Network, PolicyKeeper
from grid.executions.stopping import request_stop
from grid.kube.resources import NETWORK_POLICIES
from grid.models import AuditEntry, Environment, Execution, Membership, PortShare, State, User
from grid.sharing.grants import Passage, digest, exchange_ticket, issue_ticket, passages
from grid.sharing.opening import may_open, may_open_port
from grid.sharing.sharing import offered_ports, ports_shared_with, running_ports, share_port, shared_ports, unshare_port
from tests.executions.test_policykeeper import serving
from tests.sharing.test_grants import log_in
from tests.support.builders import NAMESPACE
from tests.support.cluster import FakeCluster
from tests.support.frozen import write_frozen
from tests.support.shop import NOW, OWNER, Shop
from tests.support.virtual import passes, virtual_time


@pytest.fixture
def workspace(shop: Shop) -> Execution:
    execution = shop.launch()
    write_frozen(execution, state=State.RUNNING)
    return execution


@pytest.fixture
def shared(shop: Shop, workspace: Execution) -> PortShare:
    return give(shop, workspace)


def give(shop: Shop, workspace: Execution, **fields: Any) -> PortShare:
    values: dict[str, Any] = {"port": 8501, "name": "Sales", "members": [shop.people.teammate], "hours": 0}
    return share_port(workspace.pk, **{**values, "by": shop.people.owner, "now": NOW, **fields})


def may(shop: Shop, share: PortShare) -> set[str]:
    """The names of the people who may open it."""
    return {name for name, person in vars(shop.people).items() if may_open_port(person.pk, share)}


def secret_of(place: Execution | PortShare, user: User) -> str:
    key = log_in(user).session_key or ""
    ticket = issue_ticket(place, user=user, session_key=key, opener_digest=digest("opener"), now=NOW)
    return exchange_ticket(place.pk, ticket, "opener", now=NOW) or ""


def passage(place_id: str, secret: str) -> Passage | None:
    return passages([(place_id, secret)]).get((place_id, secret))


def test_shared_port_is_for_owner_and_chosen_members_only(shop: Shop, workspace: Execution, shared: PortShare) -> None:
    teammate = shop.people.teammate
    assert may(shop, shared) == {"owner", "teammate"}
    assert not may_open(teammate.pk, workspace)
    assert [port.pk for port in ports_shared_with(teammate.pk)] == [shared.pk]
    assert [ports_shared_with(person.pk) for person in (shop.people.owner, shop.people.stranger)] == [[], []]
    Membership.objects.filter(user=teammate).update(role="viewer")
    assert may(shop, shared) == {"owner", "teammate"}


def test_a_grant_for_a_port_opens_that_port_alone(shop: Shop, workspace: Execution, shared: PortShare) -> None:
    other = give(shop, workspace, port=8502, name="Other")
    secret, owners = secret_of(shared, shop.people.teammate), secret_of(workspace, shop.people.owner)
    opened = passage(shared.pk, secret)
    assert opened is not None
    assert (opened.execution_id, opened.port, opened.front_port, opened.is_shared_port) == (workspace.pk, 8501, 0, True)
    assert [passage(place, secret) for place in (workspace.pk, other.pk)] == [None, None]
    assert [passage(place, owners) for place in (shared.pk, other.pk)] == [None, None]


def test_tickets_of_port_and_workspace_are_not_interchangeable(
    shop: Shop, workspace: Execution, shared: PortShare
) -> None:
    owner = shop.people.owner
    for place, elsewhere in ((shared, workspace), (workspace, shared)):
        ticket = issue_ticket(place, user=owner, session_key="s", opener_digest=digest("opener"), now=NOW)
        assert exchange_ticket(elsewhere.pk, ticket, "opener", now=NOW) is None
        assert exchange_ticket(place.pk, ticket, "opener", now=NOW)


@pytest.mark.parametrize("how", ["unshared", "left", "closed", "stopping", "over", "owner only views"])
def test_a_grant_ends_at_once_when(shop: Shop, workspace: Execution, shared: PortShare, how: str) -> None:
    owner, teammate = shop.people.owner, shop.people.teammate
    secret = secret_of(shared, teammate)
    assert passage(shared.pk, secret) is not None
    match how:
        case "unshared":
            unshare_port(shared, by=owner, now=NOW)
        case "left":
            shop.project.assign(owner=owner, contributors=[], viewers=[])
        case "closed":
            User.objects.filter(pk=teammate.pk).update(is_active=False)
        case "stopping":
            request_stop(workspace, by="alice", now=NOW)
        case "over":
            PortShare.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
        case _:
            Membership.objects.filter(user=owner).update(role="viewer")
    assert passage(shared.pk, secret) is None
    assert list(ports_shared_with(teammate.pk)) == []
    if how == "left":
        shop.project.assign(owner=owner, contributors=[teammate], viewers=[])
        assert passage(shared.pk, secret) is None, "who comes back is not shared what was shared before"


def test_history_and_audit_log_record_sharing_and_revoking(shop: Shop, workspace: Execution, shared: PortShare) -> None:
    owner, mate = shop.people.owner, shop.people.teammate.get_username()
    unshare_port(shared, by=owner, now=NOW)
    unshare_port(shared, by=owner, now=NOW)
    name = owner.get_username()
    history = [entry.words(OWNER) for entry in workspace.lifecycle.filter(reason="Shared")]
    assert history == [
        f"{name} shared its port 8501 (Sales) with {mate}.",
        f"{name} stopped sharing its port 8501 (Sales).",
    ]
    entries = AuditEntry.objects.filter(object_type="project", actor=owner).order_by("pk")
    words = f"port 8501 (Sales) with {mate}"
    changes = [entry.changes["shared app"] for entry in entries if "shared app" in entry.changes]
    assert changes == [["", words], [words, ""]]


def test_unshareable_port_says_why(shop: Shop, workspace: Execution, shared: PortShare) -> None:
    people = shop.people
    for fields, sentence in (
        ({"port": 8501}, "shared already"),
        ({"port": 80}, "from 1024 to 65535"),
        ({"port": int(workspace.spec["port"])}, "own port"),
        ({"port": 19080}, "the platform’s"),
        ({"name": " "}, "Give it a name"),
        ({"members": []}, "at least one member"),
        ({"members": [people.stranger]}, "nobody else"),
        ({"members": [people.owner]}, "nobody else"),
        ({"by": people.teammate}, "Only its owner"),
    ):
        with pytest.raises(Rejected, match=sentence):
            give(shop, workspace, **{"port": 8502, **fields})
    request_stop(workspace, by="alice", now=NOW)
    with pytest.raises(Rejected, match="does not run"):
        give(shop, workspace, port=8502)
    assert PortShare.objects.count() == 1


def test_timed_share_ends_and_its_port_is_shareable_again(shop: Shop, workspace: Execution) -> None:
    share = give(shop, workspace, hours=8)
    assert share.ends_at == NOW + timedelta(hours=8)
    later = NOW + timedelta(hours=8)
    assert [list(shared_ports(workspace, at)) for at in (NOW, later)] == [[share], []]
    assert give(shop, workspace, now=later).pk != share.pk


class Offered:
    """What the test says."""

    def __init__(self) -> None:
        self.now: frozenset[int] | None = frozenset({8888})

    async def offered(self) -> frozenset[int]:
        if self.now is None:
            raise OSError("no database")
        return self.now

    async def running(self) -> frozenset[int]:
        return frozenset({8000})


def open_in(cluster: FakeCluster) -> list[int]:
    (policy,) = [item for item in cluster.objects(NETWORK_POLICIES) if item["metadata"]["name"] == "user-interfaces"]
    return [item["port"] for item in policy["spec"]["ingress"][0]["ports"]]


@virtual_time
async def test_shared_port_opens_in_seconds_and_revoked_one_closes() -> None:
    cluster, ports = serving("34.1.2.3"), Offered()
    keeper = PolicyKeeper(cluster, NAMESPACE, Network(), rng=random.Random(1), ports=ports)
    kept = asyncio.create_task(keeper.run())
    await passes(1)
    assert open_in(cluster) == [8000, 8888]
    for now, expected in (({8888, 8501}, [8000, 8501, 8888]), (None, [8000, 8501, 8888]), ({8888}, [8000, 8888])):
        ports.now = now if now is None else frozenset(now)
        await passes(PORTS_SECONDS)
        assert open_in(cluster) == expected
    kept.cancel()


def test_ports_of_running_environments_and_shares_are_open(shop: Shop, workspace: Execution, shared: PortShare) -> None:
    own = int(workspace.spec["port"])
    Environment.objects.filter(pk=workspace.environment_id).update(port=7777)
    assert running_ports() == {own}
    assert {7777, 8501, 19080, 19081} <= offered_ports(NOW)
    with override_settings(FRONT_IMAGE="nginx:1"):
        assert offered_ports(NOW) == {8501, 19080, 19081}, "behind a front only its own port is open"
        launched = shop.launch()
    assert launched.spec["front"]
    assert running_ports() == {own}, "of what was launched without one"
    request_stop(workspace, by="alice", now=NOW)
    assert 8501 not in offered_ports(NOW)
