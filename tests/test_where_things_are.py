"""docs/where-things-are.md says what is there: each room as its docstring does, and each answer with files and names that exist.

So do the recipes of CONTRIBUTING.md.
"""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.support import where_things_are
from tests.support.where_things_are import DOCUMENT, HEADING, ROOT

_FILE = re.compile(r"`((?:grid|dashboard|templates|tests|static|docs)/[\w./-]+)`")
_NAMED = re.compile(r"`([\w/]+\.py)` \(((?:`\w+`(?:, )?)+)\)")
_BY_HAND = DOCUMENT.read_text().partition(HEADING)[0]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
_RECIPES = (ROOT / "CONTRIBUTING.md").read_text()


def test_the_rooms_are_described_as_they_are() -> None:
    assert DOCUMENT.read_text() == where_things_are.document(), f"run: {where_things_are.COMMAND}"


def test_every_room_says_what_it_is() -> None:
    sentences = {
        f"{tree}/{room}": where_things_are.first_sentence(ROOT / tree / room / "__init__.py")
        for tree in ("grid", "dashboard")
        for room in where_things_are.rooms()
        if (ROOT / tree / room).is_dir()
    }
    assert len(sentences) > 50
    assert [room for room, sentence in sentences.items() if not sentence] == []


@pytest.mark.parametrize("path", sorted(set(_FILE.findall(_BY_HAND + _RECIPES))))
def test_a_file_of_an_answer_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(("path", "names"), sorted(set(_NAMED.findall(_BY_HAND))))
def test_a_name_of_an_answer_is_in_its_file(path: str, names: str) -> None:
    assert set(re.findall(r"\w+", names)) <= _defined(ROOT / path)


def test_layers_of_architecture_are_those_of_pyproject() -> None:
    layers = [re.findall(r"\w+", layer) for layer in CONTRACTS[0]["layers"]]
    drawing = re.search(r"^    asgi.*?\n\n", (ROOT / "docs/architecture.md").read_text(), re.DOTALL | re.MULTILINE)
    assert drawing
    drawn = re.findall(r"\w+", drawing[0])
    undrawn = [room for layer in layers for room in layer if room not in drawn]
    assert not undrawn, f"draw them in docs/architecture.md: {undrawn}"
    places = [min(map(drawn.index, layer)) for layer in layers]
    assert places == sorted(places), "the drawing in docs/architecture.md has another order than pyproject.toml"


@pytest.mark.parametrize(
    ("contract", "key", "others"),
    [
        ("The embedded cluster talks to the rest only over HTTP", "forbidden_modules", {"sandbox", "database", "core"}),
        ("Nothing but its command imports the embedded cluster", "source_modules", {"sandbox", "management"}),
    ],
)
def test_contract_of_the_embedded_cluster_names_every_room(contract: str, key: str, others: set[str]) -> None:
    (names,) = (each[key] for each in CONTRACTS if each["name"] == contract)
    listed = {name.removeprefix("grid.") for name in names if name.startswith("grid.")}
    rooms = {room for layer in CONTRACTS[0]["layers"] for room in re.findall(r"\w+", layer)}
    assert rooms - others - listed == set(), f"name them in {key} of this contract in pyproject.toml"
    assert not listed & others


def _defined(module: Path) -> set[str]:
    """Return the names of a module, and those of its classes' methods."""
    names, body = set[str](), ast.parse(module.read_text()).body
    for node in [*body, *(member for owner in body if isinstance(owner, ast.ClassDef) for member in owner.body)]:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names
