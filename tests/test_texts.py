"""The rules of the texts on pages (docs/glossary.md, "Words on pages"), as far as a program can tell; `make texts` prints all texts."""

import functools
import re

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


def test_every_sentence_of_a_program_is_marked_for_translation() -> None:
    offending = [
        f"{path.relative_to(texts.ROOT)}:{line}: {text}"
        for path in texts.files()
        if path.suffix == ".py"
        for line, text in texts.unmarked(path)
    ]
    assert not offending, 'write them as _("…") of grid.core.translation:\n' + "\n".join(offending)


def test_messages_have_the_fields_that_they_are_given() -> None:
    offending = [
        f"{path.relative_to(texts.ROOT)}:{line}: {text}"
        for path in texts.files()
        if path.suffix == ".py"
        for line, text in texts.wrong_fields(path.read_text())
    ]
    assert not offending, "the fields of a message are the names of its values:\n" + "\n".join(offending)


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
