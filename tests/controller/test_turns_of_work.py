"""Due work of every other kind in turn by person, and what one person or project may have of it at once."""

import random
from collections import Counter
from datetime import datetime, timedelta

import pytest

from grid.configuration import BUILDS_PER_PERSON, MAXIMUM_EXECUTIONS_PER_USER, NOTIFICATIONS_PER_HOUR
from grid.database.encryption import encrypt
from grid.database.trouble import TroubleLog
from grid.database.turns import PersonTurns
from grid.environments import revisions
from grid.executions import dryrun
from grid.executions.launchrequest import JobSettings
from grid.jobs import jobruns
from grid.jobs.jobruns import OF_EACH, RunMover
from grid.models import (
    ConfigRecord,
    Delivery,
    EnvironmentRevision,
    Execution,
    Job,
    JobRun,
    LaunchCheck,
    User,
    WebhookTarget,
)
from grid.models.dataplane import LOCAL
from grid.notifications.deliveries import record_result, take_due
from grid.notifications.letters import SENT
from grid.queue import admission, snapshot
from tests.conftest import People
from tests.controller.world import World, in_world
from tests.jobs.test_schedules import job
from tests.support.flood import flood_of_runs
from tests.support.shop import NOW, Shop
from tests.support.virtual import loop_time

__all__ = ["job"]

SECOND = timedelta(seconds=1)
FLOOD = 300


def allow(setting: str, value: int) -> None:
    ConfigRecord.objects.update_or_create(key=setting, defaults={"value": str(value)})


@in_world
async def test_another_persons_retry_is_launched_in_the_first_look(shop: Shop, job: Job, people: People) -> None:
    launched = shop.launch(people.teammate, kind="job", environment=shop.job, job=JobSettings(command="true"))
    other = JobRun.objects.get(job=launched.pk)
    Execution.objects.filter(pk=launched.pk).delete()
    JobRun.objects.filter(pk=other.pk).update(next_attempt_at=NOW)
    flood_of_runs(job, shop, FLOOD, due=NOW - SECOND)
    started: list[str] = []
    context = World().controller()._context
    mover = RunMover(context, TroubleLog(loop_time), random.Random(1), started.append)
    mover.add(jobruns.jobs_due(NOW))
    await mover.move_some()
    assert other.attempts.count() == 1
    owners = Counter(Execution.objects.filter(pk__in=started).values_list("owner", flat=True))
    assert owners == {people.owner.pk: OF_EACH, people.teammate.pk: 1}


def test_sweep_is_launched_in_small_portions(shop: Shop, job: Job) -> None:
    flood_of_runs(job, shop, 1, due=NOW)
    (sweep,) = Job.objects.filter(pk="copy0")
    settings = sweep.run_settings.get()
    JobRun.objects.bulk_create(
        JobRun(job=sweep, number=number, settings=settings, requested_by="alice", next_attempt_at=NOW)
        for number in range(2, 1001)
    )
    done = jobruns.advance(sweep.pk, now=NOW)
    assert (len(done.launched), done.is_more) == (jobruns.AT_ONCE, True)
    waiting = sweep.runs.filter(reason="in_a_moment", next_attempt_at=NOW)
    assert waiting.count() == 1000 - jobruns.AT_ONCE
    Job.objects.filter(pk=sweep.pk).update(at_once=4)
    assert len(jobruns.advance(sweep.pk, now=NOW).launched) == 1
    room = sweep.runs.filter(reason="runs_at_once", reason_values__count=4, next_attempt_at=None)
    assert room.count() == 996


@pytest.mark.django_db
def test_notification_of_another_overtakes_waiting_floods() -> None:
    floods = [User.objects.create_user(f"flood{number}") for number in range(4)]
    other = User.objects.create_user("other")
    for user in (*floods, other):
        WebhookTarget.objects.create(user=user, url="https://example.com/", secret=encrypt("secret"))
    payload = {"event": "failed"}
    Delivery.objects.bulk_create(
        Delivery(user=user, channel="webhook", payload=payload, at=NOW, next_try_at=NOW)
        for user in floods
        for _ in range(20)
    )
    Delivery.objects.create(user=other, channel="webhook", payload=payload, at=NOW, next_try_at=NOW + SECOND)
    turns, sent = PersonTurns[int](), list[int]()
    for second in range(3):
        for parcel in take_due("webhook", busy=(), at_most=2, now=NOW + 2 * SECOND, turns=turns):
            record_result(parcel, SENT, now=NOW + (2 + second) * SECOND)
            sent.append(parcel.user_id)
    assert sorted(sent[:5]) == sorted(user.pk for user in (*floods, other))


@pytest.mark.django_db
def test_notifications_to_a_person_are_limited_per_hour() -> None:
    allow(NOTIFICATIONS_PER_HOUR.key, 2)
    user = User.objects.create_user("flood")
    WebhookTarget.objects.create(user=user, url="https://example.com/", secret=encrypt("secret"))
    for _ in range(3):
        Delivery.objects.create(user=user, channel="webhook", payload={"event": "failed"}, at=NOW, next_try_at=NOW)
    for number in (1, 1, 0):
        due = take_due("webhook", busy=(), at_most=5, now=NOW)
        assert len(due) == number
        for parcel in due:
            record_result(parcel, SENT, now=NOW)
    assert len(take_due("webhook", busy=(), at_most=5, now=NOW + timedelta(hours=1))) == 1


def builds(shop: Shop, **made_by: int) -> None:
    environment, number = shop.workspace, 1
    for name, count in made_by.items():
        for _ in range(count):
            number += 1
            EnvironmentRevision.objects.create(
                environment=environment,
                number=number,
                image=f"lab:{number}",
                base=environment.revisions.get(number=1),
                state="building",
                made_by=name,
            )


def test_builds_of_a_person_are_limited_and_others_wait(shop: Shop) -> None:
    allow(BUILDS_PER_PERSON.key, 2)
    builds(shop, flood=5, other=1)
    chosen = revisions.to_build()
    assert [revision.made_by for revision in chosen] == ["flood", "flood", "other"]
    late = EnvironmentRevision.objects.filter(reason="builds_of_person", reason_values={"most": 2})
    assert late.count() == 3
    EnvironmentRevision.objects.filter(pk__in=[revision.pk for revision in chosen]).update(build="begun")
    assert [revision.number for revision in revisions.to_build()] == [2, 3, 7]
    EnvironmentRevision.objects.filter(number=2).update(state="ready")
    assert [revision.number for revision in revisions.to_build()] == [3, 4, 7]


def test_dry_run_look_has_one_of_each_user(shop: Shop, people: People) -> None:
    for number in range(20):
        LaunchCheck.objects.create(id=f"c{number:02}", user=people.owner, data_plane=LOCAL, specs=[], asked_at=NOW)
    LaunchCheck.objects.create(id="other", user=people.teammate, data_plane=LOCAL, specs=[], asked_at=NOW + SECOND)
    unanswered = dryrun.unanswered(LOCAL, now=NOW + 2 * SECOND)
    assert [(user, id) for user, (id, _, _) in unanswered] == [(people.owner.pk, "c00"), (people.teammate.pk, "other")]


def test_slots_taken_since_a_decision_are_not_given_again(shop: Shop) -> None:
    allow(MAXIMUM_EXECUTIONS_PER_USER.key, 1)
    first, second = (shop.launch(after=number) for number in range(2))
    peek, reads = snapshot.peek, 0

    def taken_meanwhile(data_plane: str, *, now: datetime) -> object:
        nonlocal reads
        reads += 1
        queue = peek(data_plane, now=now)
        if reads == 1:
            Execution.objects.filter(pk=second.pk).update(state="deploying", slots_reserved_at=NOW)
        return queue

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot, "peek", taken_meanwhile)
        assert list(admission.admit_next(LOCAL, now=NOW).admitted) == []
    first.refresh_from_db()
    assert (first.state, reads) == ("queued", 2)
