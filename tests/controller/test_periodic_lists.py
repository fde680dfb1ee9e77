"""What a room declares as a periodic task stands in one of the two lists, or is the controller's own, or nobody would run it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LISTS = [
    ROOT / "grid/controller/periodictasks.py",
    ROOT / "grid/controller/controller.py",
    ROOT / "grid/runtime/periodictasks.py",
]
BY_ANOTHER_NAME = {"grid/runtime/caches.py: PoolTemplates"}  # the local data plane has it as `templates`


def declared() -> Iterator[tuple[str, str]]:
    """Yield each module or class of `grid` that has a `periodic`, with its file, and the words with which a list calls it."""
    for path in sorted((ROOT / "grid").rglob("*.py")):
        for node in ast.parse(path.read_bytes()).body:
            file = str(path.relative_to(ROOT))
            if isinstance(node, ast.FunctionDef) and node.name == "periodic":
                yield file, rf"\b{path.stem}\.periodic\("
            elif isinstance(node, ast.ClassDef) and any(
                isinstance(part, ast.FunctionDef) and part.name == "periodic" for part in node.body
            ):
                yield f"{file}: {node.name}", rf"\b{node.name}\b"


def test_each_declared_task_stands_in_a_list() -> None:
    lists = "\n".join(path.read_text() for path in LISTS)
    names = dict(declared())
    assert len(names) > 20
    unlisted = {name for name, words in names.items() if not re.search(words, lists)}
    assert unlisted - BY_ANOTHER_NAME == set(), (
        "a line for each is missing in grid/controller/periodictasks.py or grid/runtime/periodictasks.py"
    )
    assert unlisted >= BY_ANOTHER_NAME
