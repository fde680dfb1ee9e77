"""The volume of the repositories of project files in Git, which the embedded cluster has from the start."""

import random
from datetime import UTC, datetime
from pathlib import Path

from grid.sandbox.apiserver.furnishing import furnish_repositories
from grid.sandbox.apiserver.registry import Registry
from grid.sandbox.apiserver.store import ObjectStore


def test_repositories_volume_serves_one_claim_and_follows_moves(tmp_path: Path) -> None:
    registry = Registry(ObjectStore(), clock=lambda: datetime(2026, 11, 1, tzinfo=UTC), rng=random.Random(1))
    uids = set()
    for name in ("before", "before", "after"):
        furnish_repositories(registry, tmp_path / name, namespace="compute-grid")
        record = registry.store.get("persistentvolumes", "repositories")
        assert record is not None
        uids.add(record.fresh()["metadata"]["uid"])
        spec = record.fresh()["spec"]
        assert spec["hostPath"]["path"] == str(tmp_path / name)
        assert (tmp_path / name).is_dir()
        assert (spec["claimRef"]["namespace"], spec["claimRef"]["name"]) == ("compute-grid", "repositories")
        assert spec["persistentVolumeReclaimPolicy"] == "Retain"
    assert len(uids) == 1
