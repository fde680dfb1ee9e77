"""Reads how an execution started, and how long that usually takes."""

from statistics import median

from dashboard.starts.viewmodels.startup import StartMeasures, UsualStart
from grid.diagnosis.startup import Phase
from grid.models import StartUp
from grid.starts.startuphistory import recent_starts

_NEWEST = 100  # enough for a median, and read again with each change of an execution


def start_of(execution_id: str) -> StartMeasures | None:
    """Return the stored start; None until it ran or ended."""
    row = StartUp.objects.filter(pk=execution_id).first()
    return None if row is None else measures_of(row)


def measures_of(row: StartUp) -> StartMeasures:
    known = {phase: getattr(row, phase.value) for phase in Phase}
    return StartMeasures(
        total=row.total,
        seconds={phase: seconds for phase, seconds in known.items() if seconds is not None},
        merged=row.merged or 0.0,
        merged_phases=tuple(Phase(name) for name in row.merged_phases.split()),
        ran=row.ran,
        node_started=row.node_started,
        node_decision=row.node_decision,
        node_creation=row.node_creation,
        node_joining=row.node_joining,
        image_cached=row.image_cached,
        image_bytes=row.image_bytes,
    )


def usual_start(tier: str, environment: str) -> UsualStart:
    """Return the medians of the newest starts of a tier and environment."""
    starts = recent_starts(tier=tier, environment=environment, at_most=_NEWEST)
    medians: dict[Phase, float] = {}
    for phase in Phase:
        values = [seconds for start in starts if (seconds := getattr(start, phase.value)) is not None]
        if values:
            medians[phase] = median(values)
    total = median(start.total for start in starts) if starts else None
    return UsualStart(count=len(starts), total=total, seconds=medians)
