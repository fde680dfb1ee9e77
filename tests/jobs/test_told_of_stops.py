"""Owners are told when something is about to be stopped because they lost access, and when a schedule was paused and why; once."""

import pytest

from grid.jobs.scheduler import pause_departed
from grid.models import Job, Membership, Notification
from grid.models.dataplane import LOCAL
from grid.projects.departures import stop_departed
from tests.controller.world import World, in_world, to_running
from tests.jobs.test_schedules import job, scheduled
from tests.support.shop import NOW, Shop

__all__ = ["job"]  # a fixture

pytestmark = pytest.mark.django_db


def notices(event: str) -> list[tuple[str, str, str]]:
    rows = Notification.objects.filter(event=event).order_by("pk")
    return list(rows.values_list("user__username", "sentence", "path"))


@in_world
async def test_departing_member_is_notified_once_about_stops(shop: Shop) -> None:
    theirs = shop.launch(shop.people.teammate)
    shop.launch(shop.people.owner)
    world = World()
    await to_running(world, world.controller())
    shop.project.members.remove(shop.people.teammate)
    for _ in range(2):
        stop_departed(LOCAL, now=world.now)
    why = "bob has left the project Churn. It is stopped in 10 minutes, unless bob is back by then."
    assert notices("stopping_soon") == [("bob", why, "/projects/")], "the execution's page is closed to him"
    assert Notification.objects.get(event="stopping_soon").execution_id == theirs.pk


@in_world
async def test_demoted_viewer_is_notified_with_link_to_open_page(shop: Shop) -> None:
    theirs = shop.launch(shop.people.teammate)
    world = World()
    await to_running(world, world.controller())
    Membership.objects.filter(user=shop.people.teammate).update(role="viewer")
    stop_departed(LOCAL, now=world.now)
    [(_, sentence, path)] = notices("stopping_soon")
    assert sentence.startswith("bob is a viewer of the project Churn now. It is stopped in 10 minutes")
    assert path == f"/executions/{theirs.pk}/"


def test_schedule_paused_by_rule_is_notified_with_reason(job: Job) -> None:
    scheduled(job)
    Membership.objects.filter(user=job.owner).update(role="viewer")
    for _ in range(2):
        pause_departed(now=NOW)
    [(user, sentence, path)] = notices("schedule_paused")
    assert (user, path) == (job.owner.username, f"/jobs/{job.pk}/")
    assert sentence == f"Paused: {job.owner.username} is a viewer of the project {job.project.name} now."
