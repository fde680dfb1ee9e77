"""Stored HTML of each visual state, stored words of each situation: a test makes them, a file under tests/golden/ says how they must be.

After a change that is meant, `GRID_GOLDEN=write pytest ...` writes the files anew; read the difference before committing it.
"""

import difflib
import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden"


def assert_golden(name: str, text: str, *, ending: str = "html") -> None:
    """`name` without the ending; compared line by line, without leading, trailing and empty space."""
    file = FOLDER / f"{name}.{ending}"
    if os.environ.get("GRID_GOLDEN") == "write":
        file.write_text(plain(text))
    assert file.exists(), f"no stored state {name}; make it with GRID_GOLDEN=write"
    changed = "\n".join(difference(name, text, ending=ending))
    assert not changed, f"{name} looks different; if that is meant, store it with GRID_GOLDEN=write:\n{changed}"


def plain(text: str) -> str:
    """The text without leading, trailing and empty space on its lines."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip()) + "\n"


def difference(name: str, text: str, *, ending: str = "html") -> list[str]:
    """What the text has instead of the stored state `name`: its lines with a plus before them, those that it lacks with a minus."""
    stored = (FOLDER / f"{name}.{ending}").read_text().splitlines()
    compared = difflib.unified_diff(stored, plain(text).splitlines(), n=0, lineterm="")
    return [line for line in compared if not line.startswith(("+++", "---", "@@"))]
