"""One node per test, whose processes all end with it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sandbox.kubelet.support import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    try:
        yield world
    finally:
        await world.close()
