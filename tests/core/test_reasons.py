"""Reasons as code and values, worded for their reader."""

import pytest

from grid.core.reasons import ANYBODY, Reader, Reason, Values, register, sentence_of, words_of

OWNER, OTHER = Reader("alice", is_owner=True), Reader("alice", is_owner=False)


def _use(values: Values, reader: Reader) -> str:
    return f"{'You use' if reader.is_owner else f'{reader.owner} uses'} {values['held']} slots"


def test_reason_is_worded_for_its_reader() -> None:
    register({"test_use": _use})
    reason = Reason("test_use", {"held": 9})
    assert (sentence_of(reason, OWNER), sentence_of(reason, OTHER)) == ("You use 9 slots", "alice uses 9 slots")


def test_second_sentence_of_a_code_is_refused() -> None:
    register({"test_twice": _use})
    register({"test_twice": _use})
    with pytest.raises(ValueError, match="test_twice"):
        register({"test_twice": lambda values, reader: ""})


def test_text_without_values_is_read_as_it_is() -> None:
    register({"test_text": _use})
    assert words_of("test_text", None, "An old row.", OTHER) == "An old row."
    assert words_of("test_text", {"held": 2}, "", OTHER) == "alice uses 2 slots"
    assert words_of("test_unknown", {"held": 2}, "Of before.", ANYBODY) == "Of before."
    assert words_of("test_text", {"kind": "job"}, "Of an earlier cause.", OTHER) == "Of an earlier cause."
