"""Our Deployment and ReplicaSet controllers, asked what a real Kubernetes was asked, do and say the same."""

from pathlib import Path

import pytest

from tests.sandbox.controllers.replay import Outcome, Replay, recorded_outcome, recording
from tests.sandbox.support import FastClock, api_server

pytestmark = pytest.mark.slow

# Pods of these become ready one after the other or all at once, as the machine likes; the steps in between differ with it.
_STEPS_DEPEND_ON_TIMING = {"rollout", "rollout-surge-settings", "rollout-stuck", "scale"}
# The recorded controller lost a race with itself there and kept the old set's message; see its timeline at t=7.286.
_STALE_MESSAGE = {"recreate"}


@pytest.mark.parametrize(
    "name",
    [
        "scale",
        "recreate",
        "rollout-stuck",
        "rollout",
        "rollout-surge-settings",
        "pod-deleted-by-hand",
        "template-label-hash",
    ],
)
async def test_recorded_rollout_ends_equally_by_the_same_steps(name: str, tmp_path: Path) -> None:
    record = recording(name)
    clock = FastClock(speed=8)
    theirs = recorded_outcome(record)
    async with api_server(tmp_path, clock) as client:
        ours = await Replay(client, clock, record).run(until=lambda outcome: _same_end(outcome, theirs, name))
    assert ours.status == theirs.status
    assert _conditions(ours, name) == _conditions(theirs, name)
    assert _final_sizes(ours) == _final_sizes(theirs)
    assert ours.reasons_seen == theirs.reasons_seen
    if name not in _STEPS_DEPEND_ON_TIMING:
        assert ours.set_sizes == theirs.set_sizes
        assert set(ours.deployment_events) == set(theirs.deployment_events)
        assert ours.set_events == theirs.set_events


async def test_quota_refusal_is_event_and_condition_and_is_obeyed(tmp_path: Path) -> None:
    record = recording("quota")
    clock = FastClock(speed=8)
    theirs = recorded_outcome(record)
    # The recording ends with the quota being raised; stop before that, where it was full.
    record["timeline"].pop()
    async with api_server(tmp_path, clock) as client:
        ours = await Replay(client, clock, record).run(until=lambda outcome: outcome.status == theirs.status)
    assert ours.status == theirs.status
    assert _conditions(ours, "quota") == _conditions(theirs, "quota")
    assert set(ours.set_events) == set(theirs.set_events)
    assert ours.set_sizes == theirs.set_sizes


def _same_end(ours: Outcome, theirs: Outcome, name: str) -> bool:
    return ours.status == theirs.status and _conditions(ours, name) == _conditions(theirs, name)


def _conditions(outcome: Outcome, name: str) -> dict[str, tuple[str, ...]]:
    if name in _STALE_MESSAGE:
        return {kind: (status, reason) for kind, (status, reason, _) in outcome.conditions.items()}
    return {kind: (status, reason, message) for kind, (status, reason, message) in outcome.conditions.items()}


def _final_sizes(outcome: Outcome) -> dict[str, int]:
    return dict(outcome.set_sizes)
