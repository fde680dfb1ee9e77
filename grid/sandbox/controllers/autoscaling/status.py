"""The text of the ConfigMap `cluster-autoscaler-status`: the YAML that the real autoscaler writes. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import yaml

from grid.sandbox.client import Object, format_micro_time

NAME, NAMESPACE = "cluster-autoscaler-status", "kube-system"
LAST_UPDATED = "cluster-autoscaler.kubernetes.io/last-updated"


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """One pool at one moment. `target` counts every machine, `candidates` the unneeded nodes."""

    name: str
    minimum: int
    maximum: int
    target: int
    registered: int
    ready: int
    candidates: int
    growing: bool
    in_backoff: str = ""

    @property
    def unregistered(self) -> int:
        return max(0, self.target - self.registered)


@dataclass(slots=True)
class Transitions:
    """The time at which each published state last changed; kept between two reports."""

    _since: dict[str, tuple[str, datetime]] = field(default_factory=dict)

    def since(self, subject: str, state: str, now: datetime) -> datetime:
        known = self._since.get(subject)
        if known is None or known[0] != state:
            self._since[subject] = (state, now)
            return now
        return known[1]


def status_text(groups: Sequence[GroupFacts], transitions: Transitions, now: datetime) -> str:
    """Return the document's text; the keys are in the real autoscaler's order."""
    total = GroupFacts(
        name="",
        minimum=sum(group.minimum for group in groups),
        maximum=sum(group.maximum for group in groups),
        target=sum(group.target for group in groups),
        registered=sum(group.registered for group in groups),
        ready=sum(group.ready for group in groups),
        candidates=sum(group.candidates for group in groups),
        growing=any(group.growing for group in groups),
    )
    document = {
        "time": now.strftime("%Y-%m-%d %H:%M:%S.%f +0000 UTC"),
        "autoscalerStatus": "Running",
        "clusterWide": _section(total, transitions, now, cluster_wide=True),
        "nodeGroups": [{"name": group.name, **_section(group, transitions, now)} for group in groups],
    }
    return yaml.safe_dump(document, sort_keys=False)


def _section(
    group: GroupFacts, transitions: Transitions, now: datetime, *, cluster_wide: bool = False
) -> dict[str, Any]:
    up = "Backoff" if group.in_backoff else "InProgress" if group.growing else "NoActivity"
    down = "CandidatesPresent" if group.candidates else "NoCandidates"
    scale_up: dict[str, Any] = {"status": up}
    if group.in_backoff:
        scale_up["backoffInfo"] = {"errorCode": "cannotCreateInstance", "errorMessage": group.in_backoff}
    scale_down: dict[str, Any] = {"status": down}
    if group.candidates:
        scale_down["candidates"] = group.candidates
    return {
        "health": _health(group, transitions, now, cluster_wide=cluster_wide),
        "scaleUp": scale_up | _times(f"{group.name}/scaleUp", up, transitions, now),
        "scaleDown": scale_down | _times(f"{group.name}/scaleDown", down, transitions, now),
    }


def _health(group: GroupFacts, transitions: Transitions, now: datetime, *, cluster_wide: bool) -> dict[str, Any]:
    health: dict[str, Any] = {"status": "Healthy"}
    if group.target or group.registered:
        health["nodeCounts"] = {
            "registered": {
                "total": group.registered,
                "ready": group.ready,
                "notStarted": group.registered - group.ready,
            },
            "longUnregistered": 0,
            "unregistered": group.unregistered,
        }
    if not cluster_wide:
        health |= {"cloudProviderTarget": group.target, "minSize": group.minimum, "maxSize": group.maximum}
    return health | _times(f"{group.name}/health", "Healthy", transitions, now)


def _times(subject: str, state: str, transitions: Transitions, now: datetime) -> dict[str, str]:
    since = transitions.since(subject, state, now)
    return {"lastProbeTime": format_micro_time(now), "lastTransitionTime": format_micro_time(since)}


def config_map(text: str, now: datetime) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "annotations": {LAST_UPDATED: now.strftime("%Y-%m-%d %H:%M:%S.%f +0000 UTC")},
        },
        "data": {"status": text},
    }
