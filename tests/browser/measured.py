"""The stage with a Prometheus, and what only that tells."""

from django.conf import settings

from dashboard.nodes.pages import use_history
from dashboard.shell.pages import periodic
from tests.browser import executing, incidents
from tests.browser.server import Stage

_USUAL_SECONDS = periodic.FIRST_SECONDS


async def connect(stage: Stage, url: str) -> None:
    """Ask the Prometheus at this address from now on, with all the patience of a busy machine; none with ""."""
    settings.PROMETHEUS_URL = url
    use_history._histories.clear()
    periodic.FIRST_SECONDS = 60.0 if url else _USUAL_SECONDS


async def cpu_throttled(stage: Stage) -> None:
    """To Kubernetes all is well: the program runs, at its limit of CPU."""
    await executing.team(stage)
    await executing.put(stage, incidents.ID, "running", minutes=40, title=incidents.TITLE)
