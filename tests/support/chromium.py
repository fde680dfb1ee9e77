"""The Chromium that drives the pages in tests and for pictures: where it is, and how it is started."""

import os
import shutil

MISSING = "no Chromium here: install the package chromium, or set GRID_CHROMIUM to a browser's path"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str | None:
    """Return the path of the program; None without one."""
    return os.environ.get("GRID_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
