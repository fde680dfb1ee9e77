"""Admits as the controller does, and writes at once why the others wait."""

from collections.abc import Sequence
from datetime import datetime

from grid.queue.admission import admit_next, write_refusals


def admit_waiting(data_plane: str, *, now: datetime) -> Sequence[str]:
    """Admit executions to the data plane, write why the others wait, and return the ids of the admitted ones."""
    admission = admit_next(data_plane, now=now)
    write_refusals(admission.refusals, now=now)
    return list(admission.admitted)
