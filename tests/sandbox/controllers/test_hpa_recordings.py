"""Our HorizontalPodAutoscaler decides, sync by sync, what the real one did in 28 recorded scenarios, in the same words."""

from typing import Any

import pytest

from grid.sandbox.client import parse_time
from tests.sandbox.controllers.hpa_replay import RECORDINGS, Replay, plain, recording, syncs_of

_TIMES = ("lastTransitionTime", "lastScaleTime")
_SCENARIOS = sorted(path.stem for path in RECORDINGS.glob("*.json"))


def test_all_recorded_scenarios_are_replayed() -> None:
    assert len(_SCENARIOS) == 28


@pytest.mark.parametrize("name", _SCENARIOS)
def test_each_sync_ends_as_the_real_one_did(name: str) -> None:
    record = recording(name)
    replay = Replay(record)
    syncs = syncs_of(record)
    assert len(syncs) > 3
    for sync in syncs:
        ours = replay.see(sync)
        where = f"{name} at {sync.at}"
        assert ours.asked == bool(sync.answers), where
        assert sorted(ours.events) == sorted(sync.events), where
        assert _timeless(ours.status) == _timeless(sync.status), where
        _compare_times(ours.status, sync.status, where)


def _timeless(status: dict[str, Any]) -> dict[str, Any]:
    conditions = [
        {key: plain(value) for key, value in item.items() if key not in _TIMES}
        for item in status.get("conditions") or ()
    ]
    kept = {key: value for key, value in status.items() if key not in _TIMES and value is not None}
    return {"desiredReplicas": 0, **kept, "conditions": conditions}


def _compare_times(ours: dict[str, Any], theirs: dict[str, Any], where: str) -> None:
    """Ours are those of the moment when its effects were seen: within a second."""
    pairs = [(ours.get("lastScaleTime"), theirs.get("lastScaleTime"))]
    pairs += [
        (mine["lastTransitionTime"], real["lastTransitionTime"])
        for mine, real in zip(ours["conditions"], theirs["conditions"], strict=True)
    ]
    for mine, real in pairs:
        mine_at, real_at = parse_time(mine), parse_time(real)
        assert (mine_at is None) == (real_at is None), where
        if mine_at and real_at:
            assert abs((mine_at - real_at).total_seconds()) <= 1, where
