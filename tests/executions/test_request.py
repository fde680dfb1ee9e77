"""Who may launch what, what is refused and why, and stopping."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group

from grid.configuration import GLOBAL_QUEUE_LIMIT, HOME_VOLUME_SIZE, MAXIMUM_EXECUTIONS_PER_USER
from grid.core.errors import Rejected
from grid.executions.launchrequest import environments_for, projects_for, tiers_for
from grid.executions.request import submit, validate
from grid.executions.stopping import request_stop
from grid.models import Environment, Execution, HardwareTier, LifecycleEntry, QueueOrder, State
from grid.queue.launches import why_not_launch
from tests.support.shop import NOW, Shop

Configure = Callable[[Any, int], None]


def paths(problems: list[Any]) -> list[tuple[str, str]]:
    return [(problem.path, problem.code) for problem in problems]


def test_launch_is_a_queued_row_with_first_history_line(shop: Shop) -> None:
    execution = submit(shop.request(title="  Explore "), gate=why_not_launch, now=NOW)

    stored = Execution.objects.get(pk=execution.pk)
    assert (stored.state, stored.title, stored.revision, stored.requested_at) == ("queued", "Explore", 0, NOW)
    entry = LifecycleEntry.objects.get(execution=execution)
    assert (entry.to_state, entry.from_state, entry.actor, entry.reason) == ("queued", "", "alice", "requested")


def test_owner_and_members_launch_and_nobody_else(shop: Shop) -> None:
    people = shop.people
    assert list(projects_for(people.owner)) == [shop.project]
    for other in (people.stranger, people.operator, people.admin):
        assert not projects_for(other).exists()
        assert paths(validate(shop.request(owner=other))) == [("project", "not_contributor")]
    assert list(projects_for(people.teammate)) == [shop.project]


def test_home_registry_and_browser_rights_are_frozen_at_launch(shop: Shop, configure: Configure) -> None:
    configure(HOME_VOLUME_SIZE, 7)
    Environment.objects.filter(pk=shop.workspace.pk).update(image_pull_secret="ours", allows_service_workers=True)
    launched = submit(shop.request(), gate=why_not_launch, now=NOW)
    owner = shop.people.owner.pk
    assert launched.spec["home"] == {"volume_name": f"home-{shop.project.pk}-{owner}", "volume_size": "7Gi"}
    environment = launched.spec["environment"]
    assert (environment["image_pull_secret"], environment["allows_service_workers"]) == ("ours", True)


def test_all_problems_are_told_at_once_at_their_fields(shop: Shop) -> None:
    shop.project.is_archived = shop.workspace.is_archived = True
    shop.tier.is_visible = False
    for row in (shop.project, shop.workspace, shop.tier):
        row.save()

    with pytest.raises(Rejected) as refused:
        submit(shop.request(title="x" * 121), gate=why_not_launch, now=NOW)

    assert paths(list(refused.value.problems)) == [
        ("title", "too_long"),
        ("project", "not_contributor"),
        ("environment", "not_offered"),
        ("tier", "not_offered"),
    ]
    assert not Execution.objects.exists()


@pytest.mark.parametrize("title", ["two\nlines", "nul\x00", "\u202eevil"])
def test_a_title_that_cannot_be_seen_is_refused(shop: Shop, title: str) -> None:
    assert paths(validate(shop.request(title=title))) == [("title", "unprintable")]


def test_environment_is_launched_only_as_its_kind(shop: Shop) -> None:
    assert paths(validate(shop.request(kind="job"))) == [("environment", "kind")]
    assert validate(shop.request(kind="job", environment=shop.job)) == []
    assert list(environments_for(shop.people.owner, "job")) == [shop.job]


@pytest.mark.parametrize("kind", ["", "root"])
def test_an_unknown_kind_is_refused(shop: Shop, kind: str) -> None:
    assert ("kind", "kind") in paths(validate(shop.request(kind=kind)))


def test_tier_of_groups_is_offered_to_members_only_once(shop: Shop) -> None:
    groups = [Group.objects.create(name=name) for name in ("vision", "speech")]
    shop.tier.groups.set(groups)
    shop.people.owner.groups.set(groups)

    assert [tier.pk for tier in tiers_for(shop.people.owner, "workspace")] == ["small"]
    assert not tiers_for(shop.people.teammate, "workspace").exists()
    assert paths(validate(shop.request(owner=shop.people.teammate))) == [("tier", "group")]


def test_a_tier_for_jobs_is_not_offered_for_workspaces(shop: Shop) -> None:
    shop.tier.kinds = ["job"]
    shop.tier.save()

    assert paths(validate(shop.request())) == [("tier", "kind")]
    assert tiers_for(shop.people.owner, "job").exists()


def test_launch_beyond_the_queue_limit_is_refused(shop: Shop, configure: Configure) -> None:
    configure(MAXIMUM_EXECUTIONS_PER_USER, 1)
    configure(GLOBAL_QUEUE_LIMIT, 1)
    shop.launch()  # will start
    shop.launch(after=1)  # will wait

    with pytest.raises(Rejected, match="1 executions wait for a free slot already, and the queue holds 1"):
        shop.launch(after=2)
    assert Execution.objects.count() == 2
    QueueOrder.objects.create(execution=Execution.objects.latest("requested_at"), held_at=NOW)
    with pytest.raises(Rejected, match=r"already \(1 is held by an operator\), and the queue holds 1"):
        shop.launch(after=2)
    # Somebody with a free slot does not wait, so the limit is none of his business.
    shop.launch(shop.people.teammate, after=3)


def test_a_queued_execution_stops_at_once(shop: Shop) -> None:
    execution = shop.launch()
    request_stop(execution, by="bob", now=NOW + timedelta(seconds=5))

    assert (execution.state, execution.stop_requested_by, execution.ended_at) == (
        State.STOPPED,
        "bob",
        NOW + timedelta(seconds=5),
    )
    assert [entry.to_state for entry in execution.lifecycle.all()] == ["queued", "stopped"]


def test_stopping_twice_or_after_the_end_changes_nothing(shop: Shop) -> None:
    execution = shop.launch()
    Execution.objects.filter(pk=execution.pk).update(state="running", revision=7)
    for by in ("alice", "bob"):
        request_stop(execution, by=by, now=NOW)
    assert (execution.state, execution.stop_requested_by, execution.revision) == ("running", "alice", 8)

    Execution.objects.filter(pk=execution.pk).update(state="failed", stop_requested_at=None)
    request_stop(execution, by="bob", now=NOW)
    assert (execution.state, execution.stop_requested_at) == ("failed", None)


def test_forged_choice_is_checked_against_the_rows(shop: Shop) -> None:
    forged = HardwareTier(id="secret", name="Secret", node_pool="x", cores="1", memory="1Gi")
    assert paths(validate(replace(shop.request(), tier=forged))) == [("tier", "not_offered")]
