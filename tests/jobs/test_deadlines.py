"""Whoever set a long timeout is told shortly before it ends the job, once, whoever looks and however often."""

from datetime import timedelta

import msgspec
import pytest

from grid.core.labels import KEYS
from grid.executions.stopping import request_stop
from grid.jobs.deadlines import Deadline, DeadlineWatch, coming_deadlines, tell_deadlines
from grid.kube.objects import Metadata, Pod, PodSpec, PodStatus
from grid.models import Execution, Notification, State
from tests.controller.world import in_world
from tests.notifications.test_sender import at_once
from tests.support.shop import NOW, Shop

MINUTE = timedelta(minutes=1)
TWO_HOURS = 7200


def pod(
    id: str = "abc", *, limit: int | None = TWO_HOURS, started: timedelta = 111 * MINUTE, phase: str = "Running"
) -> Pod:
    return Pod(
        metadata=Metadata(name=f"job-{id}", namespace="x", labels={KEYS.execution: id}),
        spec=PodSpec(active_deadline_seconds=limit),
        status=PodStatus(phase=phase, start_time=NOW - started),
    )


def test_a_deadline_is_near_ten_minutes_before_it() -> None:
    assert coming_deadlines([pod(started=109 * MINUTE)], NOW) == {}
    deadlines = coming_deadlines([pod(started=110 * MINUTE)], NOW)
    assert deadlines == {"abc": Deadline(NOW + 10 * MINUTE, timedelta(hours=2))}
    assert coming_deadlines([pod(started=120 * MINUTE)], NOW) == {}, "it is over"


def test_deadlines_skip_short_timeouts_and_inactive_pods() -> None:
    gone = msgspec.structs.replace(pod(), metadata=msgspec.structs.replace(pod().metadata, deletion_timestamp=NOW))
    idle = msgspec.structs.replace(pod(), status=PodStatus(phase="Pending"))
    pods = [pod(limit=3600, started=55 * MINUTE), pod(limit=None), pod(phase="Failed"), gone, idle]
    assert [coming_deadlines([inactive], NOW) for inactive in pods] == [{}] * len(pods)
    assert coming_deadlines([pod(limit=3601, started=55 * MINUTE)], NOW) != {}


@pytest.fixture
def running(shop: Shop) -> Execution:
    execution = shop.launch(kind="job", environment=shop.job, title="Train")
    execution.state = State.RUNNING
    execution.save(update_fields=["state"])
    return execution


@pytest.mark.django_db
def test_deadline_is_notified_once_with_time_and_next_step(running: Execution) -> None:
    coming = coming_deadlines([pod(running.pk)], NOW)
    for _ in range(2):
        tell_deadlines(coming, now=NOW)
    notice = Notification.objects.get()
    assert (notice.event, notice.title) == ("stopping_soon", "Train")
    assert notice.sentence == (
        "Its timeout of 2 h ends it in 9 minutes, at 09:09 UTC. "
        "What it has written to the project's files stays. Give the job a longer timeout before its next run."
    )


@pytest.mark.django_db
def test_stopping_or_gone_execution_gets_no_deadline_notification(running: Execution) -> None:
    request_stop(running, by="root", now=NOW)
    tell_deadlines({running.pk: Deadline(NOW + MINUTE, 2 * 60 * MINUTE), "gone": Deadline(NOW, MINUTE)}, now=NOW)
    assert not Notification.objects.exists()


@pytest.mark.django_db
@in_world
async def test_database_is_queried_once_near_the_deadline(running: Execution) -> None:
    asked = []

    async def database(work: object, /, *args: object, **kwargs: object) -> object:
        asked.append(work)
        return await at_once(work, *args, **kwargs)  # type: ignore[arg-type]

    pods: list[Pod] = []
    watch = DeadlineWatch(lambda: pods, database, lambda: NOW)  # type: ignore[arg-type]
    await watch.run_once()
    assert asked == []
    pods.append(pod(running.pk))
    await watch.run_once()
    await watch.run_once()
    assert asked == [tell_deadlines]
