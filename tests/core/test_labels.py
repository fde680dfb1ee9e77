"""Label values: valid whatever the name, readable, and never shared by two names."""

import re

from hypothesis import given, strategies as st

from grid.core.labels import label_value

VALID = re.compile(r"(?=.{0,63}\Z)(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


@given(st.text(max_size=200))
def test_any_text_becomes_a_valid_value(text: str) -> None:
    assert VALID.fullmatch(label_value(text))


@given(st.text(max_size=100), st.text(max_size=100))
def test_two_names_never_share_a_value(text: str, other: str) -> None:
    assert text == other or label_value(text) != label_value(other)


def test_value_of_a_name_is_readable() -> None:
    assert label_value("alice.smith_2") == "alice.smith_2"
    assert label_value("Zoë Müller").startswith("Zo-M-ller-")
