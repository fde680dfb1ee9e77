"""What the rules look at and what they remember. Amounts are thousandths: of a core, of a byte."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal


@dataclass(frozen=True, slots=True)
class ScalingSettings:
    """Defaults are those of kube-controller-manager."""

    sync_seconds: float = 15.0
    down_seconds: float = 300.0
    cpu_initialisation_seconds: float = 300.0
    initial_readiness_seconds: float = 30.0
    tolerance: float = 0.1


@dataclass(frozen=True, slots=True)
class PodState:
    """`requests`: for each container that keeps running its name and what it asks for. `ready` is None before it is known."""

    name: str
    phase: str
    terminating: bool
    ready: bool | None
    ready_since: datetime | None
    started: datetime | None
    requests: Sequence[tuple[str, Mapping[str, int]]]


@dataclass(frozen=True, slots=True)
class PodMetrics:
    """What one pod's containers used on average over the window that ended then."""

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
    """How far usage may be from its target, as a share of the target, before anything happens."""

    down: float
    up: float

    def holds(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(frozen=True, slots=True)
class MetricView:
    """All that a metric is judged by, at that moment: the size that is asked for, the pods and what they use.

    `present` is how many replicas there are, and `external` has the values of external metrics by name and selector.
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
    """A rescale that was made, by how many."""

    at: datetime
    replicas: int


@dataclass(frozen=True, slots=True)
class Memory:
    """What one autoscaler remembers between two looks. Lost with the process, as the real one's is."""

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
    """No number of replicas follows from a metric; the message says why."""
