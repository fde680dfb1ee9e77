"""What all diagnoses are made of."""

from datetime import datetime, timedelta

import pytest

from grid.diagnosis.diagnosis import quoted, since
from tests.support.builders import MOMENT


@pytest.mark.parametrize(
    ("moment", "seconds"),
    [(MOMENT - timedelta(seconds=5), 5), (MOMENT, 0), (MOMENT + timedelta(seconds=5), 0), (None, 0)],
)
def test_later_moment_of_another_clock_was_just_now(moment: datetime | None, seconds: int) -> None:
    assert since(moment, MOMENT) == timedelta(seconds=seconds)


def test_evidence_is_said_once_in_its_order() -> None:
    assert quoted(" b ", "", "a", "  ", "b") == ("b", "a")
