"""A small disk for the tests that fill one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.smalldisk import small_disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "32m") as place:
        if place is None:
            pytest.skip("only root may mount a disk of a certain size")
        yield place
