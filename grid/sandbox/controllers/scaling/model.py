"""The data that the rules read and remember. Amounts are thousandths: of a core, of a byte."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal


@dataclass(frozen=True, slots=True)
class ScalingSettings:
    """The controller's settings; the defaults are those of kube-controller-manager."""

    sync_seconds: float = 15.0
    down_seconds: float = 300.0
    cpu_initialisation_seconds: float = 300.0
    initial_readiness_seconds: float = 30.0
    tolerance: float = 0.1


@dataclass(frozen=True, slots=True)
class PodState:
    """One pod. `requests` has name and requests of each container that keeps running. `ready` is None before it is known."""

    name: str
    phase: str
    terminating: bool
    ready: bool | None
    ready_since: datetime | None
    started: datetime | None
    requests: Sequence[tuple[str, Mapping[str, int]]]


@dataclass(frozen=True, slots=True)
class PodMetrics:
    """The average usage of one pod's containers over the window that ended at `at`."""

    containers: Mapping[str, Mapping[str, int]]
    at: datetime
    window: timedelta


@dataclass(frozen=True, slots=True)
class NamespaceUsage:
    """Usage by the names of the pods of one namespace; `problem` says why there is none."""

    namespace: str = ""
    pods: Mapping[str, PodMetrics] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class External:
    """All values of one external metric, in thousandths; `problem` says why there are none."""

    values: Sequence[int] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The distance of usage from its target, as a share of the target, within which nothing changes."""

    down: float
    up: float

    def holds(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(frozen=True, slots=True)
class MetricView:
    """The input for judging one metric at one moment: the wanted size, the pods and their usage.

    `present` is the present number of replicas, and `external` has the values of external metrics by name and
    selector.
    """

    current: int
    pods: Sequence[PodState]
    usage: NamespaceUsage
    tolerance: Tolerance
    settings: ScalingSettings
    now: datetime
    present: int = 0
    external: Mapping[tuple[str, str], External] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recommendation:
    at: datetime
    replicas: int


@dataclass(frozen=True, slots=True)
class Rescale:
    """A rescale that was made; `replicas` is the difference."""

    at: datetime
    replicas: int


@dataclass(frozen=True, slots=True)
class Memory:
    """The state of one autoscaler between two reconciliations. It is lost with the process, like the real one's."""

    recommendations: tuple[Recommendation, ...] = ()
    ups: tuple[Rescale, ...] = ()
    downs: tuple[Rescale, ...] = ()


@dataclass(frozen=True, slots=True)
class Happening:
    """An event to record about the autoscaler."""

    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


class CannotCompute(Exception):
    """A metric gives no number of replicas; the message says why."""
