"""Decides for each request whether it may pass, and where to."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from channels.db import database_sync_to_async

from dashboard.proxy import grants
from dashboard.proxy.grants import Passage
from grid.kube.objects import Pod
from grid.labels import APP_COMPONENT

# A page of JupyterLab is a hundred requests at once; asking the database for each would add nothing but load.
_REMEMBER_SECONDS = 2.0
_REMEMBER_AT_MOST = 10_000
# Longer than any that we give; what anybody may send is not kept, or ten thousand of them would fill the memory.
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Target:
    """The web server of one pod."""

    address: str
    port: int

    @property
    def netloc(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"


class Gate(Protocol):
    """What the proxy asks before it forwards anything."""

    async def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
        """The secret that a fresh ticket gives, once, to the browser that it was made for."""
        ...

    async def passage(self, execution_id: str, secret: str) -> Passage | None:
        """The passage that a secret opens, or None."""
        ...

    def target(self, passage: Passage) -> Target | None:
        """Where the execution's pod listens, or None while there is no pod with an address."""
        ...


class GrantGate:
    """Asks the grants and the pods; of a cluster's pods the head answers.

    Remembers each answer for two seconds, so a logout, a stop and a change of owner take effect that fast.
    """

    def __init__(
        self, pods_of: Callable[[str], Sequence[Pod]], *, namespace: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`pods_of` finds pods by a label, which is believed in `namespace` only: elsewhere others may write it."""
        self._pods_of = pods_of
        self._namespace = namespace
        self._clock = clock
        self._answers: dict[tuple[str, str], tuple[float, Passage | None]] = {}

    async def exchange(self, execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
        return await database_sync_to_async(grants.exchange_ticket)(execution_id, ticket, opener, now=now)

    async def passage(self, execution_id: str, secret: str) -> Passage | None:
        if len(execution_id) > _LONGEST or len(secret) > _LONGEST:
            return None
        key = (execution_id, secret)
        known = self._answers.get(key)
        if known is not None and known[0] > self._clock():
            return known[1]
        answer = await database_sync_to_async(grants.passage)(execution_id, secret)
        if len(self._answers) >= _REMEMBER_AT_MOST:
            self._answers.clear()
        self._answers[key] = (self._clock() + _REMEMBER_SECONDS, answer)
        return answer

    def target(self, passage: Passage) -> Target | None:
        found = self._pods_of(passage.execution_id)
        pods = [
            pod for pod in found if pod.metadata.namespace == self._namespace and _reachable(pod, passage.component)
        ]
        pods.sort(key=lambda pod: pod.metadata.deletion_timestamp is not None)  # of two heads the one that stays
        return Target(pods[0].status.pod_ip, passage.port) if pods and passage.port else None


def _reachable(pod: Pod, component: str) -> bool:
    is_it = not component or pod.metadata.labels.get(APP_COMPONENT) == component
    return is_it and bool(pod.status.pod_ip) and pod.status.phase == "Running"
