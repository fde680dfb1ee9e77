"""The rules of the texts on pages (docs/glossary.md, "Words on pages"), as far as a program can tell; `make texts` prints all texts."""

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import texts

# What a newcomer stumbled over, and what to say instead; capitals and small letters are alike. From ../shared/reference/words.md.
SAY_INSTEAD = {
    r"any more\b|\bneeds? no more\b": "no longer",
    r"\bgo(es)? on\b": "continue",
    r"\bwhat (runs|waits|ends|has ended|others run|you run|you launch beyond)\b": "running executions, queued executions",
    r"\bso (many|long|much)\b": "this many, this long",
    r"\bas many as may\b": "the limit is",
    r"\btak(e|es|en|ing)( \w+)? (back|away)\b": "undo, remove",
    r"\bat present\b|\bat (the|this) moment\b|\bjust now\b|\bof now\b": "now, current",
    r"\bsome (seconds|minutes|hours)\b": "a few",
    r"\banew\b|\bmeanwhile\b": "again, in the meantime",
    r"\b(is|are|was|were|been|be) made\b|\bto make one\b": "create",
    r"\bstays so\b": "if that does not help",
    r"\byours to\b": "you have no access",
    r"\bsuccessfully\b|\bplease\b|!$": "nothing",
    r"\b(nothing|something) of (yours|theirs|his)\b|\bof yours (is|are)\b": "your executions",
    r"\bdoes so\b|\bdo so\b|\bwhat follows\b": "the verb; what happens next",
    r"\blately\b": "recently",
    r"\b(one|once) in a line\b": "one per line",
    r"\bwhat is marked\b": "the marked fields",
    r"\bof those\b|\bthe other one\b": "name the thing",
    r"\bpatience\b|\bgoes next\b|\bgrowing would not help\b|\bdid not work\b": "the field's word",
    r"\basked for its end\b|\bends again and again\b|\basked to stop\b": "requested the stop; keeps crashing",
    r"\b(who and when|for whom|from what to what)\b": "availability, available to, change",
    r"\bas kubernetes calls\b|\bas the nodes call\b": "the Kubernetes name",
    r"\bwithout one\b|\bwould do now\b": "name the thing",
    r"\bhas (its|an) end\b|\bnobody but us\b|\bwhat there is\b": "the plain verb",
}
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
    *("freshness freshness-behind", "card chart-card", "12px {}"),  # classes, a font
    '<span class="freshness-headline" role="status"></span> <span class="freshness-detail"></span>',
}


@functools.cache
def all_texts() -> list[tuple[str, str]]:
    """Each text of the product after its place; read once, for parsing the whole source takes seconds."""
    return [
        (f"{path.relative_to(texts.ROOT)}:{line}", text) for path in texts.files() for line, text in texts.texts(path)
    ]


@pytest.mark.parametrize("phrase", SAY_INSTEAD)
def test_texts_avoid_what_newcomers_stumbled_over(phrase: str) -> None:
    offending = [f"{place}: {text}" for place, text in all_texts() if re.search(phrase, text, re.IGNORECASE)]
    assert not offending, f"say {SAY_INSTEAD[phrase]} instead:\n" + "\n".join(offending)


@pytest.mark.parametrize(
    ("wrong_in", "advice"),
    [
        (texts.unmarked, 'write them as _("…") of grid.core.translation:'),
        (lambda path: texts.wrong_fields(path.read_text()), "the fields of a message are the names of its values:"),
    ],
    ids=["marked for translation", "with its fields"],
)
def test_every_sentence_of_a_program_is(wrong_in: Callable[[Path], Iterator[tuple[int, str]]], advice: str) -> None:
    offending = [
        f"{path.relative_to(texts.ROOT)}:{line}: {text}"
        for path in texts.files()
        if path.suffix == ".py"
        for line, text in wrong_in(path)
    ]
    assert not offending, "\n".join([advice, *offending])


@pytest.mark.parametrize(
    ("call", "is_wrong"),
    [
        ('_("The pod {pod:>9} ended.", pod=x)', False),
        ('_("The pod {pod} ended.", name=x)', True),
        ('_("The pod ended.", pod=x)', True),
        ('_("The pod {} ended.", pod=x)', True),
        ('_("The pod {pod} has {.", pod=x)', True),
        ('_("Write {execution} in the place of its id.")', False),
        ('ngettext("one pod", "{count} pods", 2)', False),
        ('ngettext("one {kind}", "{count} pods", 2, kind=x)', False),
        ('ngettext("one pod", "{number} pods", 2)', True),
        ('ngettext("one pod", "{count} pods", 2, kind=x)', True),
    ],
)
def test_a_message_that_cannot_be_filled_is_found(call: str, is_wrong: bool) -> None:
    assert bool(list(texts.wrong_fields(call))) == is_wrong


def test_texts_are_found_in_programs_and_templates() -> None:
    program = 'def f(x):\n    "Return what goes on."\n    logger.info("A task ended.")\n    return _("The pod {pod} ended.", pod=x), "pod"'
    template = '{% if x %}\n<a title="Full name here">Launch again</a> {{ x.name|lower }} has ended\n{% endif %}'
    assert list(texts.in_python(program)) == [(4, "The pod {pod} ended.")]
    assert list(texts.in_template(template)) == [(2, "Full name here"), (2, "Launch again"), (2, "{x.name} has ended")]


def test_texts_are_found_in_what_templates_translate() -> None:
    template = """<p title="{% translate "Full name" %}">{% translate 'Launch again' %}</p>
{% include "empty.html" with headline=_("No lines yet.") %}{{ x|default:_("none yet") }}
<p>{% blocktranslate with name=x.name %}{{ name }} has ended{% endblocktranslate %}</p>"""
    assert sorted(texts.in_template(template)) == [
        (1, "Full name"),
        (1, "Launch again"),
        (2, "No lines yet."),
        (2, "none yet"),
        (3, "{name} has ended"),
    ]


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


def untranslated_in(source: str) -> Iterator[str]:
    for literal in literals(source):
        named = (
            _IN_CATALOGUE.search(literal.before) or _FOR_PROGRAMS.search(literal.before) or literal.text in _NOT_READ
        )
        if _READ.search(literal.text) and not named:
            yield f"{literal.line}: {literal.text}"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_script_texts_are_in_the_catalogue(path: Path) -> None:
    assert list(untranslated_in(path.read_text())) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_numbers_are_written_in_the_language_of_the_page(path: Path) -> None:
    assert not re.search(r"""toLocale\w*\((?:\)|["'`])""", path.read_text())


def test_texts_are_found_in_scripts() -> None:
    program = """
        // What "a comment says" is not read.
        say("It has ended"); say(gettext("It runs"), ngettext("One line", "%(count)s lines", count), /"not [a/] text"/);
        say(`${count} ${gettext("of them")} ${late ? `in ${time}` : "Now"}`, row.querySelector("main tr"), "a-b");
    """
    assert list(untranslated_in(program)) == ["3: It has ended", "4: in {}", "4: Now"]
