"""Which regular expressions of people are taken, and why the others are not."""

import re

import pytest

from grid.core.regexes import EXPRESSIONS, LONGEST_PATTERN, RepeatedExpression, problem_of


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


# What `re` says of these, but for the lone surrogate, which RE2 knows only as three bytes.
@pytest.mark.parametrize("text", ["", "abc", "a1ü22b", "äxxöx", "\udc80xx\ud800", "x\nx", "\U0001f600x"])
@pytest.mark.parametrize("pattern", ["x*", "x+", r"[^x]+", "(x)(y)?", "(?m)^.", r"(?P<first>.)x"])
def test_an_expression_finds_what_pythons_finds(pattern: str, text: str) -> None:
    ours, theirs = RepeatedExpression(pattern), re.compile(pattern)
    EXPRESSIONS.remove(ours)
    assert [(match.start(), match.end(), match.groups()) for match in ours.finditer(text)] == [
        (match.start(), match.end(), match.groups()) for match in theirs.finditer(text)
    ]
    assert ours.split(text) == theirs.split(text)
    assert ours.sub("<!>", text) == theirs.sub("<!>", text)
    for ours_of, theirs_of in (
        (ours.search, theirs.search),
        (ours.match, theirs.match),
        (ours.fullmatch, theirs.fullmatch),
    ):
        mine, reference = ours_of(text), theirs_of(text)
        assert (mine and (mine[0], mine.start(), mine.groups())) == (
            reference and (reference[0], reference.start(), reference.groups())
        )


def test_groups_stand_in_what_is_put_in_the_place() -> None:
    expression = RepeatedExpression(r"(\w)=(\w)?")
    EXPRESSIONS.remove(expression)
    assert expression.sub(r"\2<\1>", "a=b, c= ü=") == "b<a>, <c> ü="
    assert expression.sub(lambda match: match[1].upper(), "a=b") == "A"
    assert expression.findall("a=b c=") == [("a", "b"), ("c", "")]
