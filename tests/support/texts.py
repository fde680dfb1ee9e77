"""Every text of the product that a person may read, in one go.

`make texts` prints them by file, and tests/test_texts.py holds them to rules. In Python a text is a string of two words or more, as the
source has it; an expression in it is shown in braces. Docstrings, statements of SQL and lines of the log are left out. In a template it is
what stands between tags.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from django.template.base import DebugLexer, TokenType

ROOT = Path(__file__).parents[2]
_TWO_WORDS = re.compile(r"[A-Za-z]{2,}[,;:]? [A-Za-z{“(]")
_NOT_FOR_PEOPLE = re.compile(r"SELECT |UPDATE |INSERT |WITH |CREATE |<[a-z]+|\bdo$|: \w+\(")
_CALLS_NOT_FOR_PEOPLE = re.compile(r"logger\.|re\.compile|cast$|parser\.|.*execute(many)?$")
# Copied from other programs to the letter, scripts that containers run, and pages that only developers see.
_LEFT_OUT = (
    "/describe/",
    "/migrations/",
    "/sandbox/",
    "/frameworks/spark.py",
    "/views/components.py",
    "/components.html",
)


def files() -> list[Path]:
    """Return the sources that have texts, by name."""
    found = [path for folder in ("dashboard", "grid") for path in (ROOT / folder).rglob("*.py")]
    found += (ROOT / "templates").rglob("*.html")
    return sorted(path for path in found if not any(part in str(path) for part in _LEFT_OUT))


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Return the file's texts with the lines on which they begin."""
    return in_template(path.read_text()) if path.suffix == ".html" else in_python(path.read_text())


def in_python(source: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    skipped = set(_not_for_people(tree))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(
                f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else ast.literal_eval(part)
                for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if _TWO_WORDS.search(text) and not _NOT_FOR_PEOPLE.search(text):
            yield node.lineno, " ".join(text.split())


def _not_for_people(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield from (part for part in node.values if isinstance(part, ast.Constant))
        if isinstance(node, ast.Call) and _CALLS_NOT_FOR_PEOPLE.match(ast.unparse(node.func)):
            yield from ast.walk(node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
            yield node.value


def in_template(source: str) -> Iterator[tuple[int, str]]:
    """Return the texts between tags, and those of attributes that are read; a variable is shown in braces, a template tag as a bar."""
    flat = ""
    for token in DebugLexer(source).tokenize():
        lines = "\n" * source[slice(*token.position)].count("\n") if token.position else ""
        if token.token_type == TokenType.TEXT:
            flat += token.contents
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
        if found := sorted(set(texts(path))):
            lines = (f"{line:5}  {text}\n" for line, text in found)
            sys.stdout.write("".join((f"\n{path.relative_to(ROOT)}\n", *lines)))


if __name__ == "__main__":
    main()
