"""Checks the plan of the house beside the import contracts: what rooms let in, lengths of files, names of classes, empty names.

Run by `make check`; prints each breach as a line, and exits with 1 if there is any.
"""

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

LONGEST, SHORTEST = 400, 20
# A room's addresses, what Django and Python find by its name, and the composition are files of their own however short; so is a program
# that a container runs, which nothing imports.
MAY_BE_SHORT = {"__init__.py", "__main__.py", "urls.py", "apps.py", "tags.py", "dask_worker.py"}
SHORT_FOLDERS = ("grid/management/commands/", "dashboard/shell/tags/")
# It goes with the sentences that are stored as words; none is to be added.
SHORT_DEBTS = {"dashboard/executions/viewmodels/told.py"}
# Kinds of tests that look at many rooms.
TESTS_OF_MANY = {"access", "browser", "contract", "end_to_end", "golden", "pictures", "recordings"}
# Django finds this folder by its name; it is no room.
OF_DJANGO = {"migrations"}
# They say nothing of what they hold; a thing has the name of what it is.
EMPTY_NAMES = {"one", "found", "told", "said", "look", "beside", "around"}
# Django and the commands find these by their names.
NAMES_OF_FRAMEWORKS = {"Command", "Migration"}


def tracked(*patterns: str) -> list[Path]:
    answer = subprocess.run(["git", "ls-files", "-z", *patterns], capture_output=True, check=True, text=True)
    return [Path(name) for name in answer.stdout.split("\0") if name and Path(name).is_file()]


def lengths(files: Sequence[Path]) -> Iterator[str]:
    for path in files:
        name, lines = str(path), len(path.read_bytes().splitlines())
        if lines > LONGEST:
            yield f"{name}: {lines} lines, and {LONGEST} may be; part it by ideas"
        is_product = name.startswith(("grid/", "dashboard/")) and not name.startswith(SHORT_FOLDERS)
        if is_product and lines < SHORTEST and path.name not in MAY_BE_SHORT and name not in SHORT_DEBTS:
            yield f"{name}: {lines} lines, and {SHORTEST} have to be; let it join a neighbour"


def classes(files: Sequence[Path]) -> Iterator[str]:
    files_of = defaultdict[str, list[str]](list)
    for path in files:
        for node in ast.parse(path.read_bytes()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files_of[node.name].append(str(path))
    for name, places in sorted(files_of.items()):
        if len(places) > 1 and name not in NAMES_OF_FRAMEWORKS:
            yield f"class {name} is in {' and '.join(places)}; give one of them another name"


def empty_names(files: Sequence[Path]) -> Iterator[str]:
    for path in files:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            elif isinstance(node, ast.arg):
                name = node.arg
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = node.name
            else:
                continue
            if name in EMPTY_NAMES:
                yield f"{path}:{node.lineno}: {name} does not say what it holds or does; name it for that"


def rooms() -> Iterator[str]:
    """Yield the folders of templates and tests that are no room, and the rooms that do not say what they are."""
    of_grid, of_dashboard = ({path.parts[1] for path in tracked(f"{half}/*/*.py")} for half in ("grid", "dashboard"))
    for path in sorted({path.parts[1] for path in tracked("templates/*/*")} - of_dashboard):
        yield f"templates/{path}: no room of dashboard/ has this name"
    for path in sorted({path.parts[1] for path in tracked("tests/*/*")} - of_grid - of_dashboard - TESTS_OF_MANY):
        yield f"tests/{path}: no room has this name"
    for half, names in (("grid", of_grid), ("dashboard", of_dashboard)):
        for name in sorted(names - OF_DJANGO):
            init = Path(half, name, "__init__.py")
            if not init.is_file() or not ast.get_docstring(ast.parse(init.read_bytes())):
                yield f"{init}: say in a docstring what the room is, what it owns, and what others may import"


def imports_of_private_modules(files: Sequence[Path]) -> Iterator[str]:
    """Yield the imports of what a room does not list as its `PUBLIC`, and what they list for nobody."""
    modules = {module_of(path): path for path in files}
    rooms = {name: path for name, path in modules.items() if name.count(".") == 1 and path.name == "__init__.py"}
    listed = {room: public_of(path) for room, path in rooms.items()}
    used = defaultdict[str, set[str]](set)
    for name, path in modules.items():
        for target in imported_by(path, modules):
            room = ".".join(target.split(".")[:2])
            module = target.removeprefix(f"{room}.")
            if room not in rooms or target == room or name == room or name.startswith(f"{room}."):
                continue
            used[room].add(module)
            if module not in listed[room] and listed[room] != {"*"}:
                yield f"{name} imports {target}, which is private to {room}; see PUBLIC in its __init__.py"
    for room in sorted(rooms):
        for module in sorted(listed[room] - used[room] - {"*"}):
            yield f"{room}: nobody outside imports {module}; take it off its PUBLIC"


def module_of(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def public_of(init: Path) -> set[str]:
    for node in ast.parse(init.read_bytes()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PUBLIC":
            return set(ast.literal_eval(node.value))
    return set()


def imported_by(path: Path, modules: Container[str]) -> Iterator[str]:
    """Yield the modules of the product that a file imports."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def main() -> int:
    product = [path for path in tracked("grid/*.py", "dashboard/*.py") if "migrations" not in path.parts]
    others = tracked("tests/*.py", "benchmarks/*.py")
    breaches = [
        *lengths([*product, *others]),
        *empty_names([*product, *others]),
        *classes(product),
        *rooms(),
        *imports_of_private_modules(product),
    ]
    for breach in breaches:
        print(breach)
    print("The house is in order." if not breaches else f"{len(breaches)} breaches of the plan of the house")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
