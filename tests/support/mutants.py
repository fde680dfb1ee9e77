"""Mutation testing: `python -m tests.support.mutants [grid/queue/quota.py ...]` breaks rules and says which breaks no test notices.

Which modules and which tests is in `pyproject.toml`. mutmut writes a copy of the project with all mutants into `mutants/`.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

from mutmut.stats import status_by_exit_code

_COPY = Path("mutants")
_PROCESSES = 2
_BY_TYPES = "caught by type check"
_BY_TESTS = frozenset({"killed", "timeout"})


def names_of(path: str) -> str:
    """Return the pattern of the mutants of a file or a folder."""
    return ".".join(Path(path).with_suffix("").parts) + ".*"


def share_line(module: str, verdicts: Mapping[str, int]) -> str:
    """Return a row of the table: how many mutants, the share that was noticed, and the share that tests noticed of those that
    pass the types."""
    of_all, typed = sum(verdicts.values()), verdicts.get(_BY_TYPES, 0)
    tested = sum(verdicts.get(verdict, 0) for verdict in _BY_TESTS)
    by_tests = f"{tested / (of_all - typed):.1%}" if of_all > typed else "none left"
    return f"| `{module}` | {of_all} | {(typed + tested) / of_all:.1%} | {by_tests} |"


def verdicts(meta: Path) -> dict[str, str]:
    """Return what became of each mutant of one module, by its name."""
    codes: dict[str, int | None] = json.loads(meta.read_text())["exit_code_by_key"]
    return {name: status_by_exit_code[code] for name, code in codes.items()}


def main(paths: Sequence[str]) -> int:
    # mutmut starts mypy by its name.
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    mutmut = [sys.executable, "-m", "mutmut"]
    patterns = [names_of(path) for path in paths or ("grid", "dashboard")]
    run = subprocess.run([*mutmut, "run", "--max-children", str(_PROCESSES), *patterns], env=environment)
    if run.returncode:
        return run.returncode
    survivors: list[str] = []
    rows: list[str] = []
    for meta in sorted(_COPY.rglob("*.py.meta")):
        module = str(meta.relative_to(_COPY).with_suffix(""))
        fates = verdicts(meta)
        if fates and any(fnmatch(next(iter(fates)), pattern) for pattern in patterns):
            survivors += [name for name, verdict in fates.items() if verdict not in _BY_TESTS | {_BY_TYPES}]
            rows.append(share_line(module, Counter(fates.values())))
    for name in survivors:
        subprocess.run([*mutmut, "show", name], env=environment)
    sys.stdout.write("\n".join(["", *rows, ""]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
