"""Relative links of the documents lead to files that exist, and their anchors to headings, as GitHub and the product's help name them.

What documents and docstrings name as our files and modules is there.
"""

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
_FILE = re.compile(r"`((?:grid|dashboard|templates|tests|static|docs|deploy|benchmarks|\.ci)/[\w./-]+)`")
_MODULE = re.compile(r"`((?:grid|dashboard)(?:\.[a-z_]\w*)+)")
# A folder and a file that are made later, a host's name, and what its room has from one of its modules by a star.
_NOT_THERE = {"grid/locale", "grid.sqlite3", "grid.example.com", "grid.configuration.value_of"}
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


def missing(text: str) -> Iterator[str]:
    """Yield the files and modules that a text names and that are not there; of a module's names only the first is looked for."""
    for name in set(_FILE.findall(text)) - _NOT_THERE:
        if not (ROOT / name).exists() and not (ROOT / f"{name}.py").exists():
            yield name
    for name in set(_MODULE.findall(text)) - _NOT_THERE:
        place, names = ROOT, name.split(".")
        while names and (place / names[0]).is_dir():
            place /= names.pop(0)
        module = place / f"{names[0]}.py" if names else place
        if module.is_file():
            names.pop(0)
        elif names:
            module = place / "__init__.py"
        if names and not re.search(rf"\b{names[0]}\b", module.read_text()):
            yield name


def test_files_and_modules_that_documents_name_are_there() -> None:
    named = {page.name: sorted(missing(page.read_text())) for page in PAGES}
    assert {page: names for page, names in named.items() if names} == {}


def test_files_and_modules_that_the_code_names_are_there() -> None:
    modules = [path for tree in ("grid", "dashboard") for path in (ROOT / tree).rglob("*.py")]
    named = {str(path.relative_to(ROOT)): sorted(missing(path.read_text())) for path in modules}
    assert {module: names for module, names in named.items() if names} == {}


def test_a_missing_file_and_a_missing_name_are_noticed() -> None:
    text = "`grid/queue/quota.py` `grid/queue/quota` `grid.queue` `grid.queue.quota.admit` `grid/gone.py` `grid.queue.gone`"
    assert sorted(missing(text)) == ["grid.queue.gone", "grid/gone.py"]


@pytest.mark.parametrize("named", _NAMED)
def test_tests_named_on_the_page_exist(named: str) -> None:
    path, _, name = named.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text() if name else (ROOT / path).is_file()


def test_each_attack_has_a_test() -> None:
    table = (ROOT / "SECURITY.md").read_text().partition("| attack |")[2].partition("\n\n")[0]
    attacks = table.splitlines()[2:]
    assert len(attacks) > 15
    assert [row for row in attacks if "tests/" not in row.rpartition(" | ")[2]] == []
