"""A question before something that is not easily undone: what it does, as sentences, and the two answers; pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What `shell/question.html` asks, as a page and as a dialog. `title` is the headline with {subject} in it; `fields` are sent
    with the answer."""

    title: str
    subject: str
    sentences: Sequence[str]
    action_url: str
    answer: str
    keep: str
    keep_url: str
    fields: Sequence[tuple[str, str]] = ()
    is_danger: bool = True

    @property
    def before(self) -> str:
        return self.title.partition("{subject}")[0]

    @property
    def after(self) -> str:
        return self.title.partition("{subject}")[2]
