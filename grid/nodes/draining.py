"""Drains a node step by step: evicts what a drain evicts, through the Eviction API alone, and keeps what each pod waits for.

A step reads the node's pods as they are. What it found is stored with the task, so that pages show it and the next leader goes on; only the
back-off of pods whose eviction was refused is in memory, and after a change of leaders they are tried at once.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from grid.core.decoding import prepared
from grid.core.errors import ClusterUnavailable, Conflict, GridError, NotAllowed, NotFound, TooManyRequests
from grid.core.labels import KEYS
from grid.core.translation import gettext as _
from grid.kube.api import KubeApi
from grid.kube.errors import answer_of
from grid.kube.listing import read_chunks
from grid.kube.objects import Pod
from grid.kube.resources import PODS
from grid.nodes.drain import is_evicted

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 5.0  # after the first refusal; twice as long after each further one
LONGEST_SECONDS = 60.0
PATIENCE = timedelta(seconds=30)  # for which a pod may outlive its grace period before the page says so
_LONGEST_WHY = 300
_State = Literal["waits", "ending", "gone"]


class PodProgress(msgspec.Struct, frozen=True):
    """How far one pod is, since when, and why it is no further."""

    namespace: str
    name: str
    state: _State
    since: datetime
    why: str = ""
    execution: str = ""


Progress = Mapping[str, PodProgress]  # by the pod's uid


def parse_progress(stored: object) -> Progress:
    """Return what was stored; nothing when it is of another release."""
    try:
        return msgspec.convert(stored, prepared(dict[str, PodProgress]), strict=False)
    except msgspec.ValidationError:
        return {}


def progress_of(before: Progress, pods: Sequence[Pod], now: datetime) -> dict[str, PodProgress]:
    """Return how far the drain is, given the node's pods: those that a drain evicts, and those that it has evicted."""
    present = {pod.metadata.uid: _seen(pod, before.get(pod.metadata.uid), now) for pod in pods if is_evicted(pod)}
    return {uid: pod if pod.state == "gone" else _at(pod, "gone", now) for uid, pod in before.items()} | present


def _at(pod: PodProgress, state: _State, now: datetime) -> PodProgress:
    return msgspec.structs.replace(pod, state=state, since=now, why="")


def _seen(pod: Pod, before: PodProgress | None, now: datetime) -> PodProgress:
    meta = pod.metadata
    state: _State = "waits" if meta.deletion_timestamp is None else "ending"
    same = before if before is not None and before.state == state else None
    since, why = same.since if same else now, same.why if same and state == "waits" else ""
    if meta.deletion_timestamp is not None and now - meta.deletion_timestamp > PATIENCE:
        why = _(
            "It has not ended though its grace period is over: its node may not answer, or a finalizer holds it. The drain waits; "
            "look at the pod, and remove the node in the cloud if it is lost."
        )
    return PodProgress(meta.namespace, meta.name, state, since, why, meta.labels.get(KEYS.execution, ""))


class Evictor:
    """Evicts the pods of nodes, and backs off from each whose eviction was refused."""

    def __init__(self, api: KubeApi, clock: Callable[[], datetime]) -> None:
        self._api = api
        self._clock = clock
        self._refused: dict[str, tuple[int, datetime]] = {}  # by uid: how often, and when it is tried again

    async def read(self, node_name: str, before: Progress) -> Progress:
        """Return how far the drain is by now. Raise the API server's errors."""
        pods = [
            pod
            async for chunk in read_chunks(self._api, PODS, Pod, field_selector=f"spec.nodeName={node_name}")
            for pod in chunk
        ]
        return progress_of(before, pods, self._clock())

    async def evict(self, progress: Progress) -> Progress:
        """Evict what may be evicted now and return how far that is. Raise the API server's errors, but for those about one pod."""
        after = dict(progress)
        for uid, pod in progress.items():
            if pod.state != "waits":
                self._refused.pop(uid, None)
            elif uid not in self._refused or self._clock() >= self._refused[uid][1]:
                after[uid] = await self._evict(uid, pod)
        return after

    async def _evict(self, uid: str, pod: PodProgress) -> PodProgress:
        now = self._clock()
        try:
            await self._api.evict(pod.name, namespace=pod.namespace, uid=uid)
        except (NotFound, Conflict):  # gone, and perhaps another one has its name: the next step sees it
            return _at(pod, "gone", now)
        except NotAllowed:
            raise
        except GridError as error:
            if isinstance(error, ClusterUnavailable) and not answer_of(error).code:
                raise  # no answer at all: no other pod would get one
            times = self._refused.get(uid, (0, now))[0]
            pause = min(LONGEST_SECONDS, AGAIN_SECONDS * 2**times)
            self._refused[uid] = (min(times + 1, 10), now + timedelta(seconds=pause))
            return msgspec.structs.replace(pod, why=why_refused(error))
        self._refused.pop(uid, None)
        logger.info("pod evicted pod=%s/%s", pod.namespace, pod.name)
        return _at(pod, "ending", now)


def why_refused(error: GridError) -> str:
    """Return what the API server said: which budget, where it names one."""
    answer = answer_of(error)
    causes = [cause.message for cause in (answer.details.causes if answer.details else None) or () if cause.message]
    reason = " ".join([answer.message, *causes])[:_LONGEST_WHY]
    if isinstance(error, TooManyRequests):
        return _("A PodDisruptionBudget does not allow it now; it is tried again: {answer}", answer=reason)
    return _("The API server refused; it is tried again: {answer}", answer=reason)
