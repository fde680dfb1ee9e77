"""The last measured usage of nodes and pods.

Written by one poller (metrics.k8s.io or Prometheus, see `grid.metrics.poller`), read by anybody on the loop. An installation without a
source of metrics is normal: then everything here is None and `unavailable` says so in a sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec


class Usage(msgspec.Struct, frozen=True, gc=False):
    """One measurement. Each round brings one for each pod, so the garbage collector does not track them."""

    cpu_millicores: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """One round of measurements: nodes by name, pods by `namespace/name`."""

    nodes: Mapping[str, Usage]
    pods: Mapping[str, Usage]


class UsageStore:
    """Holds the last measurements. `unavailable` is "" while they arrive, else a sentence that says why not and what to do."""

    name = "usage"

    def __init__(self) -> None:
        self.version = 0
        self.unavailable = "Usage has not been measured yet."
        self._measured = Measured({}, {})

    def node(self, name: str) -> Usage | None:
        return self._measured.nodes.get(name)

    def pod(self, key: str) -> Usage | None:
        return self._measured.pods.get(key)

    def replace(self, measured: Measured) -> None:
        """Store a new round of measurements; called by the poller."""
        self._measured = measured
        self.unavailable = ""
        self.version += 1

    def mark_unavailable(self, sentence: str, *, forget: bool = False) -> bool:
        """Record why no round arrived and return True when anything changed; called by the poller. `forget` drops numbers that would
        mislead."""
        news = self.unavailable != sentence or (forget and bool(self._measured.nodes or self._measured.pods))
        self.unavailable = sentence
        if forget:
            self._measured = Measured({}, {})
        self.version += news
        return news
