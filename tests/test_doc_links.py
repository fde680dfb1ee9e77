"""Relative links of the documents lead to files that exist, and their anchors to headings, as GitHub and the product's help name them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_NAMED = sorted(set(re.findall(r"(?:tests|docs)/[\w/]+\.(?:py|md)(?:::\w+)?", (ROOT / "SECURITY.md").read_text())))


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings, as GitHub makes them: the second of the same name ends with -1."""
    counts: dict[str, int] = {}
    names = set()
    for heading in _HEADING.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        count = counts[slug] = counts.get(slug, -1) + 1
        names.add(f"{slug}-{count}" if count else slug)
    return names


def broken(page: Path) -> Iterator[str]:
    for link in _LINK.findall(_CODE.sub("", page.read_text())):
        if "://" in link or link.startswith(("mailto:", "images/")):  # tests/pictures knows which pictures there are
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        if not target.exists():
            yield f"{link}: no such file"
        elif anchor and (target.suffix != ".md" or anchor not in anchors(target.read_text())):
            yield f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


def test_anchors_are_those_of_github() -> None:
    text = "# A `b` (c)\n## What's new?\n## Twice\n```\n# no heading\n```\n## Twice\n### [Link](x.md) & more\n"
    assert anchors(text) == {"a-b-c", "whats-new", "twice", "twice-1", "link--more"}


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Top\n[a](page.md#top) [b](#top) [c](#gone) [d](gone.md) `[e](gone.md)` [f](https://example.org/#x)"
    )
    assert list(broken(page)) == ["#gone: no such heading", "gone.md: no such file"]


def test_the_index_has_each_document_once() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    listed = sorted(link for link in _LINK.findall(index) if "/" not in link)
    assert listed == sorted(page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md")


@pytest.mark.parametrize("named", _NAMED)
def test_tests_named_on_the_page_exist(named: str) -> None:
    path, _, name = named.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text() if name else (ROOT / path).is_file()


def test_each_attack_has_a_test() -> None:
    table = (ROOT / "SECURITY.md").read_text().partition("| attack |")[2].partition("\n\n")[0]
    attacks = table.splitlines()[2:]
    assert len(attacks) > 15
    assert [row for row in attacks if "tests/" not in row.rpartition(" | ")[2]] == []
