"""Kubernetes events, kept per object and in total up to a cap: Normal events go before Warnings and older ones before newer ones. What
belongs to an execution's history is written to the database by the controller."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime

from grid.kube.hub import Topic
from grid.kube.objects import Event, Pod, VolumeClaim
from grid.kube.resources import PODS, VOLUME_CLAIMS
from grid.kube.store import Store

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def _object_of(event: Event) -> str:
    about = event.involved_object
    return _object_key(about.kind, about.namespace, about.name)


def _object_key(kind: str, namespace: str, name: str) -> str:
    return f"{kind}/{namespace}/{name}" if kind and name else ""


def topic_about(kind: str, name: str, namespace: str = "") -> Topic:
    return "events", "object", _object_key(kind, namespace, name)


def age_order(event: Event) -> tuple[datetime, str]:
    return event.last_seen or _LONG_AGO, event.metadata.key


class EventStore(Store[Event]):
    """Keep events up to a cap: the least useful are dropped first. `indexes` are further ones, beside its own."""

    def __init__(
        self, *, cap: int = 20_000, per_object: int = 50, indexes: Mapping[str, Callable[[Event], str]] | None = None
    ) -> None:
        own = {"object": _object_of, "component": lambda event: event.reporter}
        super().__init__("events", indexes={**own, **(indexes or {})})
        self._cap, self._per_object = cap, per_object

    def about(self, *, kind: str, name: str, namespace: str = "", uid: str = "") -> Sequence[Event]:
        """Return the events about one object, oldest first; with a `uid` only those about that very incarnation.

        Nodes' events carry no namespace, and a kubelet's carry the node's name for a uid: both are understood.
        """
        known = self.by("object", _object_key(kind, namespace, name))
        if uid:
            known = [event for event in known if event.involved_object.uid in ("", uid, name)]
        return sorted(known, key=age_order)

    def about_claim(self, claim: VolumeClaim) -> Sequence[Event]:
        meta = claim.metadata
        return self.about(kind=VOLUME_CLAIMS.kind, name=meta.name, namespace=meta.namespace, uid=meta.uid)

    def about_pod(self, pod: Pod) -> Sequence[Event]:
        meta = pod.metadata
        return self.about(kind=PODS.kind, name=meta.name, namespace=meta.namespace, uid=meta.uid)

    def from_component(self, component: str) -> Sequence[Event]:
        return sorted(self.by("component", component), key=age_order)

    def apply(self, changed: Event) -> bool:
        if not super().apply(changed):
            return False
        self._shrink(self.by("object", _object_of(changed)), self._per_object)
        if len(self) > self._cap:
            self._shrink(self.values(), self._cap - self._cap // 10)
        return self.get(changed.metadata.key) is not None

    def _shrink(self, events: Collection[Event], size: int) -> None:
        excess = len(events) - size
        if excess > 0:
            for event in sorted(events, key=lambda event: (event.type != "Normal", *age_order(event)))[:excess]:
                self.discard(event.metadata.key)
