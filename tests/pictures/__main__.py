"""`make pictures`: start a Compute Grid, visit it as its people do, write the pictures of the guides, and end all of it."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.end_to_end.grid import ROOT, Grid, ending
from tests.pictures import project_scenes, scenes
from tests.pictures.studio import Studio
from tests.support.chromium import ARGUMENTS, MISSING, find_chromium

FOLDER = ROOT / "docs" / "images"
IMAGES = Path(
    os.environ.get("GRID_IMAGES") or ROOT / "var" / "images"
)  # what `make run` has pulled is not pulled again
POPULATION = ("--nodes", "40", "--pods", "900", "--churn", "2")


def main() -> int:
    chromium = find_chromium()
    if chromium is None:
        sys.stderr.write(f"No picture was taken: {MISSING}.\n")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all ends in order
    with tempfile.TemporaryDirectory() as folder, running_grid(Path(folder)) as grid, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        studio = Studio(browser, grid, FOLDER)
        scenes.take_all(studio)
        project_scenes.take_all(studio)
        browser.close()
    return 0


@contextmanager
def running_grid(folder: Path) -> Iterator[Grid]:
    """A demo of its own with a small population; it has ended when the block has, whatever happened."""
    with ending(Grid(folder / "var", images=IMAGES, population=POPULATION)) as grid:
        grid.start()
        yield grid


if __name__ == "__main__":
    sys.exit(main())
