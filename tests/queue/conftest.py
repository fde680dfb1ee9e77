"""The fixtures of tests of pages and of launches that this room uses, and a shop whose database is a file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.database import database_on_file
from tests.support.pages import clock as clock
from tests.support.pages import cluster as cluster
from tests.support.pages import patient as patient
from tests.support.pages import runtime as runtime
from tests.support.pages import tier as tier
from tests.support.shop import Shop
from tests.support.shop import configure as configure
from tests.support.shop import shop as shop
from tests.support.shop import worker_tier as worker_tier


@pytest.fixture
def on_file(transactional_db: None, shop: Shop, tmp_path: Path) -> Iterator[Shop]:
    with database_on_file(tmp_path / "grid.sqlite3"):
        yield shop
