"""Each rule about messages applies to what it is for, and not to what is merely like it. A rule without both examples fails here."""

import importlib
import pkgutil
from collections.abc import Callable, Collection

import pytest

import grid.diagnosis
from grid.diagnosis import disruptions, exits, images, logfindings
from grid.diagnosis.logfindings import finding_of
from grid.diagnosis.rules import RuleTable
from grid.kube.objects import Condition, Pod, Terminated
from tests.diagnosis.rule_examples import EXAMPLES
from tests.support.builders import decode, pod

Applying = Callable[[str], str | None]  # returns the key of the rule that applies to a message


def tables() -> dict[str, tuple[Collection[str], Applying]]:
    """All tables of the package with their keys, and the few that are no `RuleTable`."""
    by_name: dict[str, tuple[Collection[str], Applying]] = {
        "logfindings.BUILT_IN": ([entry.key for entry in logfindings.BUILT_IN], of_line),
        "exits.MEANINGS": ([str(code) for code in exits.MEANINGS], of_exit),
        "disruptions.CAUSES": (disruptions.CAUSES, of_cause),
        "disruptions.REJECTIONS": (disruptions.REJECTIONS, of_rejection),
    }
    for module in pkgutil.iter_modules(grid.diagnosis.__path__):
        for name, table in vars(importlib.import_module(f"grid.diagnosis.{module.name}")).items():
            if isinstance(table, RuleTable) and not (
                name == "NODE_FAULTS" and module.name != "nodefaults"
            ):  # imported there
                by_name[f"{module.name}.{name}"] = table.keys, of_table(table, folded=table is images.PULL_FAILURES)
    return by_name


def of_table(table: RuleTable[object], *, folded: bool) -> Applying:
    def key(message: str) -> str | None:
        rule = table.find(message.lower() if folded else message)
        return rule[0] if rule else None

    return key


def of_line(line: str) -> str | None:
    finding = finding_of(line)
    return finding.key if finding else None


def of_exit(code: str) -> str | None:
    words_said = exits.exit_words(Terminated(exit_code=int(code)))
    return next(
        (str(known_code) for known_code, words in exits.MEANINGS.items() if words_said == f"exit code {code}, {words}"),
        None,
    )


def of_cause(reason: str) -> str | None:
    words_said = disruptions.disruption_cause(A_POD, Condition(type="DisruptionTarget", status="True", reason=reason))
    return next((known_reason for known_reason, words in disruptions.CAUSES.items() if words_said == words), None)


def of_rejection(reason: str) -> str | None:
    rejected = decode(pod("p", node="n", phase="Failed", status={"reason": reason}), Pod)
    words_said = disruptions.explain_rejected(rejected, ()).sentence
    alike = [
        known_reason for known_reason, words in disruptions.REJECTIONS.items() if words_said == words.format(node="n")
    ]
    return reason if reason in alike else next(iter(alike), None)


A_POD = decode(pod("p", node="n"), Pod)
TABLES = tables()
RULES = [(table, key) for table, (keys, _) in TABLES.items() for key in keys]


@pytest.mark.parametrize(("table", "key"), RULES)
def test_rule_applies_to_its_example_but_not_its_lookalike(table: str, key: str) -> None:
    pair = EXAMPLES.get(table, {}).get(key)
    assert pair, (
        "give it two messages in tests/diagnosis/rule_examples.py: one to which it applies, one that is like it"
    )
    applies, is_like = pair
    applying = TABLES[table][1]
    assert applying(applies) == key
    assert applying(is_like) != key


def test_rule_keys_are_unique_and_no_example_is_unused() -> None:
    assert len(set(RULES)) == len(RULES)
    unused = {(table, key) for table, examples in EXAMPLES.items() for key in examples} - set(RULES)
    assert not unused, f"tests/diagnosis/rule_examples.py has examples of what is no rule: {sorted(unused)}"
