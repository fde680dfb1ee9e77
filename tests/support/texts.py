"""Every text of the product that a person may read, in one go.

`make texts` prints them by file, and tests/test_texts.py holds them to rules. In Python a text is what `_`, `ngettext` and `plural` are
given, or the help of a command. In a template it is what stands between tags, and what its tags translate.
"""

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from django.template.base import DebugLexer, TokenType

ROOT = Path(__file__).parents[2]
_TWO_WORDS = re.compile(r"[A-Za-z]{2,}[,;:]? [A-Za-z{“(]")
_SENTENCE = re.compile(r"[A-Z“{][^\n]*[a-z]{2,}[,;:]? [a-z{“(][^\n]*[.?!]$")
_MARKS = {"_": 1, "ngettext": 2, "plural": 3}  # and how many of their arguments may be texts
_TRANSLATED = re.compile(r"""\b_\((["'])(.+?)\1\)""")  # in an argument of a tag or a filter
# Copied from other programs to the letter, scripts that containers run, and pages that only developers see.
_LEFT_OUT = (
    "/describe/",
    "/migrations/",
    "/sandbox/",
    "/frameworks/",
    "/files/executor/",
    "/views/components.py",
    "/components.html",
)
# What a terminal, a log or Prometheus shows, in English as with Django.
_ENGLISH = (
    *_LEFT_OUT,
    "/management/",
    "/grid/checks.py",
    "/settings.py",
    "/telemetry.py",
    "/tracesdk.py",
    "/runtime/metrics.py",
    "/runtime/demand.py",
)
# The help of a model's field is for developers, but for those of models that a form shows.
_CALLS_IN_ENGLISH = re.compile(r"logger\.|models\.|.*(Error|Exception|Warning)$|parser\.|cast$|re\.compile")


def files() -> list[Path]:
    """Return the sources that have texts, by name."""
    paths = [path for folder in ("dashboard", "grid") for path in (ROOT / folder).rglob("*.py")]
    paths += (ROOT / "templates").rglob("*.html")
    return sorted(path for path in paths if not any(part in str(path) for part in _LEFT_OUT))


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Return the file's texts with the lines on which they begin."""
    return in_template(path.read_text()) if path.suffix == ".html" else in_python(path.read_text())


def in_python(source: str) -> Iterator[tuple[int, str]]:
    for call in _calls(source):
        for argument in _messages(call):
            yield argument.lineno, " ".join(str(argument.value).split())


def wrong_fields(source: str) -> Iterator[tuple[int, str]]:
    """Return the messages that could not be filled with the values given beside them, or leave one of these out: an error of a branch
    that may be reached once a year. What is filled later, by `str.format`, is not looked at."""
    for call in _calls(source):
        given = {keyword.arg for keyword in call.keywords}
        messages, counted = _messages(call), _called(call) == "ngettext"
        if None in given or not (given or counted):
            continue
        fields = [_fields(str(message.value)) for message in messages]
        unused = given.difference(*fields)
        known = given | {"count"} if counted else given
        yield from (
            (message.lineno, str(message.value))
            for message, used in zip(messages, fields, strict=True)
            if unused or not used <= known
        )


def _fields(message: str) -> set[str | None]:
    """Return the names of the message's fields; one of "{" for braces that belong to no field."""
    try:
        return {field for _text, field, _spec, _conversion in Formatter().parse(message) if field is not None}
    except ValueError:
        return {"{"}


def unmarked(path: Path) -> Iterator[tuple[int, str]]:
    """Return the sentences of a Python file that no catalogue could have."""
    if any(part in str(path) for part in _ENGLISH):
        return
    source = path.read_text()
    passed = {
        id(node)
        for call in _calls(source)
        if (name := _called(call)) in _MARKS or _CALLS_IN_ENGLISH.match(name)
        for node in ast.walk(call)
    }
    for node in _nodes(source):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
            passed.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            passed |= {id(part) for part in node.values}
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if id(node) not in passed and _SENTENCE.match(text) and "[^" not in text:  # no pattern
            yield node.lineno, text


@functools.cache
def _nodes(source: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a file; kept, for each rule looks at all files, and walking through them takes seconds."""
    return tuple(ast.walk(ast.parse(source)))


@functools.cache
def _calls(source: str) -> tuple[ast.Call, ...]:
    return tuple(node for node in _nodes(source) if isinstance(node, ast.Call))


def _called(call: ast.Call) -> str:
    """Return the name that is called, such as "logger.info"; much faster than `ast.unparse`."""
    name, called = "", call.func
    while isinstance(called, ast.Attribute):
        name, called = f".{called.attr}{name}", called.value
    return f"{called.id}{name}" if isinstance(called, ast.Name) else name


def _messages(call: ast.Call) -> list[ast.Constant]:
    """Return the literal messages of a call that marks them."""
    arguments = call.args[: _MARKS.get(_called(call), 0)]
    return [
        argument for argument in arguments if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def in_template(source: str) -> Iterator[tuple[int, str]]:
    """Return the texts between tags, and those of attributes that are read; a variable is shown in braces, a template tag as a bar."""
    flat = ""
    for token in DebugLexer(source).tokenize():
        lines = "\n" * source[slice(*token.position)].count("\n") if token.position else ""
        if token.token_type in (TokenType.VAR, TokenType.BLOCK):
            for match in _TRANSLATED.finditer(token.contents):
                if _TWO_WORDS.search(match[2]):
                    yield 1 + flat.count("\n"), match[2]
        if token.token_type == TokenType.TEXT:
            flat += token.contents
        elif token.token_type == TokenType.BLOCK and token.contents.startswith("translate "):
            flat += token.contents.removeprefix("translate ").strip("\"'")
        elif token.token_type == TokenType.BLOCK and token.contents.startswith(("blocktranslate", "endblocktranslate")):
            flat += lines
        elif token.token_type == TokenType.VAR:
            flat += f"{{{token.contents.split('|')[0]}}}"
        elif token.token_type == TokenType.BLOCK:
            flat += "|" + lines
        else:
            flat += lines
    read = re.compile(r'(?:title|placeholder|aria-label|alt)="([^"]*)"|>([^<]*)|^([^<]*)')
    for match in read.finditer(flat):
        text = " ".join(next(group for group in match.groups() if group is not None).split()).strip("| ")
        if _TWO_WORDS.search(text):
            yield 1 + flat.count("\n", 0, match.start()), text


def main() -> None:
    for path in files():
        if read := sorted(set(texts(path))):
            lines = (f"{line:5}  {text}\n" for line, text in read)
            sys.stdout.write("".join((f"\n{path.relative_to(ROOT)}\n", *lines)))


if __name__ == "__main__":
    main()
