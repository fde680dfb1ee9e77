"""The fixtures of tests of pages and of launches that this room uses, and a shop whose database is a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.database import database_on_file
from tests.support.pages import clock as clock, cluster as cluster, patient as patient, runtime as runtime, tier as tier
from tests.support.shop import Shop, configure as configure, shop as shop, worker_tier as worker_tier


@pytest.fixture
def on_file(transactional_db: None, shop: Shop, tmp_path: Path) -> Iterator[Shop]:
    with database_on_file(tmp_path / "grid.sqlite3"):
        yield shop
