"""Program for a Dask head's container, run there with `python -P -c`; nothing of ours imports it.

It is Dask's own scheduler with one page more, because no page of Dask's reports each worker's load: `json/identity.json` fails once a task
has run (distributed 2026.8.0), and `json/counts.json` looks at every task.
"""

import os
import sys
from types import ModuleType

import dask  # type: ignore[import-not-found]
from dask.cli import run_cli  # type: ignore[import-not-found]
from distributed.http.utils import RequestHandler  # type: ignore[import-not-found]

ROUTES = "distributed.scheduler.http.routes"


class Report(RequestHandler):  # type: ignore[misc]
    def get(self) -> None:
        scheduler = self.server
        self.write(
            {
                "workers": {
                    str(worker.name): {"tasks": len(worker.processing), "bytes_held": worker.nbytes}
                    for worker in scheduler.workers.values()
                },
                "pending_tasks": len(scheduler.queued) + len(scheduler.unrunnable),
                "wanted_workers": scheduler.adaptive_target(),
            }
        )


# Dask loads pages from modules, by name.
page = ModuleType("compute_grid_report")
vars(page)["routes"] = [("json/compute-grid.json", Report, {})]
sys.modules[page.__name__] = page
dask.config.set({ROUTES: [*dask.config.get(ROUTES), page.__name__]})
# The project's files, after installed modules: the scheduler unpickles objects that refer to modules there.
sys.path.append(os.getcwd())  # noqa: PTH109  entries of the path are texts
run_cli()
