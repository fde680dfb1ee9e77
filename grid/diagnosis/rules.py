"""Tables of rules about messages of Kubernetes and its container runtimes: the first rule whose pattern a message has counts; pure.

`tests/diagnosis/rule_examples.py` has of each rule a message to which it applies and one that is merely like it.
"""

from typing import Generic, TypeVar

from grid.core.regexes import Expression, Match

M = TypeVar("M")


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
