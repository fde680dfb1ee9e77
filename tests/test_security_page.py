"""SECURITY.md names the test of each claim: every one of them exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_NAMED = sorted(set(re.findall(r"(?:tests|docs)/[\w/]+\.(?:py|md)(?:::\w+)?", (ROOT / "SECURITY.md").read_text())))


@pytest.mark.parametrize("named", _NAMED)
def test_tests_named_on_the_page_exist(named: str) -> None:
    path, _, name = named.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text() if name else (ROOT / path).is_file()


def test_each_attack_has_a_test() -> None:
    table = (ROOT / "SECURITY.md").read_text().partition("| attack |")[2].partition("\n\n")[0]
    attacks = table.splitlines()[2:]
    assert len(attacks) > 15
    assert [row for row in attacks if "tests/" not in row.rpartition(" | ")[2]] == []
