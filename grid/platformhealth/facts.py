"""What the controller has read of the platform in one look, as plain data for the rules."""

from datetime import datetime
from typing import Literal

import msgspec

Severity = Literal["ok", "wait", "problem", "neutral"]


class Light(msgspec.Struct, frozen=True):
    """One service that we depend on: "wait" while nothing is known, "neutral" if it may be missing; `sentence` says why, and what to do."""

    key: str
    name: str
    severity: Severity
    sentence: str


class PlatformPod(msgspec.Struct, frozen=True):
    """A pod of the platform's own. `restarts` counts all; `restarted_at` is when a container ended last."""

    namespace: str
    name: str
    is_ready: bool
    restarts: int = 0
    restarted_at: datetime | None = None
    waits_for: str = ""


class Workload(msgspec.Struct, frozen=True):
    """A Deployment or DaemonSet of the platform's namespaces, with its pods: the worst ones, and how many more there are."""

    kind: str
    namespace: str
    name: str
    ready: int
    wanted: int
    changed_at: datetime | None = None
    labels: dict[str, str] = {}
    pods: tuple[PlatformPod, ...] = ()
    more_pods: int = 0


class Unread(msgspec.Struct, frozen=True):
    """Something that could not be read; `why` says why, and which rule to add when the controller lacks a right."""

    why: str


class Heartbeat(msgspec.Struct, frozen=True):
    """Something that is always renewed. `silent_seconds` is how long we saw no change, on our own clock; None after the first look."""

    silent_seconds: float | None
    holder: str = ""


class AutoscalerReport(msgspec.Struct, frozen=True):
    """The cluster autoscaler's own report; `health` is "" when it could not be read."""

    health: str
    heartbeat: Heartbeat


class WarningEvent(msgspec.Struct, frozen=True):
    """A Warning event about an object of the executions."""

    reason: str
    about: str
    message: str


class FailedPull(msgspec.Struct, frozen=True):
    """An image that a pod still waits for, with what its last pull said. `was_pulled` when a pod has had this image."""

    image: str
    message: str
    pod: str
    person: str
    was_pulled: bool = False


class ServerAnswers(msgspec.Struct, frozen=True):
    """Our own requests to the API server in this look. `checks` are those that `/readyz?verbose` says fail; None when it was not read."""

    slowest_seconds: float
    requests: int
    errors: tuple[str, ...] = ()
    checks: tuple[str, ...] | None = None


class LogShipping(msgspec.Struct, frozen=True):
    """How sending executions' logs goes since this controller leads: `why` it fails since `failing_since`, "" and None while it works."""

    receiver: str
    waiting_lines: int = 0
    lost: int = 0
    lost_at: datetime | None = None
    why: str = ""
    failing_since: datetime | None = None
