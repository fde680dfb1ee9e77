"""A kubeconfig for a server of ours, in the shapes that installations have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.listing_ways import both_ways as both_ways

WriteConfig = Callable[..., str]


@pytest.fixture
def write_config(tmp_path: Path) -> WriteConfig:
    def write(url: str, user: dict[str, Any] | None = None, *, name: str = "config") -> str:
        path = tmp_path / name
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "one",
                    "clusters": [{"name": "c", "cluster": {"server": url}}],
                    "users": [
                        {"name": "u", "user": user or {"token": "t0ken"}},
                        {"name": "v", "user": {"token": "other"}},
                    ],
                    "contexts": [
                        {"name": "one", "context": {"cluster": "c", "user": "u"}},
                        {"name": "two", "context": {"cluster": "c", "user": "v"}},
                    ],
                }
            )
        )
        return str(path)

    return write
