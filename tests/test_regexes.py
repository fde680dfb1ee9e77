"""Which regular expressions of people are taken, and why the others are not."""

import pytest

from grid.regexes import LONGEST_PATTERN, problem_of


@pytest.mark.parametrize("pattern", ["LIC-17", r"^(?:Module)?Error: (\S+)$", "(a+)+$", "(?i)no licence", "ü+"])
def test_a_pattern_that_rules_out_some_lines_is_taken(pattern: str) -> None:
    assert problem_of(pattern) == ""


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "Give a pattern."),
        ("  ", "Give a pattern."),
        ("x" * (LONGEST_PATTERN + 1), "Use at most 300 characters."),
        ("(", "missing ): ("),
        (r"(\w)\1", "invalid escape sequence"),
        ("a(?=b)", "invalid perl operator"),
        ("((a{1000}){1000}){1000}", "invalid repetition size"),
        ("(?:[α-ω]{100}x){9}", "too large"),
        (".*", "matches every line"),
        ("a*|b", "matches every line"),
    ],
)
def test_any_other_pattern_is_refused_with_the_reason(pattern: str, why: str) -> None:
    assert why in problem_of(pattern)
