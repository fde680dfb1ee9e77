"""What static/*.js says is in the catalogue of translations: `gettext("…")` or `ngettext("…", "…", count)`, as makemessages finds it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SCRIPTS = sorted((Path(__file__).parents[1] / "static").glob("*.js"))

_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`|[{}]"""
    r"""|(?<=[=(,:!&|?\[;{])\s*/(?![*/])(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n\[])+/""",
    re.DOTALL,
)
# Two words, a word beside a value, or a word with a capital.
_READ = re.compile(r"[^\W\d_]{2,}[.,;:]? [^\W\d_]|\{\}[.,;:]? [^\W\d_]|[^\W\d_][.,;:]? \{\}|^[A-Z][a-z]+$")
_IN_CATALOGUE = re.compile(r"""\bn?gettext\((?:"[^"]*", )?$""")
_FOR_PROGRAMS = re.compile(r"(querySelector(All)?|closest|matches|matchMedia|new Error)(\?\.)?\($")
_NOT_READ = {
    *("Enter", "Escape", "Event"),  # keys
    *("freshness freshness-behind", "card chart-card", "12px system-ui, sans-serif"),  # classes, a font
    '<span class="freshness-headline" role="status"></span> <span class="freshness-detail"></span>',
}


class Literal(NamedTuple):
    line: int
    text: str  # an expression in it is {}
    before: str  # the code right before it


def literals(source: str) -> list[Literal]:
    literals_found: list[Literal] = []
    _read_code(source, 0, literals_found)
    return literals_found


def _read_code(source: str, at: int, literals_found: list[Literal]) -> int:
    """Read code to its end or to a brace that was opened before it, and return where it continues."""
    depth = 0
    while match := _TOKEN.search(source, at):
        token, at = match[0], match.end()
        if token == "`":
            at = _read_template(source, match.start(), literals_found)
        elif token[0] in "\"'":
            literals_found.append(_literal(source, match.start(), token[1:-1]))
        elif token == "{":
            depth += 1
        elif token == "}":
            if not depth:
                return at
            depth -= 1
    return len(source)


def _read_template(source: str, start: int, literals_found: list[Literal]) -> int:
    text, at = "", start + 1
    while source[at] != "`":
        if source.startswith("${", at):
            text, at = text + "{}", _read_code(source, at + 2, literals_found)
        else:
            text, at = text + source[at], at + 1
    literals_found.append(_literal(source, start, text))
    return at + 1


def _literal(source: str, start: int, text: str) -> Literal:
    return Literal(1 + source.count("\n", 0, start), text, source[max(0, start - 120) : start])


def in_catalogue(source: str) -> set[str]:
    """The texts of the calls, of a plural its singular, by which Django finds both."""
    return {literal.text for literal in literals(source) if re.search(r"\bn?gettext\($", literal.before)}


def untranslated(source: str) -> Iterator[str]:
    for literal in literals(source):
        named = (
            _IN_CATALOGUE.search(literal.before) or _FOR_PROGRAMS.search(literal.before) or literal.text in _NOT_READ
        )
        if _READ.search(literal.text) and not named:
            yield f"{literal.line}: {literal.text}"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_script_texts_are_in_the_catalogue(path: Path) -> None:
    assert list(untranslated(path.read_text())) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_numbers_are_written_in_the_language_of_the_page(path: Path) -> None:
    assert not re.search(r"""toLocale\w*\((?:\)|["'`])""", path.read_text())


def test_texts_are_found_in_scripts() -> None:
    program = """
        // What "a comment says" is not read.
        say("It has ended"); say(gettext("It runs"), ngettext("One line", "%(count)s lines", count), /"not [a/] text"/);
        say(`${count} ${gettext("of them")} ${late ? `in ${time}` : "Now"}`, row.querySelector("main tr"), "a-b");
    """
    assert list(untranslated(program)) == ["3: It has ended", "4: in {}", "4: Now"]
