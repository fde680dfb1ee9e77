"""The intervals in which pods hold nodes: which begin and which end, decided from the records and the pods. Pure.

A pod holds its node from its binding until its containers have finished, or it is gone, however long it is terminating meanwhile. Times
are truncated to whole seconds, as Kubernetes' own are, so that sums are exact.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from grid.core.labels import APP_COMPONENT, HEAD
from grid.diagnosis.requests import has_ended
from grid.kube.objects import Pod


@dataclass(frozen=True, slots=True)
class Interval:
    """The time of one pod on its node; `ended_at` is None while the pod holds it."""

    pod_uid: str
    pod_name: str
    node_name: str
    is_head: bool
    began_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """The known records of one execution: beginnings of open intervals by pod, and the still visible pods whose intervals are over."""

    open: Mapping[str, datetime] = field(default_factory=dict)
    over: Set[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Changes:
    """The records to write: new intervals, which may be over already, and the ends of open ones by their pods' uids."""

    begun: tuple[Interval, ...] = ()
    ended: Mapping[str, datetime] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.begun or self.ended)


def interval(
    pod: Pod, *, gone_at: datetime | None = None, now: datetime, attended_until: datetime | None = None
) -> Interval | None:
    """Return the time for which a pod has held its node; None when it never had one. It was seen to be gone at `gone_at`; if it has ended
    without saying when, it counts until `attended_until`, when a controller last looked."""
    if not pod.spec.node_name:
        return None
    meta, now = pod.metadata, _whole(now)
    ended_at = gone_at
    if has_ended(pod):
        disrupted_at = _transition(pod, "DisruptionTarget", "True") or _transition(pod, "Ready", "False")
        ended_at = _finished_at(pod) or disrupted_at or gone_at or attended_until or now
    # A pod that has ended may no longer say when it began; an existing record knows better.
    bound_at = _transition(pod, "PodScheduled", "True") or pod.status.start_time
    began_at = min(_whole(bound_at or ended_at or now), _whole(gone_at or now), now)
    if ended_at is not None and has_ended(pod) and ended_at < began_at:
        ended_at = began_at + _ran_for(pod)  # the node's clock is behind
    return Interval(
        pod_uid=meta.uid,
        pod_name=meta.name,
        node_name=pod.spec.node_name,
        is_head=meta.labels.get(APP_COMPONENT) == HEAD,
        began_at=began_at,
        ended_at=None if ended_at is None else max(began_at, min(_whole(ended_at), now)),
    )


def changes(recorded: Recorded, seen: Iterable[Interval], vanished: Mapping[str, datetime]) -> Changes:
    """Return what brings the records up to date, and nothing the second time. `vanished` are the ends of open intervals without a pod."""
    by_uid = {held.pod_uid: held for held in seen}
    begun = [held for uid, held in by_uid.items() if uid not in recorded.open and uid not in recorded.over]
    ended = {**{uid: by_uid[uid].ended_at for uid in recorded.open.keys() & by_uid.keys()}, **vanished}
    ends = {uid: max(recorded.open[uid], _whole(at)) for uid, at in ended.items() if at is not None}
    return Changes(tuple(begun), ends)


def after(recorded: Recorded, made: Changes, visible: Set[str]) -> Recorded:
    """Return the records after `made`; those that are over are remembered only for the `visible` pods."""
    begun_open = {held.pod_uid: held.began_at for held in made.begun if held.ended_at is None}
    still_open = {uid: at for uid, at in recorded.open.items() if uid not in made.ended}
    over = recorded.over | made.ended.keys() | {held.pod_uid for held in made.begun if held.ended_at is not None}
    return Recorded(still_open | begun_open, frozenset(over & visible))


def _transition(pod: Pod, kind: str, status: str) -> datetime | None:
    times = (each.last_transition_time for each in pod.status.conditions if (each.type, each.status) == (kind, status))
    return next(times, None)


def _ran_for(pod: Pod) -> timedelta:
    """Return the time from the first container's start to the last one's end, by the node's own clock; zero when it is not known."""
    statuses = pod.status.container_statuses
    ends = [status.state.terminated for status in statuses if status.state.terminated is not None]
    began = [end.started_at for end in ends if end.started_at is not None]
    finished = [end.finished_at for end in ends if end.finished_at is not None]
    return max(timedelta(), max(finished) - min(began)) if began and finished else timedelta()


def _finished_at(pod: Pod) -> datetime | None:
    """Return when the last of its containers finished; None when one does not say so, of an evicted pod for example."""
    ends = [status.state.terminated for status in pod.status.container_statuses]
    times = [end.finished_at for end in ends if end is not None and end.finished_at is not None]
    return max(times) if times and len(times) == len(ends) else None


def _whole(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)
