"""Program for a Dask worker's container, run there with `python -P -c`; nothing of ours imports it. It is `dask worker`, which finds
modules of the folder that it works in behind those that are installed: no file of the project takes the place of one.
"""

import os
import sys

from dask.cli import run_cli  # type: ignore[import-not-found]

sys.path.append(os.getcwd())  # noqa: PTH109  entries of the path are texts
run_cli()
