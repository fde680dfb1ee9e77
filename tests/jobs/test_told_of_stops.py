"""Owners are told when something is about to be stopped because they lost access, and when a schedule was paused and why; once."""

from datetime import timedelta

import pytest

from grid.jobs import schedules
from grid.jobs.scheduler import MOST_REFUSED, pause_departed
from grid.models import HardwareTier, Job, Membership, Notification
from grid.models.dataplane import LOCAL
from grid.projects.departures import stop_departed
from tests.controller.world import World, in_world, to_running
from tests.jobs.test_schedules import job, scheduled
from tests.support.schedules import run_due
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


@in_world
async def test_stop_notification_of_a_pair_names_only_the_workspace(shop: Shop) -> None:
    workspace, _ = shop.launch_with_cluster()
    world = World()
    await to_running(world, world.controller())
    Membership.objects.filter(user=shop.people.owner).delete()
    stop_departed(LOCAL, now=world.now)
    assert [row.execution_id for row in Notification.objects.filter(event="stopping_soon")] == [workspace.pk]


def test_schedule_paused_by_rule_is_notified_with_reason(job: Job) -> None:
    scheduled(job)
    Membership.objects.filter(user=job.owner).update(role="viewer")
    for _ in range(2):
        pause_departed(now=NOW)
    [(user, sentence, path)] = notices("schedule_paused")
    assert (user, path) == (job.owner.username, f"/jobs/{job.pk}/")
    assert sentence == f"Paused: {job.owner.username} is a viewer of the project {job.project.name} now."


def test_a_schedule_that_its_owner_pauses_is_no_news(job: Job) -> None:
    schedule = scheduled(job)
    schedules.pause(schedule.pk, by=job.owner.username, now=NOW)
    assert notices("schedule_paused") == []
    schedules.resume(schedule.pk, by=job.owner.username, now=NOW)
    schedules.pause(schedule.pk, by="root", now=NOW)
    assert [sentence for _, sentence, _ in notices("schedule_paused")] == ["Paused by root."]


def test_unstarted_runs_and_following_pause_are_notified_with_reason(job: Job) -> None:
    scheduled(job)
    HardwareTier.objects.update(is_archived=True)
    for hour in range(1, MOST_REFUSED + 2):
        run_due(now=NOW + timedelta(hours=hour))
    failures = [sentence for _, sentence, _ in notices("failed")]
    assert len(failures) == MOST_REFUSED
    assert all(failures)
    [(_, sentence, _)] = notices("schedule_paused")
    assert sentence.startswith(f"Paused: Its last {MOST_REFUSED} runs were not started.")
