"""Quantities: exact, and with a sentence for whoever mistypes one."""

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from grid.core.quantity import format_bytes, format_cores, millicores, parse_quantity, whole


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", "0.5"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("4Gi", "4294967296"),
        ("1k", "1000"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1E", "1000000000000000000"),
        ("100n", "1e-7"),
        ("-1", "-1"),
    ],
)
def test_every_form_that_kubernetes_writes_is_read_exactly(text: str, value: str) -> None:
    assert parse_quantity(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    ["", "four", "4GB", "4 Gi", "1,5", "Gi", "1e", "0x10", "½", "1e9999", "--1", "nan", "inf", "１２", "9" * 5000],
)
def test_unparsable_quantity_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write for example 500m"):
        parse_quantity(text)


def test_a_hundred_characters_are_read_and_no_more() -> None:
    assert parse_quantity("7".zfill(100)) == 7
    with pytest.raises(ValueError, match=f"“{'0' * 100}” is not a quantity"):
        parse_quantity("7".zfill(101))


@pytest.mark.parametrize("text", ["1e400", "-1e400", "9223372036854775808", "1000Ei"])
def test_quantity_beyond_kubernetes_limits_is_refused_before_summing(text: str) -> None:
    with pytest.raises(ValueError, match="too large"):
        parse_quantity(text)


def test_the_largest_that_kubernetes_counts_can_be_shown() -> None:
    assert format_cores(millicores("9223372036854775807"))


def test_parts_of_the_smallest_unit_round_up() -> None:
    assert millicores("0.1m") == 1
    assert whole("1m") == 1
    assert millicores("250m") == 250


@given(st.integers(min_value=0, max_value=10**9))
def test_millicores_survive_the_way_there_and_back(milli: int) -> None:
    assert millicores(f"{milli}m") == milli


@pytest.mark.parametrize(("milli", "text"), [(500, "0.5"), (8000, "8"), (1234, "1.23"), (0, "0"), (100000, "100")])
def test_cores_for_people(milli: int, text: str) -> None:
    assert format_cores(milli) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (4 * 2**30, "4 GiB"), (1536 * 2**20, "1.5 GiB"), (2**40, "1 TiB")]
)
def test_bytes_for_people(count: int, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize("value", [None, [], {"cpu": "1"}])
def test_server_value_that_is_no_quantity_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(value)
