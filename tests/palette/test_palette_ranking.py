"""The ranking of the command palette: pure."""

import pytest

from dashboard.palette.viewmodel import PaletteGroup, PaletteItem, PaletteQuery, in_order, results_sentence


@pytest.mark.parametrize(
    ("text", "name", "rank"),
    [
        ("tra", "Train the model", 0),
        ("model tra", "Train the model", 0),
        ("TRAIN", "train", 0),
        ("7f4", "default-7f4k2", 0),
        ("b", "a_b", 0),
        ("rain", "Train the model", 1),
        ("ain.", "Train the model", None),
        ("(x", "f(x)", 1),
        ("", "anything", 0),
    ],
)
def test_begin_of_a_word_ranks_before_any_other_place(text: str, name: str, rank: int | None) -> None:
    assert PaletteQuery(text).rank(name) == rank


def best(text: str, names: list[str], **limits: object) -> list[str]:
    query = PaletteQuery(text)
    group = query.group("", names, lambda name: name, PaletteItem, **limits)  # type: ignore[arg-type]
    return [item.title for item in group.items]


def test_equal_ranks_keep_their_order_unless_another_is_given() -> None:
    names = ["xa", "ab 2", "ab 1", "b"]
    assert best("a", names) == ["ab 2", "ab 1", "xa"]
    assert best("a", names, order=str) == ["ab 1", "ab 2", "xa"]


def test_worst_matches_are_left_out_when_too_many() -> None:
    names = [f"x{number}a" for number in range(20)] + ["a last"]
    assert best("a", names) == ["a last", *names[:7]]
    assert best("a", names, most=2) == ["a last", "x0a"]


def test_groups_are_ordered_by_match_and_empty_ones_dropped() -> None:
    item = PaletteItem("x")
    groups = [PaletteGroup("anywhere", [item], 1), PaletteGroup("empty", [], 0), PaletteGroup("begins", [item], 0)]
    assert [group.title for group in in_order(groups)] == ["begins", "anywhere"]


@pytest.mark.parametrize(
    ("count", "sentence"), [(0, "Nothing found for “x”."), (1, "1 result"), (2, "2 results"), (12, "12 results")]
)
def test_sentence_says_how_many_were_found(count: int, sentence: str) -> None:
    groups = [PaletteGroup("Names", [PaletteItem("x")] * count), PaletteGroup("Others", [])]
    assert results_sentence("x", groups) == sentence
