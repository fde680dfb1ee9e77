"""Reasons as a code and values, worded when somebody reads them.

What is stored and compared is `Reason`: programs use its code, and people get the sentence that the room of that code has registered, made
for the reader: the owner ("You use 9 of 9 slots"), or another ("alice uses 9 of 9 slots"). A cause that is quoted, such as Kubernetes' own
words, or that was stored before causes had values, is a text without values, and everybody reads the text.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

logger = logging.getLogger(__name__)

Value = str | int | float | bool | list[Any] | dict[str, Any] | None
Values = Mapping[str, Any]  # with a `Value` for each name; sentences know which


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something waits, was refused, or has changed: a stable code for programs, and the values that its sentence needs, as JSON has
    them. `until` is when it ends by itself, where that is known."""

    code: str
    values: Mapping[str, Value] = field(default_factory=dict)
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads a sentence; `owner` is the user name of whom it is about, "" where the reader has no need of it."""

    owner: str
    is_owner: bool


ANYBODY = Reader("", is_owner=False)
Sentence = Callable[[Values, Reader], str]

_SENTENCES: dict[str, Sentence] = {}


def register(sentences: Mapping[str, Sentence]) -> None:
    """Add the sentences of a room, each by its reason's code; raise ValueError when another room has one of these codes."""
    if taken := sorted(code for code, sentence in sentences.items() if _SENTENCES.get(code, sentence) is not sentence):
        raise ValueError(f"a sentence is registered twice: {', '.join(taken)}")
    _SENTENCES.update(sentences)


def words_of(code: str, values: Values | None, text: str, reader: Reader) -> str:
    """Return a stored cause for its reader: the sentence of its code; `text` where there are no values, or no sentence any more. Also where
    the sentence does not go with the values: while an upgrade is rolled out, a process of before writes codes and texts, and leaves the
    values of an earlier cause in place. That must not take away a page."""
    sentence = None if values is None else _SENTENCES.get(code)
    if sentence is None or values is None:
        return text
    try:
        return sentence(values, reader)
    except (LookupError, TypeError, ValueError) as error:
        logger.debug("a cause is read as its text reason=%s error=%r", code, error)
        return text


def cause_words(values: Values, reader: Reader) -> str:
    """Return the words of another's stored cause, which the values have as `cause`: its code, values and text."""
    code, of_cause, text = values["cause"]
    return words_of(code, of_cause, text, reader)


def filled(text: str, **fields: Sentence) -> Sentence:
    """Return the sentence that fills a text with the values, and its other fields with what is worded of them."""

    def sentence(values: Values, reader: Reader) -> str:
        return text.format_map({**values, **{name: worded(values, reader) for name, worded in fields.items()}})

    return sentence


def sentence_of(reason: Reason, reader: Reader) -> str:
    """Return the sentence of the reason for its reader; raise KeyError for a code without one."""
    return _SENTENCES[reason.code](reason.values, reader)
