"""Recording of core/v1 Events: a sentence on what happened to an object, with a count of its repetitions.

Recording never fails its caller: an event that cannot be written is logged. The same event about the same object (type,
reason and message alike) raises the count of the one already written. From the eleventh different message
on, all share one event that says so, as on Kubernetes, so that a loop of failures cannot fill the store.
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

from grid.core.errors import Conflict, GridError, NotAllowed, NotFound
from grid.kube.resources import EVENTS
from grid.sandbox.client.clock import Clock, SystemClock
from grid.sandbox.client.http import Api
from grid.sandbox.client.objects import Object, format_time

logger = logging.getLogger(__name__)

_REMEMBERED = 4096
_LONGEST_MESSAGE = 1024
_COMBINED = "(combined from similar events): "
_MOST_SIMILAR = 10
_SIMILAR_SECONDS = 600.0
_Key = tuple[str, ...]


@dataclass(slots=True)
class _Similar:
    """The different messages of one kind of event about one object, and the time of the latest."""

    messages: set[str]
    latest: float


class EventRecorder:
    """A recorder of one component's events; `host` is the node's name for a kubelet and empty for a controller."""

    def __init__(self, api: Api, component: str, *, host: str = "", clock: Clock | None = None) -> None:
        self._api = api
        self._component = component
        self._host = host
        self._clock = clock or SystemClock()
        self._written: OrderedDict[_Key, Object] = OrderedDict()
        self._similar: OrderedDict[_Key, _Similar] = OrderedDict()
        self._locks: dict[_Key, asyncio.Lock] = {}

    async def record(
        self, about: Object, reason: str, message: str, *, type: Literal["Normal", "Warning"] = "Normal"
    ) -> None:
        """Record an event about an object reference (see `reference_to`); return when it is written or given up."""
        kind = (about.get("uid", ""), about.get("name", ""), about.get("fieldPath", ""), type, reason)
        key = (*kind, message)
        if self._is_one_of_many(kind, message):
            key = (*kind, _COMBINED)
            message = _COMBINED + message
        message = message[:_LONGEST_MESSAGE]
        lock = self._locks.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                self._remember(key, await self._write(key, about, type, reason, message))
        except GridError as error:
            # A terminating namespace refuses new events, which is expected; every other refusal is worth a warning.
            level = logging.DEBUG if isinstance(error, NotAllowed | NotFound) else logging.WARNING
            logger.log(level, "event not written reason=%s about=%s: %s", reason, about.get("name"), error)
        finally:
            if not lock.locked():
                self._locks.pop(key, None)

    def _is_one_of_many(self, kind: _Key, message: str) -> bool:
        now = self._clock.monotonic()
        similar = self._similar.get(kind)
        if similar is None or now - similar.latest > _SIMILAR_SECONDS:
            similar = self._similar[kind] = _Similar(set(), now)
        similar.latest = now
        self._similar.move_to_end(kind)
        if len(self._similar) > _REMEMBERED:
            self._similar.popitem(last=False)
        if message not in similar.messages and len(similar.messages) >= _MOST_SIMILAR:
            return True
        similar.messages.add(message)
        return False

    async def _write(self, key: _Key, about: Object, type: str, reason: str, message: str) -> Object:
        now = format_time(self._clock.now())
        namespace = about.get("namespace") or "default"
        known = self._written.get(key)
        if known is not None:
            path = EVENTS.path(namespace, known["metadata"]["name"])
            again = {"count": known.get("count", 1) + 1, "lastTimestamp": now, "message": message}
            try:
                return await self._api.patch(path, again)
            except NotFound:
                pass
        source = {"component": self._component} | ({"host": self._host} if self._host else {})
        stamp = int(self._clock.now().timestamp() * 1_000_000_000)
        event: Object = {
            "kind": "Event",
            "apiVersion": "v1",
            "metadata": {"name": f"{about.get('name', '')}.{stamp:x}", "namespace": namespace},
            "involvedObject": about,
            "reason": reason,
            "message": message,
            "type": type,
            "source": source,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        return await self._create(namespace, event)

    async def _create(self, namespace: str, event: Object) -> Object:
        """Create the event. Two events of one microsecond about one object would share a name; the later takes the next free one."""
        while True:
            try:
                return await self._api.create(EVENTS.path(namespace), event)
            except Conflict:
                stem, _, stamp = event["metadata"]["name"].rpartition(".")
                event["metadata"]["name"] = f"{stem}.{int(stamp, 16) + 1:x}"

    def _remember(self, key: _Key, event: Object) -> None:
        self._written[key] = event
        self._written.move_to_end(key)
        if len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)
