"""The locked packages: advisories that are known of them, and the list of what is in the product."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.support import advisories
from tests.support.sbom import SCRIPTS, invalid, sbom

TODAY = date(2026, 11, 29)
LEAK: dict[str, Any] = {
    "id": "PYSEC-2026-1",
    "aliases": ["GHSA-aaaa", "CVE-2026-1"],
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "Some_Package"},
            "ranges": [
                {"type": "GIT", "events": [{"introduced": "0"}, {"fixed": "f00"}]},
                {
                    "type": "ECOSYSTEM",
                    "events": [
                        {"introduced": "0"},
                        {"fixed": "1.4"},
                        {"introduced": "2.0"},
                        {"last_affected": "2.3"},
                        {"introduced": "3.0a1"},
                    ],
                },
            ],
        },
        {"package": {"ecosystem": "npm", "name": "some-package"}, "versions": ["9"]},
    ],
}
FACTS = {
    "package": "some-package",
    "id": "PYSEC-2026-1",
    "alias": "CVE-2026-1",
    "affected": "<1.4 || >=2.0,<=2.3 || >=3.0a1",
}


def known(*accepted: dict[str, str]) -> dict[str, Any]:
    return {"accepted": list(accepted), "advisories": [FACTS]}


def accept(until: str) -> dict[str, str]:
    return {"package": "some-package", "id": "PYSEC-2026-1", "reason": "We call nothing of it.", "until": until}


def test_no_locked_package_has_a_known_advisory() -> None:
    stored = json.loads(advisories.FILE.read_text())
    assert list(advisories.problems(stored, advisories.locked(), date.fromisoformat(stored["updated"]))) == []
    assert {"django", "aiohttp", "cryptography"} <= {advisory["package"] for advisory in stored["advisories"]}


@pytest.mark.parametrize(
    ("version", "is_affected"),
    [("1.3.9", True), ("1.4", False), ("2.0", True), ("2.3", True), ("2.3.1", False), ("3.0", True)],
)
def test_locked_version_within_an_advisorys_ranges_is_named(version: str, is_affected: bool) -> None:
    assert list(advisories.facts_of(LEAK)) == [FACTS]
    sentences = list(advisories.problems(known(), {"some-package": version, "other": version}, TODAY))
    assert bool(sentences) == is_affected
    assert all(f"some-package {version} is affected by PYSEC-2026-1" in sentence for sentence in sentences)


def test_accepted_advisory_is_named_again_once_its_reason_expires() -> None:
    versions = {"some-package": "1.0"}
    assert list(advisories.problems(known(accept("2026-11-29")), versions, TODAY)) == []
    [expired] = advisories.problems(known(accept("2026-11-28")), versions, TODAY)
    assert "accepted until 2026-11-28: We call nothing of it." in expired


def test_withdrawn_advisory_has_no_facts() -> None:
    assert list(advisories.facts_of({**LEAK, "withdrawn": "2026-11-01T00:00:00Z"})) == []


def test_update_keeps_one_entry_per_alias_and_the_accepted(tmp_path: Path) -> None:
    same = {**LEAK, "id": "GHSA-aaaa", "aliases": ["CVE-2026-1", "PYSEC-2026-1"]}
    before = known(accept("2027-01-01"))
    content = advisories.updated(before, [LEAK, same], ["some-package"], source="osv.dev", as_of="d", updated="d")
    assert (content["advisories"], content["accepted"]) == ([FACTS], before["accepted"])
    advisories.write(content, tmp_path / "written.json")
    assert json.loads((tmp_path / "written.json").read_text()) == content


def test_osv_is_asked_page_by_page() -> None:
    pages = [{"vulns": [LEAK], "next_page_token": "more"}, {}, {"vulns": [LEAK]}]
    queries: list[Any] = []

    def ask(query: bytes) -> bytes:
        queries.append(json.loads(query))
        return json.dumps(pages[len(queries) - 1]).encode()

    assert list(advisories.from_osv(["one", "two"], ask)) == [LEAK, LEAK]
    assert [(query["package"]["name"], query.get("page_token")) for query in queries] == [
        ("one", None),
        ("one", "more"),
        ("two", None),
    ]


def test_packages_that_pypi_does_not_answer_for_are_counted() -> None:
    answers: list[dict[str, Any]] = [
        {"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]},
        {"name": "b", "skip_reason": "not found"},
    ]
    assert list(advisories.live_lines(answers)) == [
        "pip-audit: a 1: PYSEC-1, fixed in 2.",
        "pip-audit: PyPI answered for 1 of 2 packages.",
    ]


@pytest.mark.slow
def test_sbom_has_each_locked_package_with_its_licence() -> None:
    bom = sbom()
    assert invalid(json.dumps(bom)) == ""
    assert invalid(json.dumps({**bom, "components": [{"type": "library"}]})) != ""
    assert len(bom["components"]) == len(advisories.locked([advisories.LOCKS[0]])) + len(SCRIPTS)
    assert [component["name"] for component in bom["components"] if not component.get("licenses")] == []
    assert "pkg:pypi/django@" in str(bom["components"]) and "pytest" not in str(bom["components"])
