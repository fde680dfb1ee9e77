"""Where a template has words that a person reads, and which of them no translation reaches.

A template is Django's tokens, with HTML in those that are text: this follows the HTML from token to token, so that it knows what is
content, what is an attribute's value, and what is code.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.template.base import DebugLexer, TokenType

# Attributes that are read out, shown as a tooltip, or shown by the stylesheet or a script.
READ = {
    *("title", "placeholder", "aria-label", "aria-description", "aria-valuetext", "alt", "abbr", "label"),
    *("data-label", "data-name", "data-unit", "data-title", "data-empty", "data-problem", "data-sentence"),
    *("data-before", "data-after"),
}
# Arguments of tags that are shown.
READ_ARGUMENTS = re.compile(
    r'\b(?:headline|advice|link|label|title|empty|ends|none|what|note|word)=("[^"#]*[A-Za-z][^"]*")|'
    r"""\|default(?:_if_none)?:("[^"]*[A-Za-z][^"]*"|'[^']*[A-Za-z][^']*')|"""
    r'\|(?:yesno|pluralize):("[^"]*[A-Za-z][^"]*")|'
    r'^sort_header \S+ \S+ ("[^"]*")|^firstof .*?(?<!_\()("[^"]*[A-Za-z][^"]*")|^status "\w+" ("[^"]*")'
)
INLINE = re.compile(r"</?(?:strong|em|code|kbd|abbr|b|bdi|samp|span)>|<span class=\"mono(?: break)?\">")
_CODE = ("<code", "<kbd", "<samp", '<span class="mono')
_RAW = {"script", "style", "pre", "code", "textarea", "samp"}
_TAG = re.compile(r"<!--|<[/!]?([A-Za-z][\w-]*)")
_IN_TAG = re.compile(r"([\w:@.-]+)\s*=\s*([\"'])|>")
_LETTER = re.compile(r"[A-Za-z]")
_ENTITY = re.compile(r"&#?\w+;")
_UNIT = re.compile(r"\b(CPUs?|GPUs?|[KMGT]i?B?|ms|s|h|min|UTC)\b")


@dataclass(frozen=True)
class Piece:
    """A part of a template: text, a variable, a plain inline element's tag, or anything else, which breaks a sentence."""

    kind: str
    place: str  # the attribute's name; "" is content
    start: int
    end: int


class _Reader:
    """Where the HTML stands after the text that was read."""

    def __init__(self) -> None:
        self.state = "content"
        self.tag = self.attribute = self.quote = ""

    def place(self) -> str:
        return self.attribute if self.state == "value" else ""

    def read(self, text: str, offset: int) -> Iterator[Piece]:
        """Return the pieces of one token of text."""
        at = 0
        while at < len(text):
            kind, place = "text" if self.state in ("content", "value") else "break", self.place()
            end, after, mark = self._next(text, at)
            if end > at:
                yield Piece(kind, place, offset + at, offset + end)
            if after > end:
                yield Piece(mark, "", offset + end, offset + after)
            at = after

    def _next(self, text: str, at: int) -> tuple[int, int, str]:
        """Return where the state ends, where what ends it ends, and what kind of piece that is."""
        if self.state == "value":
            return self._until(text, at, self.quote, "tag")
        if self.state == "comment":
            return self._until(text, at, "-->", "content")
        if self.state == "raw":
            return self._until(text, at, f"</{self.tag}", "tag")
        match = (_TAG if self.state == "content" else _IN_TAG).search(text, at)
        if not match:
            return len(text), len(text), "break"
        if self.state == "content":
            if inline := INLINE.match(text, match.start()):
                return match.start(), inline.end(), "inline"
            self.state = "comment" if match[0] == "<!--" else "tag"
            self.tag = match[0].lower().lstrip("<")
        elif match[0] == ">":
            self.state = "raw" if self.tag in _RAW else "content"
        else:
            self.state, self.attribute, self.quote = "value", match[1].lower(), match[2]
        return match.start(), match.end(), "break"

    def _until(self, text: str, at: int, mark: str, then: str) -> tuple[int, int, str]:
        end = text.find(mark, at)
        if end < 0:
            return len(text), len(text), "break"
        if self.state == "raw":
            self.tag = mark
        self.state = then
        return end, end + len(mark), "break"


def pieces(source: str) -> Iterator[Piece]:
    """Return the template's pieces in order, without what a block of translation holds."""
    reader, is_translated = _Reader(), False
    for token in DebugLexer(source).tokenize():
        assert token.position
        start, end = token.position
        if token.token_type == TokenType.BLOCK:
            name = token.contents.split()[0]
            is_translated = name in ("blocktranslate", "blocktrans") or (
                is_translated and name not in ("endblocktranslate", "endblocktrans")
            )
            yield Piece("block", reader.place(), start, end)
        elif is_translated:
            continue
        elif token.token_type == TokenType.VAR:
            raw = reader.state not in ("content", "value")
            yield Piece("break" if raw else "var", reader.place(), start, end)
        elif token.token_type == TokenType.TEXT:
            yield from reader.read(token.contents, start)
        else:
            yield Piece("break", "", start, end)


def is_code(tag: str) -> bool:
    """Tell whether the inline element that begins with this tag holds names and commands, not words."""
    return tag.startswith(_CODE)


def runs(source: str) -> Iterator[list[Piece]]:
    """Return what could be one sentence each: text, variables and plain inline elements beside each other that people read."""
    run: list[Piece] = []
    for piece in pieces(source):
        is_read = piece.kind in ("text", "var", "inline") and (not piece.place or piece.place in READ)
        if run and (not is_read or piece.place != run[-1].place or piece.start != run[-1].end):
            yield run
            run = []
        if is_read:
            run.append(piece)
    if run:
        yield run


def words(source: str, run: list[Piece]) -> str:
    """Return the run's words for people: its text without names of keys, code, entities, and units of a value."""
    text, code = "", ""
    for piece in run:
        part = source[piece.start : piece.end]
        if piece.kind == "inline":
            code = "" if part.startswith("</") else part if is_code(part) else code
        elif piece.kind == "text" and not code:
            text += _ENTITY.sub("", part) + " "
    if run[0].place == "data-unit" or any(piece.kind == "var" for piece in run):
        text = _UNIT.sub("", text)
    return text if _LETTER.search(text) else ""


def untranslated(source: str) -> Iterator[tuple[int, str]]:
    """Return the words that no translation reaches, each with its line: between tags, in attributes, and in arguments of tags."""
    for run in runs(source):
        if untranslated_words := words(source, run):
            first = run[0]
            text = source[first.start : run[-1].end]
            yield (
                source.count("\n", 0, first.start + len(text) - len(text.lstrip())) + 1,
                " ".join(untranslated_words.split()),
            )
    for token in DebugLexer(source).tokenize():
        assert token.position
        if token.token_type in (TokenType.BLOCK, TokenType.VAR):
            for match in READ_ARGUMENTS.finditer(token.contents):
                yield source.count("\n", 0, token.position[0]) + 1, next(group for group in match.groups() if group)
