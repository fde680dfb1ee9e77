"""Tables of rules about messages of Kubernetes and its container runtimes: the first rule whose pattern a message has counts; pure.
Of messages that no rule knows, the part that says the cause.

`tests/diagnosis/rule_examples.py` has of each rule a message to which it applies and one that is merely like it.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

from grid.core.regexes import Expression, Match, RepeatedExpression
from grid.core.wording import folded

M = TypeVar("M")
# Each caller of a driver or runtime puts a frame before what that says; the asides are the same whatever the cause.
_FRAMES = Expression(
    r'(?s)^.*(?: desc = |\nOutput: |googleapi: Error \d+: |(?:for volume|StorageClass|pull image|pulling image|unpack image) "[^"]*" ?: |'
    r'ErrImagePull: |"message": ?"|container (?:process|init): )'
)
_ASIDES = RepeatedExpression(
    r"(?m)^Error: |^.*(?:dmesg|mount-watchdog|Running scope as|Refer to the mount).*$|: unknown$| at \"/var/lib/kubelet/[^\"]*\"|"
    r'"\s*(?:,\s*"\w+": ?[^{}]*)?\}[\s}-]*$|'  # what ends an answer of Azure, an object whose "message" says the cause
    r"/var/lib/kubelet/[^\s:\"',]+:? ?|https response error StatusCode: \d+, |Request ?ID: [\w-]+,? ?"
)
# Only that an earlier call has not ended or failed, or what is missing or not read yet; a timeout tells at least that something hangs.
_NO_CAUSE = Expression(
    r"(?i)unable to attach or mount|operation .*already|is reserved|not registered$|^(rpc error|timed out( waiting for the condition)?)?$|"
    r"^(back-off pulling image \S+|ErrImagePull)$"
)
_TIMEOUT = Expression(r"(?i)deadline ?exceeded|timed out")


class RuleTable(Generic[M]):
    """Rules as (key, regular expression, meaning), in the order in which they are tried; what comes first is the more exact one."""

    def __init__(self, *rules: tuple[str, str, M]) -> None:
        self._rules = [(key, Expression(pattern), meaning) for key, pattern, meaning in rules]

    @property
    def keys(self) -> list[str]:
        return [key for key, _, _ in self._rules]

    def find(self, message: str) -> tuple[str, M, Match] | None:
        """Return the key and the meaning of the rule that applies, with what its pattern found; None when none does."""
        searched = ((key, meaning, pattern.search(message)) for key, pattern, meaning in self._rules)
        return next(((key, meaning, match) for key, meaning, match in searched if match is not None), None)

    def meaning(self, message: str) -> M | None:
        """Return the meaning of the rule that applies; None when none does."""
        rule = self.find(message)
        return rule[1] if rule else None


def core_words(message: str) -> str:
    """Return what a driver or runtime says of the cause, as a part of a sentence; "" when it says none."""
    frames = _FRAMES.match(message)
    core = _without_quoting(_ASIDES.sub("", message[frames.end() :] if frames is not None else message))
    return "" if _NO_CAUSE.search(core) else core


def _without_quoting(text: str) -> str:
    """Return the text in one line, without what is left of the quotes in which it stood."""
    line = folded(text).replace('\\"', '"')
    return folded(line.rstrip('"]')) if line.count('"') % 2 else line


def most_telling(messages: Sequence[str]) -> str:
    """Return the newest message, which is the last, that says a cause; without any the newest timeout, or else the newest."""
    return max(reversed(messages), key=lambda text: bool(core_words(text)) * (1 if _TIMEOUT.search(text) else 2))
