"""Runs the executor from its folder, where nothing else of this project is: `python3 -I <folder>`. It is imported as the package that it
is, from the folder above, which comes last among the places of modules, so that it does not hide the standard library."""

import runpy
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent

if __name__ == "__main__":
    sys.path[:] = [*sys.path[1:], str(_FOLDER.parent)]
    runpy.run_module(f"{_FOLDER.name}.program", run_name="__main__")
