"""The controller's watches: what fills its caches of pods, events and autoscalers."""

import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from grid.core.labels import MANAGED_BY, MANAGER
from grid.executions.context import Context
from grid.kube.hub import Hub
from grid.kube.objects import Autoscaler, Event, Pod
from grid.kube.reflector import ListWatch, Reflector
from grid.kube.resources import AUTOSCALERS, EVENTS, PODS
from grid.kube.store import HasMetadata, Store

K = TypeVar("K", bound=HasMetadata)
SELECTOR = f"{MANAGED_BY}={MANAGER}"


def watches(context: Context, *, clock: Callable[[], float], rng: random.Random) -> Iterator[Coroutine[Any, Any, None]]:
    """Yield what keeps each cache up to date, until it is cancelled."""
    hub, namespace = Hub(), context.namespace

    def follow(feed: ListWatch[K], store: Store[K]) -> Coroutine[Any, Any, None]:
        return Reflector(context.api, feed, store, hub, clock=clock, rng=rng).run()

    yield follow(ListWatch(PODS, Pod, namespace, SELECTOR), context.pods)
    yield follow(ListWatch(EVENTS, Event, namespace), context.events)
    yield follow(ListWatch(AUTOSCALERS, Autoscaler, namespace, SELECTOR), context.autoscalers)
