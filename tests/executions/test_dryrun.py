"""Dry runs of launches: asked for by a web process, answered by the controller with the very objects of the launch."""

from datetime import timedelta

import pytest

from grid.core.errors import ClusterUnavailable, GridError, NotAllowed, Problem, Rejected, TooManyRequests
from grid.executions import dryrun
from grid.executions.launchrequest import LaunchRequest
from grid.executions.preview import Preview
from grid.executions.request import draft, submit
from grid.kube.resources import DEPLOYMENTS, PODS
from grid.models import CheckOutcome, Execution, LaunchCheck
from grid.models.dataplane import LOCAL
from grid.queue.launches import why_not_launch
from tests.clusters.cluster_requests import alone
from tests.controller.world import World, in_world
from tests.support.golden import assert_golden
from tests.support.shop import NOW, Shop

pytestmark = pytest.mark.django_db
ID = "0123456789ab"


def asked(shop: Shop, request: LaunchRequest | None = None, id: str = ID, after: float = 0) -> LaunchCheck | None:
    now = NOW + timedelta(seconds=after)
    unit = draft(request or shop.request(), now=now, execution_id=id)
    return dryrun.ask(id, shop.people.owner, unit[0].data_plane_id, Preview.of(unit), now=now)


async def answered(world: World) -> LaunchCheck:
    await world.controller().dry_runs.answer_all()
    return LaunchCheck.objects.get(pk=ID)


@in_world
async def test_the_cluster_confirms_the_very_objects_and_keeps_none(shop: Shop) -> None:
    world = World()
    asked(shop)
    check = await answered(world)
    assert (check.outcome, check.answered_at) == (CheckOutcome.CONFIRMED, NOW)
    assert check.message == "The cluster accepted a dry run of its 5 objects."
    tried = {(call.resource, call.name) for call in world.cluster.requests if call.verb == "create"}
    assert {call.detail for call in world.cluster.requests if call.verb == "create"} == {"dry run"}
    assert world.pods() == []
    assert not Execution.objects.exists()
    submit(shop.request(), gate=why_not_launch, now=NOW, execution_id=ID)
    await world.step(world.controller())
    made = {(call.resource, call.name) for call in world.cluster.requests if call.verb == "create" and not call.detail}
    assert made == tried


@in_world
async def test_the_pods_of_a_cluster_are_tried_too(shop: Shop) -> None:
    world = World()
    asked(shop, alone(shop))
    assert (await answered(world)).outcome == CheckOutcome.CONFIRMED
    kinds = [call.resource for call in world.cluster.requests if call.verb == "create"]
    assert kinds.count(DEPLOYMENTS) == kinds.count(PODS) == 2


QUOTA = 'pods "a" is forbidden: exceeded quota: team, requested: pods=1, used: pods=10, limited: pods=10'
WEBHOOK = 'admission webhook "images.example.com" does not support dry run'
WEBHOOK_DOWN = 'Internal error occurred: failed calling webhook "images.example.com": failed to call webhook: EOF'
ANSWERS: list[GridError] = [
    NotAllowed(QUOTA),
    ClusterUnavailable("gone"),
    ClusterUnavailable(WEBHOOK_DOWN),
    Rejected([Problem("", WEBHOOK)]),
    ClusterUnavailable("etcdserver: request is too large"),
    TooManyRequests("Too many requests"),
]


@in_world
async def test_answer_of_the_cluster_is_said_in_our_words(shop: Shop) -> None:
    blocks = []
    for error in ANSWERS:
        world = World()
        world.cluster.fail_next(error, verb="create")
        LaunchCheck.objects.all().delete()
        asked(shop)
        check = await answered(world)
        assert check.evidence == str(error)
        blocks.append(f"> {error}\n{check.outcome}: {check.message}")
    assert_golden("words-of-dry-runs", "\n".join(blocks), ending="txt")


@in_world
async def test_unawaited_check_is_not_tried(shop: Shop) -> None:
    world = World()
    asked(shop, after=-11)
    assert (await answered(world)).answered_at is None
    LaunchCheck.objects.update(asked_at=NOW, data_plane="elsewhere")
    assert (await answered(world)).answered_at is None
    LaunchCheck.objects.update(data_plane=LOCAL)
    assert (await answered(world)).answered_at == NOW


@in_world
async def test_specs_of_another_release_are_answered_and_stop_nothing(shop: Shop) -> None:
    asked(shop)
    LaunchCheck.objects.update(specs=[{"nonsense": 1}])
    assert (await answered(World())).outcome == CheckOutcome.NOT_KNOWN


def test_same_form_asks_once_until_its_answer_is_old(shop: Shop) -> None:
    first = asked(shop)
    assert first is not None
    assert asked(shop, after=5) == first
    dryrun.record(ID, dryrun.DryRunAnswer(CheckOutcome.CONFIRMED, "Fine."), now=NOW)
    again = asked(shop, after=29)
    assert again is not None
    assert again.outcome == CheckOutcome.CONFIRMED
    anew = asked(shop, after=31)
    assert anew is not None
    assert (anew.outcome, anew.answered_at) == (CheckOutcome.ASKED, None)


def test_user_asks_only_a_limited_number_of_times(shop: Shop) -> None:
    ids = [f"{number:012d}" for number in range(dryrun.MOST_IN_WINDOW + 1)]
    checks = [asked(shop, id=id) for id in ids]
    assert checks[-1] is None
    assert None not in checks[:-1]
    assert asked(shop, id=ids[-1], after=61) is not None


def test_old_requests_are_cleared_away(shop: Shop) -> None:
    asked(shop, after=-3700)
    asked(shop, id="another12345")
    assert dryrun.purge(NOW, 10) == 1
    assert list(LaunchCheck.objects.values_list("pk", flat=True)) == ["another12345"]
