"""The one place that makes regular expressions: searching a text takes time in proportion to its length, whatever the text.

The engine is RE2, which has no backtracking: `(a+)+$` is as harmless as `a`. It refuses what only backtracking can do, back references and
look-around, and its memory is bounded. The time for a character grows with the size of the program, so that of people's patterns is
limited, too.

RE2 differs from Python's `re`: `\\d`, `\\s`, `\\w` and `\\b` know ASCII only (write `\\pL` for any letter). `$` is the very end of the text
unless `(?m)` is given, flags are written into the pattern, and a repetition goes to 1000 at most. Every expression, and every function
that reads a text by hand, is run on hostile text by tests/test_linear_time.py.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import re2

from grid.core.translation import gettext as _

LONGEST_PATTERN = 300
# In RE2's instructions. Patterns that people write have some dozens, the largest built-in one 153; a line of 2,000 characters takes
# `x[a-y]{900}z`, which has 1,800, twelve milliseconds.
LARGEST_PROGRAM = 400
LARGEST_TOGETHER = 4000  # of all patterns that are searched together
_MEMORY = 2 << 20  # bytes that one of our expressions may take
_MEMORY_OF_SET = 64 << 20  # for hundreds of patterns; what a set of some dozens takes is less than one

EXPRESSIONS: list["Expression"] = []

PatternError: type[Exception] = re2.error


class Match:
    """What an expression found. Numbers are those of groups, 0 is all of it; places are those of characters."""

    __slots__ = ("_expression", "_match", "_places")

    def __init__(self, expression: "Expression", match: Any, places: tuple[int, int]) -> None:
        self._expression, self._match, self._places = expression, match, places

    def __getitem__(self, group: int | str) -> str | Any:
        """Return a group's text; None of a group that took no part."""
        number = group if isinstance(group, int) else self._expression.numbers[group]
        part = self._match[number]
        return None if part is None else _decoded(part)

    def groups(self) -> tuple[str | Any, ...]:
        return tuple(self[number] for number in range(1, self._expression.groups + 1))

    def groupdict(self) -> dict[str, str | Any]:
        return {name: self[number] for name, number in self._expression.numbers.items()}

    def start(self) -> int:
        return self._places[0]

    def end(self) -> int:
        return self._places[1]


class Expression:
    """An expression that is looked for once in a text. Make it when a module is imported: it is kept for ever, for the test."""

    __slots__ = ("_compiled", "groups", "numbers", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._compiled = re2.compile(pattern, options(_MEMORY))
        self.groups: int = self._compiled.groups
        self.numbers: dict[str, int] = self._compiled.groupindex
        EXPRESSIONS.append(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pattern!r})"

    def search(self, text: str) -> Match | None:
        return self._match(self._compiled.search, text)

    def match(self, text: str) -> Match | None:
        return self._match(self._compiled.match, text)

    def fullmatch(self, text: str) -> Match | None:
        return self._match(self._compiled.fullmatch, text)

    def _match(self, how: Callable[[bytes], Any], text: str) -> Match | None:
        data = _encoded(text)
        match = how(data)
        if match is None:
            return None
        start, end = match.span()
        if len(data) == len(text):
            return Match(self, match, (start, end))
        first = _length(data[:start])
        return Match(self, match, (first, first + _length(data[start:end])))


class RepeatedExpression(Expression):
    """An expression that is looked for again after each place where it was found. That each search is linear does not make all of them
    so: `a.*b|a` looks to the end of the text for each `a`. The test tells such expressions, which a scanner has to replace."""

    __slots__ = ()

    def finditer(self, text: str) -> Iterator[Match]:
        data = _encoded(text)
        is_ascii = len(data) == len(text)
        place = counted = characters = 0
        while place <= len(data) and (match := self._compiled.search(data, place)) is not None:
            start, end = match.span()
            if is_ascii:
                yield Match(self, match, (start, end))
            else:
                first = characters + _length(data[counted:start])
                counted, characters = end, first + _length(data[start:end])
                yield Match(self, match, (first, characters))
            place = end
            if end == start:  # go on after the next character
                place += 1
                while place < len(data) and data[place] & 0xC0 == 0x80:
                    place += 1

    def findall(self, text: str) -> list[Any]:
        """Return each text that was found, or its only group, or the tuple of its groups; "" for a group that took no part."""
        if self.groups <= 1:
            return [match[self.groups] or "" for match in self.finditer(text)]
        return [tuple(part or "" for part in match.groups()) for match in self.finditer(text)]

    def sub(self, instead: str | Callable[[Match], str], text: str) -> str:
        """Return the text with each place replaced; in a text to put there, `\\1` to `\\9` are groups and no other escape is known."""
        parts: list[str] = []
        end = 0
        for match in self.finditer(text):
            parts += text[end : match.start()], instead(match) if callable(instead) else _filled(instead, match)
            end = match.end()
        return "".join((*parts, text[end:])) if parts else text

    def split(self, text: str) -> list[str]:
        """Return what is between the places, with their groups."""
        parts: list[str] = []
        end = 0
        for match in self.finditer(text):
            parts += text[end : match.start()], *match.groups()
            end = match.end()
        return [*parts, text[end:]]


class ExpressionSet:
    """Patterns that are searched together: RE2 compares a text with all of them in one pass."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Raise PatternError when the patterns together are too large."""
        self._set = re2.Set.SearchSet(options(_MEMORY_OF_SET))
        for pattern in patterns:
            self._set.Add(pattern)
        self._set.Compile()

    def matching(self, text: str) -> list[int]:
        """Return the numbers of the patterns that the text has, in no order."""
        return self._set.Match(_encoded(text)) or []


def escape(text: str) -> str:
    """Return the pattern that matches this text and no other."""
    return str(re2.escape(text))


def options(memory: int = 0) -> re2.Options:
    """Return RE2's options, which write nothing to the standard error; `memory` is in bytes, RE2's own bound is 8 MiB."""
    chosen = re2.Options()
    chosen.log_errors = False
    if memory:
        chosen.max_mem = memory
    return chosen


def problem_of(pattern: str) -> str:
    """Return why the pattern cannot be used, as a sentence, or ""."""
    if not pattern.strip():
        return _("Give a pattern.")
    if len(pattern) > LONGEST_PATTERN:
        return _("Use at most {most} characters.", most=LONGEST_PATTERN)
    try:
        compiled = re2.compile(pattern, options())
    except re2.error as error:
        words = error.args[0] if error.args else ""
        words = words.decode(errors="replace") if isinstance(words, bytes) else words
        return _("This is no regular expression that RE2 can search: {error}.", error=words)
    if compiled.programsize > LARGEST_PROGRAM:
        return _("This pattern is too large; use smaller repetitions.")
    if compiled.search(""):
        return _("This pattern matches every line; name words of the line.")
    return ""


def size_of(pattern: str) -> int:
    return int(re2.compile(pattern, options()).programsize)


def has_groups(pattern: str) -> bool:
    return bool(re2.compile(pattern, options()).groups)


def first_group(pattern: str, text: str) -> str:
    """Return what the first group of a pattern of people has found; "" where there is none."""
    match = re2.search(pattern, _encoded(text), options())
    part = match[1] if match is not None and match.re.groups else None
    return _decoded(part) if part else ""


def _encoded(text: str) -> bytes:
    """Return what RE2 reads. A lone surrogate, as in a name of a file that is no UTF-8, is a character like another."""
    return text.encode("utf-8", "surrogatepass")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _length(data: bytes) -> int:
    return len(_decoded(data))


def _filled(template: str, match: Match) -> str:
    if "\\" not in template:
        return template
    return "".join(part if is_text else match[int(part)] or "" for is_text, part in _parts(template))


@lru_cache(maxsize=100)
def _parts(template: str) -> Sequence[tuple[bool, str]]:
    first, *others = template.split("\\")
    return [(True, first), *(part for other in others for part in ((False, other[0]), (True, other[1:])))]
