"""Stored HTML of each visual state: a test renders, the file under tests/golden/ says how it must look.

After a change that is meant, `GRID_GOLDEN=write pytest ...` writes the files anew; read the difference before committing it.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden"


def assert_golden(name: str, html: str) -> None:
    """`name` without the ending; compared line by line, without leading, trailing and empty space."""
    file = FOLDER / f"{name}.html"
    rendered = "\n".join(line.strip() for line in html.splitlines() if line.strip()) + "\n"
    if os.environ.get("GRID_GOLDEN") == "write":
        file.write_text(rendered)
    assert file.exists(), f"no stored state {name}; make it with GRID_GOLDEN=write"
    assert rendered == file.read_text(), f"{name} looks different; if that is meant, store it with GRID_GOLDEN=write"
