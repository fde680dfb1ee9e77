"""Writes the second half of docs/where-things-are.md, what is in each room, from the import contracts and the rooms' docstrings.

`python -m tests.support.where_things_are` writes it; tests/test_where_things_are.py fails while it is out of date. The first half, the
answers, is written by hand and kept.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "where-things-are.md"
COMMAND = "python -m tests.support.where_things_are"
HEADING = "## What is in each room\n"
TREES = ("grid", "dashboard", "templates", "tests")
_CONTRACTS = {
    "grid": "The rooms of grid, upper ones on lower ones",
    "dashboard": "The rooms of the dashboard, upper ones on lower ones",
}
_NO_ROOMS = {"migrations"}  # Django gives it its name
_SENTENCE = re.compile(r"^.*?[.](?:\s|$)")


def document() -> str:
    """Return the document as it has to be: what is written by hand, and the rooms."""
    by_hand, heading, _written = DOCUMENT.read_text().partition(HEADING)
    assert heading, f"{DOCUMENT.name} has no heading {HEADING.strip()!r}"
    return by_hand + heading + "\n" + "".join(f"{line}\n" for line in _lines())


def order(tree: str) -> list[str]:
    """Return the names in the tree's import contract, upper ones first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["name"] == _CONTRACTS[tree])
    return [name.strip() for layer in layers for name in layer.split("|")]


def rooms() -> list[str]:
    """Return the rooms in the order of the contracts: those of grid, then those that only the dashboard has."""
    names = [name for tree in ("grid", "dashboard") for name in order(tree) if (ROOT / tree / name).is_dir()]
    return [name for name in dict.fromkeys(names) if name not in _NO_ROOMS]


def modules() -> list[Path]:
    """Return the modules of the contracts that stand in no room, by path."""
    files = [ROOT / tree / f"{name}.py" for tree in ("grid", "dashboard") for name in order(tree)]
    return [file for file in files if file.is_file()]


def _lines() -> Iterator[str]:
    yield "From here on the text is made from the import contracts in `pyproject.toml` and the docstrings of the rooms."
    yield f"Write it again with `{COMMAND}`."
    yield "The order is that of `grid`, where a room may import those below it; the dashboard has an order of its own."
    yield ""
    for room in rooms():
        yield f"### {room}"
        yield " ".join(filter(None, (first_sentence(ROOT / tree / room / "__init__.py") for tree in TREES[:2])))
        folders = (f"{tree}/{room}" for tree in TREES if (ROOT / tree / room).is_dir())
        yield "In " + ", ".join(f"[{folder}](../{folder})" for folder in folders) + "."
        yield ""
    yield "### In no room"
    for file in modules():
        path = file.relative_to(ROOT)
        yield f"- [{path}](../{path}): {first_sentence(file)}".removesuffix(": ")


def first_sentence(module: Path) -> str:
    """Return the first sentence of the module's docstring on one line; "" without a module or a docstring."""
    text = ast.get_docstring(ast.parse(module.read_text())) if module.is_file() else None
    match = _SENTENCE.search(" ".join((text or "").partition("\n\n")[0].split()))
    return match[0].strip() if match else ""


if __name__ == "__main__":
    DOCUMENT.write_text(document())
