"""Tells people, who chose to be told, that what they queued is next or starts soon: of each person the first in the queue only, once it has
waited a little, each of the two at most once, and of a sweep its first run."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.database.periodic import PeriodicTask
from grid.executions.context import Context
from grid.models import Execution, NotificationChoice, NotificationEvent, QueueNotice
from grid.notifications import outbox
from grid.queue.wait_estimate.estimate import estimates
from grid.queue.wait_estimate.inputs import WaitEstimate
from grid.queue.wait_estimate.reading import read_facts

LOOK_SECONDS = 30.0
WAITED = timedelta(minutes=2)  # whoever waits for less is at the page still
SOON_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class QueuedLaunch:
    """A queued execution whose owner wants to know, and what was told of it."""

    id: str
    owner_id: int
    since: datetime
    next_told: bool = False
    soon_told: bool = False


@dataclass(frozen=True, slots=True)
class QueueNews:
    """What is told of one queued execution: that it is next, that it starts soon, or both at once."""

    id: str
    is_next: bool
    is_soon: bool
    sentence: str


def news_of(
    launches: Collection[QueuedLaunch], expected: Mapping[str, WaitEstimate], now: datetime
) -> Sequence[QueueNews]:
    """Return what is to be told; what is held, or waits for its budget, has no position. Pure."""
    standing = [launch for launch in launches if launch.id in expected and expected[launch.id].position]
    first, news = dict[int, QueuedLaunch](), []
    for launch in sorted(standing, key=lambda launch: expected[launch.id].position):
        first.setdefault(launch.owner_id, launch)
    for launch in first.values():
        estimate = expected[launch.id]
        if now - launch.since < WAITED:
            continue
        is_next = estimate.position == 1 and not launch.next_told
        is_soon = estimate.expected is not None and estimate.expected <= SOON_SECONDS and not launch.soon_told
        if is_next or is_soon:
            news.append(QueueNews(launch.id, is_next, is_soon, _sentence(estimate)))
    return news


def _sentence(estimate: WaitEstimate) -> str:
    place = _("It is number {position} in the queue.", position=estimate.position)
    if estimate.position == 1:
        place = _("It is next in the queue.")
    if estimate.expected is None:
        return place
    minutes = plural(max(1, round(estimate.expected / 60)), "minute", "minutes")
    return _("{place} It is expected to start in about {minutes}.", place=place, minutes=minutes)


def tell_queue(data_plane: str, *, now: datetime) -> int:
    """Tell what is new of the data plane's queue; return how many were told."""
    launches = _queued(data_plane)
    news = news_of(launches, estimates(read_facts(data_plane, now)), now) if launches else ()
    return sum(_tell(item, now) for item in news)


def _queued(data_plane: str) -> list[QueuedLaunch]:
    """Return what is queued by those who chose to be told, without what is told with something else: clusters that start with a
    workspace or job, retries, and the later runs of a sweep."""
    any_channel = Q(in_page=True) | Q(email=True) | Q(webhook=True)
    chosen = NotificationChoice.objects.filter(any_channel, event=NotificationEvent.QUEUE_POSITION).order_by()
    queued = Execution.objects.in_data_plane(data_plane).queued()
    rows = queued.filter(Q(run=None) | Q(attempt=1), owner__in=chosen.values("user"), attached_to=None).order_by()
    launches = rows.values_list(
        "pk", "owner_id", "state_since", "queue_notice__next_at", "queue_notice__soon_at", "run__number", "run__sweep"
    )
    return [
        QueuedLaunch(id, owner, since, next_at is not None, soon_at is not None)
        for id, owner, since, next_at, soon_at, number, sweep in launches
        if not sweep or sweep == str(number)
    ]


def _tell(news: QueueNews, now: datetime) -> bool:
    """Tell it in the transaction that records that it was told; of two controllers one does."""
    with transaction.atomic():
        if not Execution.objects.queued().filter(pk=news.id).exists():
            return False
        QueueNotice.objects.get_or_create(execution_id=news.id)
        notice = QueueNotice.objects.select_for_update().get(pk=news.id)
        is_new = (news.is_next and notice.next_at is None) or (news.is_soon and notice.soon_at is None)
        if is_new:
            notice.next_at = notice.next_at or (now if news.is_next else None)
            notice.soon_at = notice.soon_at or (now if news.is_soon else None)
            notice.save()
            outbox.record(news.id, NotificationEvent.QUEUE_POSITION, news.sentence, now=now)
        return is_new


def periodic(context: Context) -> PeriodicTask:
    """Return the task that tells owners how their launches stand in the queue."""

    async def run_once() -> None:
        await context.due_work(tell_queue, context.target.data_plane, now=context.clock())

    return PeriodicTask("queue notices", LOOK_SECONDS, run_once)
