"""Reads how executions started, synchronously: one, what is usual, and by tier, environment, pool or image from the sums of days."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from statistics import median
from typing import NamedTuple

from django.db.models import Sum

from dashboard.starts.viewmodels.start_times import GroupStarts, SlowStart, StartTimesView, group_of, medians_of
from dashboard.starts.viewmodels.startup import StartMeasures, UsualStart, main_cause, seconds_words
from grid.diagnosis.startup import Phase
from grid.models import Environment, Execution, HardwareTier, StartDay, StartUp
from grid.starts.startdays import StartSums, read_sums
from grid.starts.startuphistory import recent_starts

_NEWEST = 100  # enough for a median, and read again with each change of an execution


def start_of(execution_id: str) -> StartMeasures | None:
    """Return the stored start; None until it ran or ended."""
    row = StartUp.objects.filter(pk=execution_id).first()
    return None if row is None else measures_of(row)


def measures_of(row: StartUp) -> StartMeasures:
    known = {phase: getattr(row, phase.value) for phase in Phase}
    return StartMeasures(
        seconds={phase: seconds for phase, seconds in known.items() if seconds is not None},
        merged=row.merged or 0.0,
        merged_phases=tuple(Phase(name) for name in row.merged_phases.split()),
        total=row.total,
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
    seconds = {phase: [getattr(start, phase.value) for start in starts] for phase in Phase}
    known = {phase: [value for value in values if value is not None] for phase, values in seconds.items()}
    medians = {phase: median(values) for phase, values in known.items() if values}
    total = median(start.total for start in starts) if starts else None
    return UsualStart(count=len(starts), total=total, seconds=medians)


MOST_GROUPS = 40
_COLUMNS = {"tier": "tier_id", "environment": "environment_id", "pool": "node_pool", "image": "image"}


class StartTimesRead(NamedTuple):
    """The groups with most starts, the largest first, how many more there are, and the one that is shown: the chosen one, or all starts."""

    groups: Sequence[GroupStarts]
    left_out: int
    shown: GroupStarts


def read_start_times(view: StartTimesView, now: datetime) -> StartTimesRead:
    """Return the starts of each group in the days of the view."""
    days, names = view.days(now), _names(view.by)
    rows = StartDay.objects.filter(grouping=view.by, day__gte=days[0]).order_by()
    counted = rows.values_list("group").annotate(Sum("starts"))
    sizes = {group: starts for group, starts in counted if starts}
    largest = sorted(sizes, key=lambda group: (-sizes[group], names.get(group, group)))[:MOST_GROUPS]
    read = _read(view.by, largest, days)
    groups = [group_of(key, names.get(key, key), read[key]) for key in largest if key in read]
    shown = next((group for group in groups if view.of and group.key == view.of), None) or _all_starts(days)
    return StartTimesRead(groups, len(sizes) - len(largest), shown)


def read_shown(view: StartTimesView, now: datetime) -> GroupStarts:
    """Return the chosen group alone, or all starts when it has none."""
    days = view.days(now)
    days_of_group = _read(view.by, [view.of], days).get(view.of) if view.of else None
    return group_of(view.of, "", days_of_group) if days_of_group else _all_starts(days)


def read_slowest(read: StartTimesRead, by: str) -> list[SlowStart]:
    """Return the slowest starts of those that are shown, each with what took longer than usual in its group."""
    ids = [id for _, id in read.shown.whole.slowest]
    rows, executions = StartUp.objects.order_by().in_bulk(ids), Execution.objects.in_bulk(ids)
    column, groups, names = _COLUMNS[by], {group.key: group for group in read.groups}, _names(by)
    slowest = []
    for id in ids:
        if id not in rows:
            continue
        row, key = rows[id], str(getattr(rows[id], column))
        whole = groups[key].whole if key in groups else None
        # Of a group that was left out, nothing is said to be usual.
        usual = UsualStart(whole.starts, None, medians_of(whole)) if whole else UsualStart()
        slowest.append(
            SlowStart(
                id=id,
                # Starts are kept for longer than their executions.
                title=str(executions[id]) if id in executions else "",
                group=names.get(key, key),
                took=seconds_words(row.total),
                cause=main_cause(measures_of(row), usual),
                at=row.at,
            )
        )
    return slowest


def _all_starts(days: Sequence[date]) -> GroupStarts:
    return group_of("", "", _read(StartDay.Grouping.ALL, [""], days).get("", {}))


def _read(grouping: str, groups: Collection[str], days: Sequence[date]) -> dict[str, dict[date, StartSums]]:
    rows = StartDay.objects.filter(grouping=grouping, group__in=groups, day__gte=days[0], day__lte=days[-1]).order_by()
    by_group: dict[str, dict[date, StartSums]] = {}
    for group, day, sums in rows.filter(starts__gt=0).values_list("group", "day", "sums"):
        by_group.setdefault(group, {})[day] = read_sums(sums)
    return by_group


def _names(by: str) -> Mapping[str, str]:
    """Return the names of tiers or environments by id; of two with the same name both are told with their ids."""
    if by not in ("tier", "environment"):
        return {}
    named = HardwareTier.objects if by == "tier" else Environment.objects
    names = dict(named.order_by().values_list("pk", "name"))
    all_names = list(names.values())
    return {id: name if all_names.count(name) == 1 else f"{name} ({id})" for id, name in names.items()}
