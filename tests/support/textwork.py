"""Workers that read no text, as those are whose time is over or whom too many ask."""

from collections.abc import Callable
from typing import NoReturn

from grid.edge.textwork import TextWorkers, TextWorkFailed


class FailingWorkers(TextWorkers):
    """Refuses each text with the same error."""

    def __init__(self, error: TextWorkFailed) -> None:
        super().__init__()
        self._error = error

    async def run(self, work: Callable[..., object], *args: object, size: int | None = None) -> NoReturn:
        raise self._error
