"""What open pages share is read once for all of them, and stays while the database does not answer."""

from collections.abc import Iterator
from datetime import datetime

import pytest
from django.db import OperationalError

from dashboard.shell.pages.periodic import Board


@pytest.mark.django_db(transaction=True)
async def test_pages_share_a_reading_during_database_outage() -> None:
    answers: Iterator[int | Exception] = iter([1, OperationalError("away"), 2])

    def read(now: datetime) -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    board = Board("numbers", read, 0)
    assert [await board.value(60.0) for _ in range(3)] == [1, 1, 1]
    assert [await board.value(0.0) for _ in range(2)] == [1, 2]
