"""Program for a Dask worker's container, run there with `python -P -c`; nothing of ours imports it.

It is `dask worker`, but finds modules of its working directory after the installed ones, so no file of the project replaces one of those.
"""

import os
import sys

from dask.cli import run_cli  # type: ignore[import-not-found]

sys.path.append(os.getcwd())  # noqa: PTH109  entries of the path are texts
run_cli()
