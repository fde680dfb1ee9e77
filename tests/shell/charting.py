"""Samples of node pools for page tests: a day in which they grow, idle and wait."""

import math
from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime

from grid.diagnosis.requests import Amounts
from grid.models import PoolSample, State
from grid.models.pool import ALL_POOLS
from grid.runtime.poolsamples import PoolTally, sample_of

POOLS = ("default", "default-gpu", "batch")
_GIB = 2**30


def minute_of(moment: datetime) -> int:
    return int(moment.timestamp() // 60)


def make_day(until: datetime, *, minutes: int = 24 * 60, pools: tuple[str, ...] = POOLS) -> None:
    """A sample for each of the last minutes; the batch pool waits at its height, and the GPU pool is measured by nobody."""
    last, rows = minute_of(until), []
    for minute in range(last - minutes + 1, last + 1):
        tallies = {pool: _tally(pool, place, minute - last) for place, pool in enumerate(pools)}
        for pool, tally in {**tallies, ALL_POOLS: _together(tallies.values())}.items():
            running, waiting = 3 * tally.nodes // 2, tally.pods_waiting // 2
            counts = {(pool, State.RUNNING.value): running, (pool, State.QUEUED.value): waiting}
            rows.append(sample_of(pool, minute, tally, counts))
    PoolSample.objects.bulk_create(rows, batch_size=500)


def _together(tallies: Iterable[PoolTally]) -> PoolTally:
    total = PoolTally()
    for tally in tallies:
        for field in fields(PoolTally):
            setattr(total, field.name, getattr(total, field.name) + getattr(tally, field.name))
    return total


def _tally(pool: str, place: int, age: int) -> PoolTally:
    load = (1 + math.sin(age / (150 + 40 * place) + place)) / 2
    nodes = 2 + round(6 * load) if pool != "default-gpu" else round(2 * load)
    share = 0.3 + 0.6 * (1 + math.sin(age / 47 + place)) / 2
    gpus = nodes if pool == "default-gpu" else 0
    whole = Amounts(nodes * 15_800, nodes * 60 * _GIB, gpus)
    asked = Amounts(int(whole.cpu * share), int(whole.memory * share * 0.8), gpus)
    used = Amounts(int(asked.cpu * (0.5 + 0.3 * load)), int(asked.memory * 0.7))
    measured = nodes if pool != "default-gpu" else 0
    waiting = round(12 * load) if pool == "batch" and load > 0.8 else 0
    return PoolTally(nodes, nodes - (age % 211 == 0 and nodes > 0), asked, whole, used, measured, waiting)
